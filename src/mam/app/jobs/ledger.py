"""The only way into a job's log: every entry, the status that follows from it, and what is to be published.

All of it works on a draft, so an entry, the new status and the rows of the outbox are one commit.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs, outbox
from mam.core import job as rules
from mam.core import job_event as events
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.core.job_event import Event

# So many refused events of one job are written down one by one; the others are counted.
_MOST_DROPPED = 100


def enter(draft: Transaction, job: Job, name: str, detail: str = "", **data: Any) -> Job:
    """Write an entry that is for the log alone: it has no number of its own and is not published."""
    event = events.make(
        job.id, name, seq=0, attempt=job.attempt, timestamp=stamp(draft.now), detail=detail, data=data
    )
    jobs.enter(draft, job.id, name, event, attempt=job.attempt)
    return jobs.update(draft, job, status=rules.after(job.status, name, data))


def emit(
    draft: Transaction,
    job: Job,
    name: str,
    token: str,
    detail: str = "",
    *,
    log_as: str | None = None,
    data: dict[str, Any] | None = None,
) -> Job:
    """Write an event of ours, with the next number and signed, and have it published."""
    return _apply(draft, job, _next(draft, job, name, token, detail=detail, data=data), log_as or name)


def take(draft: Transaction, job: Job, event: Event, token: str) -> tuple[str, Job]:
    """Take in an event that was signed elsewhere; return what it turned out to be, and the job after it.

    Raises EventRefused; whoever catches it calls `drop`.
    """
    signature = event["data"].get("hmac_sig")
    verdict = events.judge(
        event,
        token=token,
        attempt=job.attempt,
        seen=jobs.seen(draft, job.id, events.attempt_of(event), event["seq"], signature),
        ended=job.ended_seq,
        has_completed=job.status == rules.JobStatus.CHECKING,
    )
    if verdict == events.DUPLICATE:
        return verdict, job
    if verdict == events.LATE:
        jobs.enter(draft, job.id, event["event"], event, attempt=job.attempt, signature=signature)
        publish(draft, job, event, is_status=False)
        return verdict, job
    return verdict, _apply(draft, job, *_checked(job, event, token), signature=signature)


def report(
    draft: Transaction, job: Job, name: str, token: str, detail: str = "", *, data: dict[str, Any]
) -> Job:
    """Write what an agent, a person or a hook says of a job now; raises EventRefused once it has ended."""
    return take(draft, job, _next(draft, job, name, token, detail=detail, data=data), token)[1]


def _next(
    draft: Transaction, job: Job, name: str, token: str, *, detail: str, data: dict[str, Any] | None
) -> Event:
    """Return an event of now, with the next number and signed."""
    event = events.make(
        job.id,
        name,
        seq=job.last_seq + 1,
        attempt=job.attempt,
        timestamp=stamp(draft.now),
        detail=detail,
        data=data,
    )
    return events.sign(event, token)


def drop(draft: Transaction, job: Job, reason: str, *, mark: str | None = None, **data: Any) -> Job:
    """Write down that an event of this job was refused, and why. What it said is not repeated.

    One with a `mark` that was written down before is the same one, heard by another.
    """
    if mark is not None and jobs.was_dropped(draft, job.id, mark):
        return job
    count = job.data.get("dropped", 0) + 1
    if count <= _MOST_DROPPED:
        event = events.make(
            job.id,
            events.DROPPED,
            seq=0,
            attempt=job.attempt,
            timestamp=stamp(draft.now),
            detail=reason,
            data=data,
        )
        jobs.enter(draft, job.id, events.DROPPED, event, attempt=job.attempt, signature=mark)
    return jobs.update(draft, job, data={"dropped": count})


def needs_checking(job: Job) -> bool:
    """Tell whether an agent's `completed` is looked at before it is believed."""
    data = job.data
    return bool(data.get("expected_artifacts") or data.get("validate") or data.get("type") == rules.LOOP)


def publish(draft: Transaction, job: Job, event: Event, *, is_status: bool) -> None:
    """Have an event published if its job has a broker; the newest one is also the retained status."""
    if not job.data.get("broker"):
        return
    payload = events.write(event)
    outbox.put(draft, job.id, events.EVENTS, payload, retain=False)
    if is_status:
        outbox.put(draft, job.id, events.STATUS, payload, retain=True)


def _checked(job: Job, event: Event, token: str) -> tuple[Event, str]:
    """Return an event and what the log calls it: a `completed` that is not believed yet is a progress."""
    data = event["data"]
    if event["event"] != events.COMPLETED or data.get("stopped") or not needs_checking(job):
        return event, event["event"]
    held = {**event, "event": events.PROGRESS, "data": {**data, "checking": True}}
    return events.sign(held, token), events.CHECKING


def _apply(draft: Transaction, job: Job, event: Event, name: str, signature: str | None = None) -> Job:
    signature = signature or event["data"]["hmac_sig"]
    jobs.enter(draft, job.id, name, event, attempt=job.attempt, signature=signature)
    known: dict[str, Any] = {}
    if not job.data.get("started_at"):
        known["started_at"] = stamp(draft.now)
    fields: dict[str, Any] = {
        "status": rules.after(job.status, name, event["data"]),
        "last_seq": max(job.last_seq, event["seq"]),
        "last_event_at": draft.now,
    }
    if name in events.TERMINAL:
        fields["ended_seq"] = event["seq"]
        known |= {
            "finished_at": stamp(draft.now),
            "terminal_event": name,
            "terminal_detail": event["detail"],
            "reason": event["data"].get("reason"),
        }
    elif name == events.CHECKING:
        known["claim"] = event["detail"]
    publish(draft, job, event, is_status=True)
    return jobs.update(draft, job, data=known, **fields)
