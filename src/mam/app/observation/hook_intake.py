"""Moving the payloads of hooks from the spool into the evidence table and the log of the session's job.

Changing verbs, the resident, `wait` and `job wait` do this. A verb that only reads uses
`newest_hook_reports.py`.
"""

from __future__ import annotations

import os

from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import evidence, messages
from mam.app.context import setting_aside
from mam.app.observation.newest_hook_reports import COARSE_SECONDS, as_report, read_event
from mam.core.activity import WAITING
from mam.core.errors import Unavailable
from mam.core.names import is_session_id
from mam.core.session_row import is_purged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.adapters.store.files.hook_spool import Payload
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# A payload without a row stays in the spool this long: the row of its session may be committed soon.
_WAITS_SECONDS = 300.0
# One transaction takes in so many payloads, and so many bytes of them.
_MOST_OF_BATCH, _BYTES_OF_BATCH = 500, 16 * 1024 * 1024


def take_in(context: Context) -> None:
    """Record every payload of a registered session, and remove it from the spool.

    Where the database cannot be written, all payloads stay in the spool, and readers find them there. The
    payloads are taken in by batches: each is one transaction, and mam keeps the content of none.
    """
    hook_spool.remove_unfinished(context.paths.spool)
    now = context.now()
    pending = hook_spool.pending(context.paths.spool, now)
    if not pending:
        return
    by_id = {row["id"]: row for row in context.registry.view_to_show().rows if row.get("id")}
    due = [payload for payload in pending if payload.session_id in by_id or _is_without_session(payload, now)]
    for batch in _batches(due):
        if not _take_in_batch(context, batch, by_id):
            return


def _batches(payloads: list[Payload]) -> Iterator[list[Payload]]:
    """Yield the payloads in order, each time as many as one transaction takes."""
    batch: list[Payload] = []
    size = 0
    for payload in payloads:
        if batch and (len(batch) >= _MOST_OF_BATCH or size + payload.size > _BYTES_OF_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += 0 if payload.is_too_large else payload.size
    if batch:
        yield batch


def _take_in_batch(context: Context, batch: list[Payload], by_id: dict[str, Row]) -> bool:
    """Record some payloads and remove their files; return False if the database cannot be written."""
    reports, prompts = _read(context, batch, by_id)

    def work(transaction: Transaction) -> None:
        _record(context, transaction, reports, by_id)
        for payload, prompt in prompts:
            row = by_id[payload.session_id]
            with setting_aside.isolated(transaction, setting_aside.PAYLOAD, payload.session_id):
                messages.correct_by_prompt(transaction, row, prompt, payload.at + COARSE_SECONDS)
        _note_unusable(transaction, batch, by_id)

    try:
        context.registry.note(work)
    except Unavailable:
        return False
    for payload in batch:
        if not payload.is_gone:
            _remove(payload.path)
    return True


def _read(
    context: Context, batch: list[Payload], by_id: dict[str, Row]
) -> tuple[list[tuple[Payload, dict[str, Any]]], list[tuple[Payload, str]]]:
    """Return the reports of some payloads, and the prompts for sessions with unconfirmed messages.

    Such a prompt may prove a message.
    """
    nothing: list[str] = []
    unconfirmed = context.registry.peek(messages.sessions_with_unconfirmed, nothing)
    reports: list[tuple[Payload, dict[str, Any]]] = []
    prompts: list[tuple[Payload, str]] = []
    for payload in batch:
        row = None if payload.is_too_large else by_id.get(payload.session_id)
        event = read_event(context, row, payload) if row is not None else None
        if event is not None:
            reports.append((payload, as_report(event)))
            if event.prompt is not None and payload.session_id in unconfirmed:
                prompts.append((payload, event.prompt))
    return reports, prompts


def _note_unusable(transaction: Transaction, batch: list[Payload], by_id: dict[str, Row]) -> None:
    """Log the payloads that are removed without their content: too large ones, and those that mam fails on.

    There is one entry for the large ones of a session, and one for each reason to fail.
    """
    refused: dict[str, list[Payload]] = {}
    for payload in batch:
        row, reason = by_id.get(payload.session_id), payload.flaw
        if payload.is_too_large:
            refused.setdefault(payload.session_id, []).append(payload)
        elif reason and setting_aside.record(transaction, setting_aside.PAYLOAD, payload.session_id, reason):
            transaction.log("mam", "hook", row, f"a payload was removed because mam failed on it: {reason}")
    largest = hook_spool.LARGEST_PAYLOAD >> 20
    for session_id, payloads in refused.items():
        transaction.log(
            "mam",
            "hook",
            by_id.get(session_id),
            f"a payload larger than {largest} MiB was removed unread",
            payloads=len(payloads),
            bytes=sum(payload.size for payload in payloads),
        )


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
    purged = {
        session_id
        for session_id in {payload.session_id for payload, _ in reports}
        if (current := transaction.get(session_id)) is not None and is_purged(current)
    }
    for payload, data in reports:
        if not data["state"]:
            continue
        if payload.session_id not in purged:
            # The last report of a purged session names its conversation, and may come after the purge.
            evidence.record(
                transaction.connection, payload.session_id, "hook", payload.at, data, transaction.now
            )
            if data["state"] != WAITING:
                # The dialog that was open before is closed: one with the same words is another one.
                evidence.clear_older(transaction.connection, payload.session_id, evidence.DIALOG, payload.at)
        row = rows[payload.session_id]
        if job_id := row.get("delegate_job_id"):
            with setting_aside.isolated(transaction, setting_aside.JOB, job_id):
                changed |= _report_to_job(context, transaction, row, payload.at, data)
    if changed:
        transaction.after_commit(lambda: _show_jobs(context, changed))


def _report_to_job(
    context: Context, transaction: Transaction, row: Row, at: float, data: dict[str, Any]
) -> set[str]:
    from mam.app.jobs.report_activity import report_activity

    state, waiting_for, asks = data["state"], data.get("waiting_for"), data.get("asks")
    job_id = report_activity(context, transaction, row, state, waiting_for, at=at, asks=asks)
    return {job_id} if job_id else set()


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
