"""Whether a job that is open in a copy has ended since: by the replaced state, or by its audit log."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs.write_job_files import audit_root
from mam.core import job_event as events
from mam.core.errors import MamError
from mam.core.job_rules import ENDED
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context

_LONGEST_DETAIL = 200


def end_since_copy(context: Context, transaction: Transaction, job: Job, *, is_replaced: bool) -> str | None:
    """Return how a job ended since the copy was made, as `completed: DETAIL`; None if nothing says so.

    With `is_replaced` the registry still has the state that this one replaces.
    """
    return (_end_in_former(context, job) if is_replaced else None) or _end_in_log(context, transaction, job)


def _end_in_former(context: Context, job: Job) -> str | None:
    try:
        former = context.registry.peek(lambda transaction: jobs.find(transaction, job.id), None)
    except MamError:
        # The state that is replaced is damaged, or of a newer mam.
        return None
    if former is None or former.status not in ENDED:
        return None
    return _told(former.status, former.data.get("terminal_detail"))


def _end_in_log(context: Context, transaction: Transaction, job: Job) -> str | None:
    """Look behind the last entry that the copy has: what comes before is known, and may have been undone."""
    known = jobs.last_entry(transaction, job.id)
    folder = os.path.join(job.data.get("logs_dir") or audit_root(context), job.id)
    for line in job_files.lines_after(os.path.join(folder, "events.ndjson"), known.number if known else 0):
        # A report of an earlier attempt came too late, and ended nothing.
        is_current = isinstance(line.get("data"), dict) and events.attempt_of(line) >= job.attempt
        if line.get("event") in events.TERMINAL and is_current:
            return _told(str(line["event"]), line.get("detail"))
    return None


def _told(status: str, detail: object) -> str:
    return f"{status}: {one_line(detail, _LONGEST_DETAIL)}" if isinstance(detail, str) and detail else status
