"""Helpers for jobs whose events go over a broker, and for another machine that signs and receives them."""

import time

from mam.adapters.store.tables import jobs, outbox
from mam.app.brokers import config as brokers
from mam.app.jobs import find
from mam.app.jobs.new_job import new_id, record_job
from mam.core import job_event as events

SECONDS = 30.0


def submit(fleet, **facts_given):
    """Register a job that has the configured broker."""
    broker = brokers.find(fleet._access.context)
    facts = {"broker": broker.as_json(), "topic_prefix": broker.prefix, **facts_given}
    return record_job(fleet._access.context, fleet.caller, new_id(), "a task", **facts).id


def is_published(fleet):
    return not fleet._access.context.registry.peek(outbox.waiting_jobs, [])


def log_of(fleet, job_id):
    entries = fleet._access.context.registry.peek(lambda transaction: jobs.entries(transaction, job_id), [])
    return [(entry.name, entry.document["detail"]) for entry in entries]


def signed(fleet, job_id, name, seq, detail="", **data):
    """Return an event as another machine with the job's token writes it."""
    event = events.make(
        job_id, name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", detail=detail, data=data
    )
    return events.write(events.sign(event, find.token_of(fleet._access.context, job_id)))


def publish(connection, topic, payload, retain=False):
    connection.finish([connection.publish(topic, payload, retain=retain)], SECONDS)


def steps(connection):
    """Step a connection until a deadline."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline, "waited in vain"
        yield connection.step(deadline - time.monotonic())


def receive(connection, count=1):
    """Return so many messages, each acknowledged."""
    messages = []
    going = steps(connection)
    while len(messages) < count:
        for message in connection.take():
            connection.acknowledge(message)
            messages.append(message)
        if len(messages) < count:
            next(going)
    return messages
