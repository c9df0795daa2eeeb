"""Having an event at the broker before a verb returns: by the resident's connection, or one of our own."""

from __future__ import annotations

import time
from functools import partial

from mam.adapters.store.tables import jobs, outbox
from mam.adapters.system import load_adjusted_clock
from mam.app.brokers import config as brokers
from mam.app.context import start_resident
from mam.app.context.commit_watch import Commits
from mam.core import broker as rules
from mam.core.errors import MamError, NotPublished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.outbox import OutboxRow
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.broker import Broker

_SECONDS, _FLUSH_SECONDS = 5.0, 2.0
# The resident is connected already: if it does not publish at once, it cannot.
_RESIDENT_SECONDS = 1.0


def publish(context: Context, job_id: str, seconds: float | None = None) -> bool:
    """Return once the broker has all that is to be published of a job; False for a job without a broker.

    Raises NotPublished: it is recorded, and goes out when the broker is there.
    """
    seconds = load_adjusted_clock.stretched(_SECONDS) if seconds is None else seconds
    deadline = time.monotonic() + seconds
    broker = _broker_of(context, job_id)
    if broker is None:
        return False
    # A resident may have been faster.
    if not _waiting(context, job_id):
        return True
    resident_seconds = load_adjusted_clock.stretched(_RESIDENT_SECONDS)
    if start_resident.lock(context).holder() is not None and _goes_out(
        context, job_id, min(seconds, resident_seconds)
    ):
        return True
    try:
        _send(context, broker, job_id, deadline)
    except MamError as error:
        raise NotPublished(
            f"recorded, and not published yet: {error}",
            hint="do not repeat it: it goes out when the broker is there",
        ) from error
    return True


def flush(context: Context) -> None:
    """Publish what waits where nobody is awake to do it; what cannot be is warned of, and goes out later."""
    none: list[str] = []
    try:
        waiting = context.registry.peek(outbox.waiting_jobs, none)
        if waiting and start_resident.lock(context).holder() is None:
            _flush(context, waiting)
    except MamError as error:
        context.warn(error.message)


def _flush(context: Context, waiting: list[str]) -> None:
    """Publish what waits; a broker that is away is asked once, and holds up no other."""
    away: set[str] = set()
    for job_id in waiting:
        broker = _broker_of(context, job_id)
        if broker is None or broker.address in away:
            continue
        try:
            publish(context, job_id, _FLUSH_SECONDS)
        except NotPublished as error:
            away.add(broker.address)
            context.warn(error.message)


def _goes_out(context: Context, job_id: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    with Commits(context) as commits:
        while _waiting(context, job_id):
            if time.monotonic() >= deadline:
                return False
            commits.wait(deadline)
    return True


def _send(context: Context, broker: Broker, job_id: str, deadline: float) -> None:
    from mam.adapters.mqtt.connection import Connection

    link = Connection(broker, brokers.password(context, broker), role="event")
    try:
        link.open(deadline - time.monotonic())
        while parcels := _waiting(context, job_id):
            sent = {
                link.publish(broker.topic(job_id, one.topic), one.payload, retain=one.retain): one.seq
                for one in parcels
            }
            link.finish(sent, max(0.1, deadline - time.monotonic()))
            context.registry.note(partial(outbox.settle, numbers=list(sent.values())))
    finally:
        link.close()


def _waiting(context: Context, job_id: str) -> list[OutboxRow]:
    none: list[OutboxRow] = []
    return context.registry.peek(lambda draft: outbox.waiting(draft, job_id=job_id), none)


def _broker_of(context: Context, job_id: str) -> Broker | None:
    def read(draft: Transaction) -> Broker | None:
        job = jobs.find(draft, job_id)
        return rules.of_record(job.data) if job else None

    return context.registry.peek(read, None)
