"""What a waiting process elsewhere makes of the events of one job, without a broker."""

from __future__ import annotations

import pytest

from mam.adapters.store import incarnation
from mam.app.brokers.wait_remote import _Job
from mam.core import job_event as events

TOKEN = "0123456789abcdef" * 4
FIRST, SECOND = "1" * 28, "2" * 28


@pytest.fixture
def job():
    return _Job("1f00ab42", TOKEN)


def payload(name="progress", seq=1, attempt=1, by="worker", **data):
    event = events.make(
        "1f00ab42",
        name,
        seq=seq,
        attempt=attempt,
        timestamp="2026-11-15T08:00:00Z",
        data={**data, **({"by": by} if by else {})},
    )
    return events.write(events.sign(event, TOKEN)).encode()


def test_a_restored_job_ends_although_a_later_attempt_was_seen(job) -> None:
    """The copy is from the first attempt, and the second one had begun."""
    job.take_event(payload("started", 1, incarnation=FIRST))
    job.take_event(payload("started", 3, attempt=2, incarnation=FIRST))
    assert job.take_event(payload("progress", 2, incarnation=SECOND)) is not None
    assert job.take_event(payload("completed", 3, incarnation=SECOND)) is not None
    assert job.end is not None
    assert job.as_json()["attempt"] == 1


def test_the_same_event_with_the_same_number_is_new_in_another_incarnation(job) -> None:
    first = payload("progress", 5, incarnation=FIRST)
    assert job.take_event(first) is not None
    assert job.take_event(first) is None
    assert job.take_event(payload("progress", 5, incarnation=SECOND)) is not None


def test_an_end_before_the_restore_does_not_count_after_it(job) -> None:
    end = payload("completed", 4, incarnation=FIRST)
    job.take_event(end)
    job.take_event(payload("progress", 3, incarnation=SECOND))
    assert not job.is_over()
    # The broker may still have an event of before, such as the retained status.
    job.take_event(payload("error", 5, incarnation=FIRST))
    assert job.end is None


def test_events_without_an_incarnation_count_as_before(job) -> None:
    job.take_event(payload("started", 1))
    job.take_event(payload("completed", 2, by=None))
    assert job.end is not None
    # The first incarnation that is seen is that of a newer mam on the same machine.
    job.take_event(payload("progress", 2, checking=True, incarnation=FIRST))
    assert job.end is None, "the machine of the job checks the end first"


def test_a_later_incarnation_has_a_greater_text_whatever_the_clock_says() -> None:
    class Transaction:
        def __init__(self) -> None:
            self.now, self.values = 1_800_000_000.0, {}
            self.meta, self.set_meta = self.values.get, self.values.__setitem__

    transaction = Transaction()
    known = [incarnation.current(transaction)]
    assert incarnation.current(transaction) == known[0]
    for now in (1_800_000_000.0, 1_700_000_000.0, 1_900_000_000.0):
        transaction.now = now
        known.append(incarnation.renew(transaction))
    assert known == sorted(known)
    assert len(set(known)) == 4
