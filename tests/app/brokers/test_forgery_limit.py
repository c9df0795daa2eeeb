"""Forged events cost little, are counted, and keep no honest event away."""

from __future__ import annotations

import pytest
from tests.app.over_broker import log_of, signed

from mam.adapters.store.tables import set_aside
from mam.app.brokers import forgery_limit, relay_both_ways
from mam.app.brokers.forgery_limit import ForgeryLimit
from mam.app.brokers.relay_both_ways import Relay
from mam.app.jobs.new_job import new_id, record_job
from mam.core import broker_address, republish_request
from mam.core import job_event as events

BROKER = broker_address.of_json({"url": "mqtt://127.0.0.1:1"})
FLOOD = 3000


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Received:
    """A message as a connection gives it."""

    def __init__(self, topic: str, payload: bytes | str, *, is_retained: bool = False) -> None:
        self.topic = topic
        self.payload = payload if isinstance(payload, bytes) else payload.encode()
        self.is_retained = is_retained
        self.mid = 1


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def relay(fleet, clock):
    context = fleet._access.context.for_thread()
    relay = Relay(context, fleet.caller, BROKER, [].append)
    relay._limit = ForgeryLimit(clock)
    yield relay
    context.close()


@pytest.fixture
def calls(monkeypatch):
    """Count the calls of the expensive parts of the intake."""
    counts = {"looks": 0, "intakes": 0}
    is_signed, take_in = events.is_signed, relay_both_ways.take_in

    def looking(*arguments):
        counts["looks"] += 1
        return is_signed(*arguments)

    def taking(*arguments, **options):
        counts["intakes"] += 1
        return take_in(*arguments, **options)

    monkeypatch.setattr(relay_both_ways.events, "is_signed", looking)
    monkeypatch.setattr(relay_both_ways, "take_in", taking)
    return counts


def submit(fleet) -> str:
    return record_job(fleet._access.context, fleet.caller, new_id(), "x", broker=BROKER.as_json()).id


def forged(job_id: str, number: int, *, leaf: str = events.EVENTS) -> Received:
    event = events.make(job_id, "progress", seq=number, attempt=1, timestamp="2026-11-15T08:00:00Z")
    return Received(BROKER.topic(job_id, leaf), events.write(events.sign(event, "f" * 64)))


def honest(fleet, job_id: str, number: int) -> Received:
    detail = f"honest {number}"
    return Received(BROKER.topic(job_id, events.EVENTS), signed(fleet, job_id, "progress", number, detail))


def details(fleet, job_id: str) -> list[str]:
    return [detail for _name, detail in log_of(fleet, job_id)]


def test_e11_a_flood_is_refused_cheaply_and_counted_once_a_minute(fleet, relay, clock, calls) -> None:
    job_id = submit(fleet)
    for number in range(1, FLOOD + 1):
        relay._handle(forged(job_id, number))
    own = forgery_limit._OWN_ENTRIES
    assert calls["looks"] <= 2 * forgery_limit._OF_JOB + 2 * own
    assert calls["intakes"] == own
    assert details(fleet, job_id).count("the job's token did not sign it") == own
    relay._log_refusals()
    clock.now += forgery_limit._SECONDS
    relay._log_refusals()
    relay._log_refusals()
    (counted,) = [detail for detail in details(fleet, job_id) if "further events" in detail]
    assert counted.startswith(f"{FLOOD - own} further events were refused")


def test_e11_honest_events_arrive_beside_a_flood(fleet, relay, clock) -> None:
    flooded, other = submit(fleet), submit(fleet)
    for number in range(1, FLOOD + 1):
        relay._handle(forged(flooded, number))
    relay._handle(honest(fleet, other, 1))
    assert "honest 1" in details(fleet, other), "what others get costs this job nothing"
    clock.now += 1.0
    relay._handle(honest(fleet, flooded, 1))
    assert "honest 1" in details(fleet, flooded), "mam looks again after a moment"


def test_e11_any_number_of_honest_events_is_taken_in(fleet, relay, monkeypatch, calls) -> None:
    monkeypatch.setattr(forgery_limit, "_OF_JOB", 5.0)
    job_id = submit(fleet)
    for number in range(1, 31):
        relay._handle(honest(fleet, job_id, number))
    assert len([detail for detail in details(fleet, job_id) if detail.startswith("honest")]) == 30


def test_e11_an_event_in_other_words_is_taken_in_once(fleet, relay, calls) -> None:
    job_id = submit(fleet)
    message = honest(fleet, job_id, 1)
    for spaces in range(20):
        relay._handle(Received(message.topic, b" " * spaces + message.payload))
    assert calls["intakes"] == 1


def test_e11_other_kinds_of_forgery_are_bounded_too(fleet, relay, calls, monkeypatch) -> None:
    job_id, told = submit(fleet), []
    relay.tell = told.append
    for number in range(FLOOD):
        topic = BROKER.topic(job_id, events.EVENTS)
        relay._handle(Received(topic, b"no event %d" % number))
        relay._handle(Received(BROKER.topic(job_id, republish_request.ASK), b"no request %d" % number))
        relay._handle(Received(topic, honest(fleet, job_id, 1).payload, is_retained=True))
    assert calls["intakes"] <= forgery_limit._OWN_ENTRIES
    assert len(told) <= forgery_limit._OWN_ENTRIES
    lookups = []
    monkeypatch.setattr(relay_both_ways, "ensure_in_ledger", _counting(lookups))
    for number in range(FLOOD):
        relay._handle(forged(f"{number:08x}", 1))
    assert len(lookups) <= 2 * forgery_limit._OF_JOB
    late = submit(fleet)
    relay._handle(honest(fleet, late, 1))
    assert "honest 1" in details(fleet, late), "a new job of this root is known by the commit"


def _counting(lookups: list[str]):
    real = relay_both_ways.ensure_in_ledger

    def ensure(context, job_id, *more):
        lookups.append(job_id)
        return real(context, job_id, *more)

    return ensure


def test_e2_a_message_on_which_mam_fails_is_set_aside(fleet, relay, monkeypatch) -> None:
    job_id = submit(fleet)

    def fail(*_arguments):
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr(relay, "_genuine_event", fail)
    relay._handle_or_set_aside(honest(fleet, job_id, 1))
    (item,) = fleet._access.context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key) == ("payload", BROKER.topic(job_id, events.EVENTS))
    monkeypatch.undo()
    relay._handle_or_set_aside(honest(fleet, job_id, 2))
    assert "honest 2" in details(fleet, job_id)


def test_jobs_share_a_limit_only_with_jobs_that_get_forged_events() -> None:
    clock = Clock()
    limit = ForgeryLimit(clock)
    for number in range(4):
        job_id = f"job {number}"
        while limit.may_look(job_id):
            limit.refuse(job_id, 100)
    assert limit._all.is_empty(clock.now)
    limit.refuse("new", 100)
    assert not limit.may_look("new"), "it shares the limit now"
    assert limit.may_look("quiet")
    clock.now += 0.5
    assert limit.may_look("new")


def test_a_minute_without_forged_events_ends_the_count() -> None:
    clock = Clock()
    limit = ForgeryLimit(clock)
    assert limit.refuse("job", 100)
    clock.now += forgery_limit._SECONDS
    assert limit.due_counts() == {}
    assert limit._jobs == {}
