"""The scripts of `--validate` that run now, and who submitted their jobs."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

# A script is killed soon after its job has ended, for instance because the script itself cancelled it.
_ENDING_SECONDS = 60.0
# One query without `tables.jobs`, which is slow to import: every verb asks this to find out who calls.
_QUERY = """
SELECT json_extract(data, '$.created_by'), json_extract(data, '$.script'), json_extract(data, '$.checker')
FROM jobs WHERE (status='checking' OR updated_at >= ?) AND json_valid(data)
  AND json_extract(data, '$.validate') IS NOT NULL AND json_extract(data, '$.checker') IS NOT NULL
"""


class RunningScript:
    """A script of a job: its process, the process that started it, and who submitted the job."""

    __slots__ = ("created_by", "process", "starter")

    def __init__(self, created_by: str, process: Any, starter: Any) -> None:
        """`process` is None for a moment after the start. Both are as `Identity.as_json` returns them."""
        self.created_by = created_by
        self.process = process
        self.starter = starter


def running_scripts(transaction: Transaction) -> list[RunningScript]:
    """Return the scripts that may run now."""
    rows = transaction.connection.execute(_QUERY, (transaction.now - _ENDING_SECONDS,))
    return [
        RunningScript(str(created_by), _document(process), _document(starter))
        for created_by, process, starter in rows
    ]


def _document(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) and text.startswith("{") else None
