"""Delegated jobs: one verb per file. `ledger.py` is the only way into a job's log."""
