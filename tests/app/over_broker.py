"""Jobs whose events go over a broker, and somebody elsewhere who speaks and hears of them."""

import time

from mam.adapters.store.tables import jobs, outbox
from mam.app.brokers import config as brokers
from mam.app.jobs import find
from mam.app.jobs.create import new_id, register
from mam.core import job_event as events

SECONDS = 30.0


def submit(fleet, **more):
    """Register a job that has the configured broker."""
    broker = brokers.find(fleet._access.context)
    facts = {"broker": broker.as_json(), "topic_prefix": broker.prefix, **more}
    return register(fleet._access.context, fleet.caller, new_id(), "a task", **facts).id


def is_published(fleet):
    return not fleet._access.context.registry.peek(outbox.waiting_jobs, [])


def log_of(fleet, job_id):
    entries = fleet._access.context.registry.peek(lambda draft: jobs.entries(draft, job_id), [])
    return [(one.name, one.document["detail"]) for one in entries]


def signed(fleet, job_id, name, seq, detail="", **data):
    """Return an event as somebody elsewhere writes it who has the job's token."""
    made = events.make(
        job_id, name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", detail=detail, data=data
    )
    return events.write(events.sign(made, find.token_of(fleet._access.context, job_id)))


def publish(link, topic, payload, retain=False):
    link.finish([link.publish(topic, payload, retain=retain)], SECONDS)


def steps(link):
    """Let a link go on, step by step, under a deadline."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline, "waited in vain"
        yield link.step(deadline - time.monotonic())


def receive(link, count=1):
    """Return so many messages, each acknowledged."""
    found = []
    going = steps(link)
    while len(found) < count:
        for heard in link.take():
            link.done_with(heard)
            found.append(heard)
        if len(found) < count:
            next(going)
    return found
