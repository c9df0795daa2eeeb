"""Taking in what hooks reported: into the record of evidence and the log of the session's job.

Changing verbs, the resident, `wait` and `job wait` do this. A verb that only reads uses `hook_reports`.
"""

from __future__ import annotations

import os

from mam.adapters.store.tables import evidence
from mam.app.observation.hook_reports import understand
from mam.core.errors import Unavailable
from mam.core.names import is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.evidence import Payload
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# How long a payload waits for the row of its session.
_WAITS_SECONDS = 300.0


def take_in(context: Context) -> None:
    """Record every payload of a session that is registered, and remove it from the spool.

    Others wait for a row that may be about to be committed. Where nothing can be written all stay in the
    spool, and readers find them there.
    """
    evidence.remove_halves(context.paths.spool)
    now = context.now()
    waiting = evidence.pending(context.paths.spool, now)
    if not waiting:
        return
    by_id = {row["id"]: row for row in context.registry.view().rows if row.get("id")}
    ours = [payload for payload in waiting if payload.session_id in by_id or _is_nobodys(payload, now)]
    readable = [payload for payload in ours if payload.data is not None]
    understood = [
        (payload, data)
        for payload in readable
        if (row := by_id.get(payload.session_id)) and (data := understand(context, row, payload))
    ]
    try:
        context.registry.note(lambda draft: _record(context, draft, understood, by_id))
    except Unavailable:
        return
    for payload in readable:
        _remove(payload.path)


def _is_nobodys(payload: Payload, now: float) -> bool:
    return not is_session_id(payload.session_id) or now - payload.at > _WAITS_SECONDS


def _record(
    context: Context,
    draft: Transaction,
    understood: list[tuple[Payload, dict[str, Any]]],
    rows: dict[str, Row],
) -> None:
    """Keep the newest report of each session, and enter each one into the log of the session's job."""
    changed: set[str] = set()
    for payload, data in understood:
        if not data["state"]:
            continue
        evidence.record(draft.connection, payload.session_id, "hook", payload.at, data)
        row = rows[payload.session_id]
        if row.get("delegate_job_id"):
            from mam.app.jobs.session_events import hear

            job_id = hear(context, draft, row, data["state"], data.get("waiting_for"), at=payload.at)
            changed |= {job_id} if job_id else set()
    if changed:
        draft.after_commit(lambda: _show_jobs(context, changed))


def _show_jobs(context: Context, job_ids: set[str]) -> None:
    from mam.app.jobs.write_files import show

    for job_id in job_ids:
        show(context, job_id)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Somebody else took it, or may not: it is taken in again, which changes nothing.
        return
