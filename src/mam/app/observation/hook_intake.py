"""Moving the payloads of hooks from the spool into the evidence table and the log of the session's job.

Changing verbs, the resident, `wait` and `job wait` do this. A verb that only reads uses
`newest_hook_reports.py`.
"""

from __future__ import annotations

import os

from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import evidence, messages
from mam.app.observation.newest_hook_reports import COARSE_SECONDS, interpret, read_prompt
from mam.core.errors import Unavailable
from mam.core.names import is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.files.hook_spool import Payload
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# A payload without a row stays in the spool this long: the row of its session may be committed soon.
_WAITS_SECONDS = 300.0


def take_in(context: Context) -> None:
    """Record every payload of a registered session, and remove it from the spool.

    Where the database cannot be written, all payloads stay in the spool, and readers find them there.
    """
    hook_spool.remove_unfinished(context.paths.spool)
    now = context.now()
    pending = hook_spool.pending(context.paths.spool, now)
    if not pending:
        return
    by_id = {row["id"]: row for row in context.registry.view_to_show().rows if row.get("id")}
    due = [payload for payload in pending if payload.session_id in by_id or _is_without_session(payload, now)]
    readable = [payload for payload in due if payload.data is not None]
    reports = [
        (payload, data)
        for payload in readable
        if (row := by_id.get(payload.session_id)) and (data := interpret(context, row, payload))
    ]
    prompts = _late_prompts(context, readable, by_id)

    def work(transaction: Transaction) -> None:
        _record(context, transaction, reports, by_id)
        for payload, prompt in prompts:
            row = by_id[payload.session_id]
            messages.correct_by_prompt(transaction, row, prompt, payload.at + COARSE_SECONDS)

    try:
        context.registry.note(work)
    except Unavailable:
        return
    for payload in readable:
        _remove(payload.path)


def _late_prompts(
    context: Context, payloads: list[Payload], rows: dict[str, Row]
) -> list[tuple[Payload, str]]:
    """Return the prompts that hooks report for sessions with unconfirmed messages: they may prove one."""
    nothing: list[str] = []
    waiting = context.registry.peek(messages.sessions_with_unconfirmed, nothing)
    return [
        (payload, prompt)
        for payload in payloads
        if payload.session_id in waiting
        and (row := rows.get(payload.session_id))
        and (prompt := read_prompt(context, row, payload)) is not None
    ]


def _is_without_session(payload: Payload, now: float) -> bool:
    return not is_session_id(payload.session_id) or now - payload.at > _WAITS_SECONDS


def _record(
    context: Context,
    transaction: Transaction,
    reports: list[tuple[Payload, dict[str, Any]]],
    rows: dict[str, Row],
) -> None:
    """Record the newest report of each session, and enter every report into the log of the session's job."""
    changed: set[str] = set()
    for payload, data in reports:
        if not data["state"]:
            continue
        evidence.record(transaction.connection, payload.session_id, "hook", payload.at, data)
        row = rows[payload.session_id]
        if row.get("delegate_job_id"):
            from mam.app.jobs.report_activity import report_activity

            job_id = report_activity(
                context,
                transaction,
                row,
                data["state"],
                data.get("waiting_for"),
                at=payload.at,
                asks=data.get("asks"),
            )
            changed |= {job_id} if job_id else set()
    if changed:
        transaction.after_commit(lambda: _show_jobs(context, changed))


def _show_jobs(context: Context, job_ids: set[str]) -> None:
    from mam.app.jobs.write_job_files import write_files

    for job_id in job_ids:
        write_files(context, job_id)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Another process has removed the file, or the file cannot be removed. To take a payload in twice
        # changes nothing.
        return
