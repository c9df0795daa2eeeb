"""Writes the ledger: every entry, the job status that follows from it, and the rows of the outbox.

No other module writes the ledger; `write_job_files.py` copies it into files. Each function works on a
transaction of its caller, so that the entry, the status and the outbox are one commit.
"""

from __future__ import annotations

from mam.adapters.store import incarnation
from mam.adapters.store.tables import jobs, outbox, set_aside
from mam.app.context.setting_aside import JOB
from mam.core import job_event as events
from mam.core import job_rules as rules
from mam.core.errors import EventRefused
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.core.job_event import Event

# The log of a job holds so many refused events; further ones are only counted.
_MOST_DROPPED = 100


def enter(transaction: Transaction, job: Job, name: str, detail: str = "", **data: Any) -> Job:
    """Write an entry that is only for the log: it has no number and is not published."""
    event = events.make(
        job.id, name, seq=0, attempt=job.attempt, timestamp=stamp(transaction.now), detail=detail, data=data
    )
    jobs.add_entry(transaction, job.id, name, event, attempt=job.attempt)
    return jobs.update(transaction, job, status=rules.status_after(job.status, name, data))


def park(transaction: Transaction, job: Job, reason: str) -> Job:
    """Park an open job: nothing is done for it, and nobody can report on it, until a person releases it."""
    job = enter(transaction, job, events.PARKED, reason)
    return jobs.update(transaction, job, status=rules.JobStatus.PARKED, data={"parked_from": str(job.status)})


def release(transaction: Transaction, job: Job, by: str) -> Job:
    """Open a parked job again. Its timeouts count from now: nobody could work on it meanwhile."""
    job = enter(transaction, job, events.RELEASED, "", by=by)
    before = job.data.get("parked_from")
    return jobs.update(
        transaction,
        job,
        status=before if before in rules.OPEN else rules.JobStatus.PENDING,
        last_event_at=transaction.now,
        data={"parked_from": None, "began": transaction.now, "activity": None, "activity_at": None},
    )


def emit(
    transaction: Transaction,
    job: Job,
    name: str,
    token: str,
    detail: str = "",
    *,
    log_as: str | None = None,
    data: dict[str, Any] | None = None,
) -> Job:
    """Write an event of mam itself with the next number, sign it and put it into the outbox."""
    return _apply(
        transaction,
        job,
        _signed_event(transaction, job, name, token, detail=detail, data=data),
        log_as or name,
    )


def take(transaction: Transaction, job: Job, event: Event, token: str) -> tuple[str, Job]:
    """Take in a signed event; return the verdict and the job after the event.

    Raises EventRefused; whoever catches it calls `record_refusal`.
    """
    if job.status == rules.JobStatus.PARKED:
        raise EventRefused(
            "the job is parked, and nothing is recorded for it before a person releases it",
            hint=f"a person runs mam job release {job.id}",
        )
    if not job.is_readable:
        raise EventRefused(
            "the record of the job is not readable, so nobody knows what ends it",
            hint=f"mam job cancel {job.id} ends it",
        )
    signature = event["data"].get("hmac_sig")
    verdict = events.judge(
        event,
        token=token,
        incarnation=transaction.meta(incarnation.KEY),
        attempt=job.attempt,
        recorded=jobs.recorded_event(transaction, job.id, events.attempt_of(event), event["seq"], signature),
        ended_seq=job.ended_seq,
        has_completed=job.status == rules.JobStatus.CHECKING,
    )
    if verdict == events.DUPLICATE:
        return verdict, job
    if verdict == events.LATE:
        jobs.add_entry(transaction, job.id, event["event"], event, attempt=job.attempt, signature=signature)
        put_into_outbox(transaction, job, event, is_status=False)
        return verdict, job
    return verdict, _apply(transaction, job, *_with_claim_marked(job, event, token), signature=signature)


def report(
    transaction: Transaction, job: Job, name: str, token: str, detail: str = "", *, data: dict[str, Any]
) -> Job:
    """Write what an agent, a person or a hook reports on a job; raise EventRefused if the job has ended."""
    return take(
        transaction, job, _signed_event(transaction, job, name, token, detail=detail, data=data), token
    )[1]


def _signed_event(
    transaction: Transaction, job: Job, name: str, token: str, *, detail: str, data: dict[str, Any] | None
) -> Event:
    """Return a signed event with the current time and the next number.

    One that is published has the incarnation of the database, within which its numbers count.
    """
    if job.data.get("broker"):
        data = {**(data or {}), "incarnation": incarnation.current(transaction)}
    event = events.make(
        job.id,
        name,
        seq=job.last_seq + 1,
        attempt=job.attempt,
        timestamp=stamp(transaction.now),
        detail=detail,
        data=data,
    )
    return events.sign(event, token)


def record_refusal(
    transaction: Transaction, job: Job, reason: str, *, mark: str | None = None, **data: Any
) -> Job:
    """Log that an event of this job was refused, and why, but not the event's content.

    A `mark` that is in the log already means that another process has logged the same event.
    """
    if mark is not None and jobs.was_dropped(transaction, job.id, mark):
        return job
    count = job.data.get("dropped", 0) + 1
    if count <= _MOST_DROPPED:
        event = events.make(
            job.id,
            events.DROPPED,
            seq=0,
            attempt=job.attempt,
            timestamp=stamp(transaction.now),
            detail=reason,
            data=data,
        )
        jobs.add_entry(transaction, job.id, events.DROPPED, event, attempt=job.attempt, signature=mark)
    return jobs.update(transaction, job, data={"dropped": count})


def needs_checking(job: Job) -> bool:
    """Tell whether mam checks an agent's `completed` before it ends the job."""
    data = job.data
    return bool(data.get("expected_artifacts") or data.get("validate") or data.get("type") == rules.LOOP)


def put_into_outbox(transaction: Transaction, job: Job, event: Event, *, is_status: bool) -> None:
    """Put an event into the outbox if its job has a broker; the newest event is also the retained status."""
    if not job.data.get("broker"):
        return
    payload = events.write(event)
    outbox.put(transaction, job.id, events.EVENTS, payload, retain=False)
    if is_status:
        outbox.put(transaction, job.id, events.STATUS, payload, retain=True)


def _with_claim_marked(job: Job, event: Event, token: str) -> tuple[Event, str]:
    """Return an event and its name in the log; a `completed` that needs checking becomes a progress."""
    data = event["data"]
    if event["event"] != events.COMPLETED or data.get("stopped") or not needs_checking(job):
        return event, event["event"]
    claim = {**event, "event": events.PROGRESS, "data": {**data, "checking": True}}
    return events.sign(claim, token), events.CHECKING


def _apply(transaction: Transaction, job: Job, event: Event, name: str, signature: str | None = None) -> Job:
    signature = signature or event["data"]["hmac_sig"]
    jobs.add_entry(transaction, job.id, name, event, attempt=job.attempt, signature=signature)
    changes: dict[str, Any] = {}
    if not job.data.get("started_at"):
        changes["started_at"] = stamp(transaction.now)
    fields: dict[str, Any] = {
        "status": rules.status_after(job.status, name, event["data"]),
        "last_seq": max(job.last_seq, event["seq"]),
        "last_event_at": transaction.now,
    }
    if name in events.TERMINAL:
        set_aside.take_up(transaction, JOB, job.id)
        fields["ended_seq"] = event["seq"]
        changes |= {
            "finished_at": stamp(transaction.now),
            "terminal_event": name,
            "terminal_detail": event["detail"],
            "reason": event["data"].get("reason"),
        }
    elif name == events.CHECKING:
        changes["claim"] = event["detail"]
    put_into_outbox(transaction, job, event, is_status=True)
    return jobs.update(transaction, job, data=changes, **fields)
