"""Wait for jobs to end, and hear each of their events when it is recorded."""

from __future__ import annotations

import time

from mam.adapters.store.tables import jobs
from mam.app.context.commit_watch import NET, Commits
from mam.app.jobs.find import document, documents, enrol
from mam.app.jobs.write_files import line
from mam.core.errors import TimedOut
from mam.core.job import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from mam.adapters.store.tables.jobs import Entry
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

    class Tend(Protocol):
        """Somebody who sees to open jobs, on the monotonic clock."""

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
    tend: Tend | None = None,
) -> list[Document]:
    """Return the jobs once all have ended; raises TimedOut, which ends the waiting and no job.

    Without ids every open job is meant. `tell` gets each entry of their logs from now on, or from behind
    entry `after` on. `tend` sees to the jobs when it is due, where nobody else is awake to do so.
    """
    wanted = list(dict.fromkeys(job_ids)) or [
        one["job_id"] for one in documents(context, folder, only_open=True)
    ]
    for job_id in wanted:
        enrol(context, job_id, folder)
    last = context.registry.peek(jobs.newest, 0) if after is None else after
    deadline = None if timeout is None else time.monotonic() + timeout
    with Commits(context) as commits:
        while True:
            # In this order: an end that is seen here has its entry in what is read next.
            left = _open(context, wanted)
            for entry in _since(context, last, wanted):
                last = entry.number
                tell(line(entry))
            if not left:
                return [document(context, job_id) for job_id in wanted]
            now = time.monotonic()
            if tend is not None and now >= tend.due():
                tend.tick()
                continue
            if deadline is not None and now >= deadline:
                raise TimedOut(
                    f"{', '.join(sorted(left)[:5])} did not end within {timeout:g} s",
                    hint=f"mam job status {min(left)} says how it stands",
                )
            ends = [now + NET, *([] if tend is None else [tend.due()]), *([deadline] if deadline else [])]
            commits.wait(min(ends))


def _since(context: Context, number: int, wanted: Sequence[str]) -> list[Entry]:
    none: list[Entry] = []
    return context.registry.peek(lambda draft: jobs.since(draft, number, wanted), none)


def _open(context: Context, wanted: Sequence[str]) -> set[str]:
    def read(draft: Transaction) -> set[str]:
        found = {job_id: jobs.find(draft, job_id) for job_id in wanted}
        return {job_id for job_id, job in found.items() if job is not None and job.status in OPEN}

    return context.registry.peek(read, set(wanted))
