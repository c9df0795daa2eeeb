"""Publishes the events of a job before a verb returns.

The resident publishes them if it runs, because it is connected already. Otherwise this process connects.
"""

from __future__ import annotations

import time
from functools import partial

from mam.adapters.store.tables import jobs, outbox
from mam.adapters.system import load_adjusted_clock
from mam.app.brokers import config as brokers
from mam.app.context import resident_start_and_lock
from mam.app.context.commit_watch import CommitWatch
from mam.core import broker_address as rules
from mam.core.errors import MamError, NotPublished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.outbox import OutboxRow
    from mam.app.context.context import Context
    from mam.core.broker_address import Broker

_SECONDS, _FLUSH_SECONDS = 5.0, 2.0
# Seconds for the resident. It is connected already: if it does not publish at once, it cannot.
_RESIDENT_SECONDS = 1.0


def publish(context: Context, job_id: str, seconds: float | None = None) -> bool:
    """Return True once the broker has everything of a job's outbox; False for a job without a broker.

    Raises NotPublished if the broker does not take it. The outbox keeps it for later.
    """
    seconds = load_adjusted_clock.stretched(_SECONDS) if seconds is None else seconds
    deadline = time.monotonic() + seconds
    broker = _broker_of(context, job_id)
    if broker is None:
        return False
    # The resident may have published it already.
    if not _unpublished(context, job_id):
        return True
    resident_seconds = load_adjusted_clock.stretched(_RESIDENT_SECONDS)
    if resident_start_and_lock.working_holder(context) is not None and _resident_publishes(
        context, job_id, min(seconds, resident_seconds)
    ):
        return True
    try:
        _send(context, broker, job_id, deadline)
    except MamError as error:
        raise NotPublished(
            f"the event is recorded but not published yet: {error}",
            hint="do not repeat it: mam publishes the event when the broker is reachable",
        ) from error
    return True


def flush(context: Context) -> None:
    """Publish the outbox if no resident runs; warn of what cannot be published now."""
    none: list[str] = []
    try:
        job_ids = context.registry.peek(outbox.waiting_jobs, none)
        if job_ids and resident_start_and_lock.working_holder(context) is None:
            _flush(context, job_ids)
    except MamError as error:
        context.warn(error.message)


def _flush(context: Context, job_ids: list[str]) -> None:
    """Publish the outbox of these jobs; try an unreachable broker once, so that it does not delay others."""
    unreachable: set[str] = set()
    for job_id in job_ids:
        broker = _broker_of(context, job_id)
        if broker is None or broker.address in unreachable:
            continue
        try:
            publish(context, job_id, _FLUSH_SECONDS)
        except NotPublished as error:
            unreachable.add(broker.address)
            context.warn(error.message)


def _resident_publishes(context: Context, job_id: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    with CommitWatch(context) as commits:
        while _unpublished(context, job_id):
            if time.monotonic() >= deadline:
                return False
            commits.wait(deadline)
    return True


def _send(context: Context, broker: Broker, job_id: str, deadline: float) -> None:
    from mam.adapters.mqtt.connection import Connection

    connection = Connection(broker, brokers.password(context, broker), role="event")
    try:
        connection.open(deadline - time.monotonic())
        while rows := _unpublished(context, job_id):
            sent = {
                connection.publish(broker.topic(job_id, row.topic), row.payload, retain=row.retain): row.seq
                for row in rows
            }
            connection.finish(sent, max(0.1, deadline - time.monotonic()))
            context.registry.note(partial(outbox.set_published, numbers=list(sent.values())))
    finally:
        connection.close()


def _unpublished(context: Context, job_id: str) -> list[OutboxRow]:
    none: list[OutboxRow] = []
    return context.registry.peek(lambda transaction: outbox.waiting(transaction, job_id=job_id), none)


def _broker_of(context: Context, job_id: str) -> Broker | None:
    def read(transaction: Transaction) -> Broker | None:
        job = jobs.find(transaction, job_id)
        return rules.of_record(job.data) if job else None

    return context.registry.peek(read, None)
