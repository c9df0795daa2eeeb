"""Delegated jobs: one verb per file. `ledger_writer.py` writes a job's log and status."""
