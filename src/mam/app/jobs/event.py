"""Records events of jobs that an agent or a person reports, or that arrive signed from elsewhere.

A refused event is noted in the job's log, so that a forged event leaves a trace.
"""

from __future__ import annotations

from contextlib import nullcontext

from mam.adapters.store.tables import jobs
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import not_found, resolve_id, token_of
from mam.app.jobs.import_record import ensure_in_ledger
from mam.app.jobs.write_job_files import write_files
from mam.core import job_event as events
from mam.core.errors import EventRefused, JobNotFound, NotAllowed, Usage
from mam.core.job_rules import OPEN, JobStatus, runs_command
from mam.core.root_state import RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.job_event import Event

    Document = dict[str, Any]


class SignedEvent:
    """An event from elsewhere that its job's token has signed; a refusal of it is logged with the mark."""

    __slots__ = ("event", "mark", "token")

    def __init__(self, event: Event, token: str, mark: str) -> None:
        self.event = event
        self.token = token
        self.mark = mark


def event(
    context: Context,
    caller: Caller,
    job_id: str | None,
    name: str,
    *,
    detail: str = "",
    data: dict[str, Any] | None = None,
    attempt: int | None = None,
    folder: str | None = None,
) -> Document:
    """Record an event with the next number; return `{job_id, status, event, has_broker}`.

    The event is durable when this returns. A bare `started` makes no second entry if the start of the attempt
    is in the log already, because a hook reported it. A session reports only on its own job; any other caller
    who can read the job's token may report. Raises EventRefused if the job has ended or has moved to another
    attempt, and NotAllowed if the job is not the caller's.
    """
    with _reporting(context):
        return _event(context, caller, job_id, name, detail=detail, data=data, attempt=attempt, folder=folder)


def _reporting(context: Context) -> AbstractContextManager[None]:
    """In a root of somebody else, and of another container, an event is recorded and nothing more.

    The token of the job proves it: whoever can read that file may report.
    """
    if context.root.verdict().state in (RootState.FOREIGN, RootState.ELSEWHERE):
        return context.registry.reporting()
    return nullcontext()


def _event(
    context: Context,
    caller: Caller,
    job_id: str | None,
    name: str,
    *,
    detail: str,
    data: dict[str, Any] | None,
    attempt: int | None,
    folder: str | None,
) -> Document:
    resolved_id = resolve_id(context, job_id)
    if name not in events.ON_THE_WIRE:
        raise Usage(f"{name[:40]!r} is not an event", hint=f"events are {', '.join(events.ON_THE_WIRE)}")
    ensure_in_ledger(context, resolved_id, folder)
    token, me = token_of(context, resolved_id), caller.name
    fields = {key: value for key, value in (data or {}).items() if key not in _RESERVED}
    events.check_data(fields)
    outcome: Document = {}

    def work(transaction: Transaction, job: Job) -> None:
        _check_caller(job, caller)
        _refuse_end_of_command(job, name)
        if attempt is not None and attempt != job.attempt:
            raise EventRefused(
                f"it belongs to an older attempt ({attempt}, the current one is {job.attempt})"
            )
        is_known = name == events.STARTED and job.status == JobStatus.RUNNING and not (detail or fields)
        entry = jobs.started_entry(transaction, job) if is_known else None
        if entry is None:
            job = ledger_writer.report(transaction, job, name, token, detail, data={**fields, "by": me})
            entry = jobs.last_entry(transaction, resolved_id)
        assert entry is not None
        has_broker = bool(job.data.get("broker"))
        outcome.update(job_id=resolved_id, status=job.status, event=entry.document, has_broker=has_broker)

    _with_refusals_logged(context, caller, resolved_id, work)
    return outcome


def take_in(
    context: Context,
    caller: Caller,
    payload: bytes | str,
    *,
    job_id: str | None = None,
    is_retained: bool = False,
    mark: str | None = None,
) -> Document:
    """Take in bytes from outside; return `{job_id, verdict, reason}` and never raise for their content.

    `job_id` is the job that the topic names. The verdict is applied, late, duplicate or refused. A retained
    message repeats an earlier event, so it is refused. A refusal with a `mark` is logged once, even if
    several processes received the same bytes.
    """
    try:
        if is_retained:
            raise EventRefused("the event is a retained message")
        parsed = events.parse(payload, job_id)
        _check_number(parsed)
        parsed_id = parsed["job_id"]
        ensure_in_ledger(context, parsed_id)
        verdict = _take_signed(context, caller, parsed_id, parsed, mark)
    except (EventRefused, JobNotFound, NotAllowed) as error:
        if not isinstance(error, EventRefused) or not error.recorded:
            _log_refusal(context, caller, job_id, error.message, mark)
        return {"job_id": job_id, "verdict": "refused", "reason": error.message}
    return {"job_id": parsed_id, "verdict": verdict, "reason": None}


def take_in_together(context: Context, caller: Caller, signed: Sequence[SignedEvent]) -> list[Document]:
    """Take in events of jobs in the ledger in one commit; return for each what `take_in` returns.

    A commit and the files of a job cost more than the events in them.
    """

    def run(transaction: Transaction) -> list[Document]:
        return [_taken(context, transaction, caller, one) for one in signed]

    outcomes = context.registry.note(run)
    for job_id in dict.fromkeys(one.event["job_id"] for one in signed):
        write_files(context, job_id)
    return outcomes


def _taken(context: Context, transaction: Transaction, caller: Caller, signed: SignedEvent) -> Document:
    parsed, job_id = signed.event, signed.event["job_id"]
    verdicts = []

    def work(transaction: Transaction, job: Job) -> None:
        _check_number(parsed)
        _refuse_end_of_command(job, parsed["event"])
        verdicts.append(ledger_writer.take(transaction, job, parsed, signed.token)[0])

    error = _logging_refusal(context, transaction, caller, job_id, work, signed.mark)
    verdict, reason = (verdicts[0], None) if error is None else ("refused", error.message)
    return {"job_id": job_id, "verdict": verdict, "reason": reason}


def _check_number(parsed: Event) -> None:
    if parsed["seq"] > events.HIGHEST_GIVEN:
        raise EventRefused("the seq of the event leaves no number for the next event")


def note_refusals(context: Context, job_id: str, count: int) -> None:
    """Log that so many events of a job were refused that have no entry of their own."""
    reason = f"{count} further events were refused: the job's token did not sign them"

    def work(transaction: Transaction) -> None:
        job = jobs.find(transaction, job_id)
        if job is not None:
            ledger_writer.record_refusal(transaction, job, reason, count=count)

    context.registry.note(work)
    write_files(context, job_id)


# Keys of an event's data that only mam may set.
_RESERVED = ("attempt", "incarnation", "hmac_sig", "stopped", "checking", "reason", "by")


def _take_signed(context: Context, caller: Caller, job_id: str, parsed: Event, mark: str | None) -> str:
    token = token_of(context, job_id)
    verdicts: list[str] = []

    def work(transaction: Transaction, job: Job) -> None:
        _refuse_end_of_command(job, parsed["event"])
        verdicts.append(ledger_writer.take(transaction, job, parsed, token)[0])

    _with_refusals_logged(context, caller, job_id, work, mark)
    return verdicts[-1]


def _check_caller(job: Job, caller: Caller) -> None:
    """Refuse a session that reports on the job of another one. Everybody else has the job's token."""
    if caller.session_id not in (None, job.session_id):
        raise NotAllowed(
            f"job {job.id} belongs to another session",
            hint="whoever submitted the job can cancel it with mam job cancel",
        )


def _refuse_end_of_command(job: Job, name: str) -> None:
    if name in events.TERMINAL and job.status in OPEN and runs_command(job.data):
        raise EventRefused(
            "the exit status of its command ends this job, and no report",
            hint=f"exit with 0 or another status, or mam job cancel {job.id}",
        )


def _with_refusals_logged(
    context: Context, caller: Caller, job_id: str, work: Any, mark: str | None = None
) -> None:
    """Run `work` on a job under the write lock. A refusal is committed to the job's log, and then raised."""

    error = context.registry.note(
        lambda transaction: _logging_refusal(context, transaction, caller, job_id, work, mark)
    )
    write_files(context, job_id)
    if error is not None:
        error.recorded = True
        raise error


def _logging_refusal(
    context: Context, transaction: Transaction, caller: Caller, job_id: str, work: Any, mark: str | None
) -> EventRefused | NotAllowed | None:
    """Run `work` on a job; log a refusal in the same transaction, and return it."""
    job = jobs.find(transaction, job_id)
    if job is None:
        raise not_found(context, job_id)
    try:
        work(transaction, job)
    except (EventRefused, NotAllowed) as error:
        ledger_writer.record_refusal(transaction, job, error.message, mark=mark, by=caller.name)
        return error
    return None


def _log_refusal(context: Context, caller: Caller, job_id: str | None, reason: str, mark: str | None) -> None:
    """Log a refusal: in the log of the job that the topic names, or in the log of the root."""
    if not context.paths.exists():
        return

    def work(transaction: Transaction) -> bool:
        job = jobs.find(transaction, job_id) if job_id else None
        if job is None:
            transaction.log(caller.name, "job event", None, reason, job=job_id)
            return False
        ledger_writer.record_refusal(transaction, job, reason, mark=mark)
        return True

    if context.registry.note(work):
        write_files(context, job_id or "")
