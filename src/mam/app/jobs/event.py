"""Report an event of a job: by its agent, by a person, or as bytes that were signed elsewhere.

What is refused is written into the job's log, so that a forged event leaves a trace.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.jobs import ledger
from mam.app.jobs.find import enrol, meant, token_of, unknown
from mam.app.jobs.write_files import show
from mam.core import job_event as events
from mam.core.errors import EventRefused, JobNotFound, NotAllowed, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.job_event import Event

    Document = dict[str, Any]


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
    """Record an event with the next number; return `{job_id, status, event, has_broker}`, durable.

    A session reports only on its own job. Raises EventRefused where the job has ended or goes on with
    another attempt, NotAllowed where the job is not the caller's.
    """
    found = meant(context, job_id)
    if name not in events.ON_THE_WIRE:
        raise Usage(f"{name[:40]!r} is not an event", hint=f"events are {', '.join(events.ON_THE_WIRE)}")
    enrol(context, found, folder)
    token, me = token_of(context, found), caller.name
    given = {key: value for key, value in (data or {}).items() if key not in _OURS}
    events.check_data(given)
    done: Document = {}

    def work(draft: Transaction, job: Job) -> None:
        _check_caller(job, me)
        if attempt is not None and attempt != job.attempt:
            raise EventRefused(f"it is of an older attempt ({attempt}, now it is {job.attempt})")
        job = ledger.report(draft, job, name, token, detail, data={**given, "by": me})
        entry = jobs.last_entry(draft, found)
        assert entry is not None
        named = bool(job.data.get("broker"))
        done.update(job_id=found, status=job.status, event=entry.document, has_broker=named)

    _guarded(context, caller, found, work)
    return done


def take_in(
    context: Context,
    caller: Caller,
    payload: bytes | str,
    *,
    job_id: str | None = None,
    is_retained: bool = False,
    mark: str | None = None,
) -> Document:
    """Take in bytes that came from outside; return `{job_id, verdict, reason}`, whatever they say.

    `job_id` is the one that the topic names. The verdict is applied, late, duplicate or refused. A retained
    message is an echo of what was said before: it is refused. What was refused under a `mark` is in the log
    once, however many heard it.
    """
    try:
        if is_retained:
            raise EventRefused("it is a retained message")
        parsed = events.parse(payload, job_id)
        if parsed["seq"] > events.HIGHEST_GIVEN:
            raise EventRefused("its seq leaves no number for the next event")
        named = parsed["job_id"]
        enrol(context, named)
        verdict = _take(context, caller, named, parsed, mark)
    except (EventRefused, JobNotFound, NotAllowed) as error:
        if not isinstance(error, EventRefused) or not error.recorded:
            _note_refused(context, caller, job_id, error.message, mark)
        return {"job_id": job_id, "verdict": "refused", "reason": error.message}
    return {"job_id": named, "verdict": verdict, "reason": None}


# What only mam itself says of an event.
_OURS = ("attempt", "hmac_sig", "stopped", "checking", "reason", "by")


def _take(context: Context, caller: Caller, job_id: str, parsed: Event, mark: str | None) -> str:
    token = token_of(context, job_id)
    verdicts: list[str] = []

    def work(draft: Transaction, job: Job) -> None:
        verdicts.append(ledger.take(draft, job, parsed, token)[0])

    _guarded(context, caller, job_id, work, mark)
    return verdicts[-1]


def _check_caller(job: Job, me: str) -> None:
    if me not in ("user", job.session_id):
        raise NotAllowed(
            f"job {job.id} belongs to another session", hint="mam job cancel is for those who submitted it"
        )


def _guarded(context: Context, caller: Caller, job_id: str, work: Any, mark: str | None = None) -> None:
    """Run work on a job under the write lock; a refusal is committed to its log, and then raised."""

    def guarded(draft: Transaction) -> EventRefused | NotAllowed | None:
        job = jobs.find(draft, job_id)
        if job is None:
            raise unknown(context, job_id)
        try:
            work(draft, job)
        except (EventRefused, NotAllowed) as error:
            ledger.drop(draft, job, error.message, mark=mark, by=caller.name)
            return error
        return None

    error = context.registry.note(guarded)
    show(context, job_id)
    if error is not None:
        error.recorded = True
        raise error


def _note_refused(
    context: Context, caller: Caller, job_id: str | None, reason: str, mark: str | None
) -> None:
    """Write down what was refused: in the log of the job that the topic names, or in the log of the root."""
    if not context.paths.exists():
        return

    def work(draft: Transaction) -> bool:
        job = jobs.find(draft, job_id) if job_id else None
        if job is None:
            draft.log(caller.name, "job event", None, reason, job=job_id)
            return False
        ledger.drop(draft, job, reason, mark=mark)
        return True

    if context.registry.note(work):
        show(context, job_id or "")
