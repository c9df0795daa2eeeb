"""Waits for jobs to end, and passes on each of their log entries when it is recorded."""

from __future__ import annotations

import time

from mam.adapters.store.tables import jobs
from mam.app.context.commit_watch import FALLBACK_SECONDS, CommitWatch
from mam.app.jobs.find import document, documents
from mam.app.jobs.import_record import ensure_in_ledger
from mam.app.jobs.write_job_files import log_line
from mam.core.errors import TimedOut
from mam.core.job_rules import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Entry
    from mam.app.context.context import Context

    class Ticker(Protocol):
        """Advances open jobs when it is due, on the monotonic clock."""

        def due(self) -> float: ...
        def tick(self) -> str: ...

    Document = dict[str, Any]


def wait(
    context: Context,
    job_ids: Sequence[str],
    tell: Callable[[Document], None],
    *,
    timeout: float | None = None,
    folder: str | None = None,
    after: int | None = None,
    ticker: Ticker | None = None,
) -> list[Document]:
    """Return the jobs once all have ended; raise TimedOut at the timeout, which ends no job.

    Raises RootMissing once the state of the root is gone: then nobody can record the end any more.
    Without ids it waits for every open job. `tell` gets each new entry of their logs, or each entry after the
    number `after`. `ticker` advances the jobs when it is due, in case no resident runs.
    """
    with context.noticing_lost_state():
        context.require_own_root()
        ids = list(dict.fromkeys(job_ids)) or [
            summary["job_id"] for summary in documents(context, folder, only_open=True)
        ]
        for job_id in ids:
            ensure_in_ledger(context, job_id, folder)
        last = context.registry.peek(jobs.newest, 0) if after is None else after
        return _wait(context, ids, tell, last, timeout, ticker)


def _wait(
    context: Context,
    ids: Sequence[str],
    tell: Callable[[Document], None],
    last: int,
    timeout: float | None,
    ticker: Ticker | None,
) -> list[Document]:
    deadline = None if timeout is None else time.monotonic() + timeout
    with CommitWatch(context) as commits:
        while True:
            context.require_state()
            # The order matters: if a job has ended here, its last entry is among those that are read next.
            open_ids = _still_open(context, ids)
            for entry in _since(context, last, ids):
                last = entry.number
                tell(log_line(entry))
            if not open_ids:
                return [document(context, job_id) for job_id in ids]
            now = time.monotonic()
            if ticker is not None and now >= ticker.due():
                ticker.tick()
                continue
            if deadline is not None and now >= deadline:
                raise TimedOut(
                    f"{', '.join(sorted(open_ids)[:5])} did not end within {timeout:g} s",
                    hint=f"mam job status {min(open_ids)} shows its status",
                )
            ends = [
                now + FALLBACK_SECONDS,
                *([] if ticker is None else [ticker.due()]),
                *([deadline] if deadline else []),
            ]
            commits.wait(min(ends))


def _since(context: Context, number: int, ids: Sequence[str]) -> list[Entry]:
    none: list[Entry] = []
    return context.registry.peek(lambda transaction: jobs.since(transaction, number, ids), none)


def _still_open(context: Context, ids: Sequence[str]) -> set[str]:
    def read(transaction: Transaction) -> set[str]:
        waited_jobs = {job_id: jobs.find(transaction, job_id) for job_id in ids}
        return {job_id for job_id, job in waited_jobs.items() if job is not None and job.status in OPEN}

    return context.registry.peek(read, set(ids))
