"""The budgets of mam, measured beside a baseline in the same run: `python -m bench --help`."""
