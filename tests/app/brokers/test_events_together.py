"""Events that arrive together are taken in together, and none of them harms another."""

from __future__ import annotations

import pytest
from tests.app.over_broker import log_of

from mam.adapters.mqtt.connection import ReceivedMessage
from mam.adapters.store.tables import set_aside
from mam.app.brokers.relay_both_ways import Relay
from mam.app.jobs import event as job_events
from mam.app.jobs import find, ledger_writer
from mam.app.jobs.new_job import new_id, record_job
from mam.core import broker_address
from mam.core import job_event as events

BROKER = broker_address.of_json({"url": "mqtt://127.0.0.1:1"})


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def relay(fleet):
    context = fleet._access.context.for_thread()
    yield Relay(context, fleet.caller, BROKER, [].append)
    context.close()


def submit(fleet) -> str:
    return record_job(fleet._access.context, fleet.caller, new_id(), "x", broker=BROKER.as_json()).id


def honest(fleet, job_id: str, number: int, attempt: int = 1) -> ReceivedMessage:
    event = events.make(
        job_id,
        "progress",
        seq=number,
        attempt=attempt,
        timestamp="2026-11-15T08:00:00Z",
        detail=f"honest {number}",
    )
    payload = events.write(events.sign(event, find.token_of(fleet._access.context, job_id)))
    return ReceivedMessage(BROKER.topic(job_id, events.EVENTS), payload.encode(), False, number)


def details(fleet, job_id: str) -> list[str]:
    return [detail for _name, detail in log_of(fleet, job_id)[1:]]


def test_events_that_arrive_together_are_taken_in_with_one_commit(fleet, relay, monkeypatch) -> None:
    """A commit and the files of a job cost more than an event: one by one, 500 a second need two cores."""
    first, second, told = submit(fleet), submit(fleet), []
    relay.tell = told.append
    commits, written, note = [], [], relay.context.registry.note
    monkeypatch.setattr(relay.context.registry, "note", lambda work: commits.append(work) or note(work))
    monkeypatch.setattr(job_events, "write_files", lambda _context, job_id: written.append(job_id))
    messages = [honest(fleet, job_id, number) for number in range(1, 21) for job_id in (first, second)]
    relay._handle_all([*messages, *messages[:5]])
    assert len(commits) == 1
    assert sorted(written) == sorted((first, second))
    assert details(fleet, first) == details(fleet, second) == [f"honest {n}" for n in range(1, 21)]
    assert len(told) == 40
    relay._handle_all(messages)
    assert len(commits) == 1, "what was taken in is known"


def test_one_message_on_which_mam_fails_leaves_those_that_came_with_it(fleet, relay, monkeypatch) -> None:
    job_id = submit(fleet)
    take = ledger_writer.take

    def fail_once(transaction, job, event, token):
        if event["seq"] == 2:
            raise KeyError("what nobody foresaw")
        return take(transaction, job, event, token)

    monkeypatch.setattr(ledger_writer, "take", fail_once)
    relay._handle_all([honest(fleet, job_id, number) for number in (1, 2, 3)])
    assert details(fleet, job_id) == ["honest 1", "honest 3"]
    (item,) = fleet._access.context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key) == ("payload", BROKER.topic(job_id, events.EVENTS))


def test_a_refused_event_leaves_those_that_came_with_it(fleet, relay) -> None:
    job_id = submit(fleet)
    relay._handle_all(
        [honest(fleet, job_id, 1), honest(fleet, job_id, 2, attempt=7), honest(fleet, job_id, 3)]
    )
    assert log_of(fleet, job_id)[1:] == [
        ("progress", "honest 1"),
        ("dropped", "it belongs to an unknown attempt (7, the current one is 1)"),
        ("progress", "honest 3"),
    ]
