"""A wait checks at once, pauses between two checks, and ends with its time."""

from __future__ import annotations

import pytest

from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline


class Clock:
    """A clock that moves only during pauses, or when the test moves it."""

    def __init__(self) -> None:
        self.at = 100.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def within(clock: Clock, seconds: float) -> Deadline:
    return Deadline(seconds, clock=clock.now, sleep=clock.sleep)


def test_it_pauses_until_its_time_is_over(clock) -> None:
    deadline = within(clock, 1.0)
    checks = 1
    while deadline.pause(0.25):
        checks += 1
    assert (checks, clock.pauses, deadline.has_passed()) == (5, [0.25] * 4, True)


def test_what_is_seen_at_once_costs_no_pause(clock) -> None:
    deadline = within(clock, 1.0)
    assert (deadline.has_passed(), clock.pauses) == (False, [])


def test_a_look_that_takes_long_is_the_last_one(clock) -> None:
    deadline = within(clock, 1.0)
    clock.at += 3.0
    assert (deadline.pause(0.25), clock.pauses) == (False, [])


def test_pauses_may_differ(clock) -> None:
    deadline = within(clock, 1.0)
    steps = iter((0.1, 0.2, 0.4))
    while deadline.pause(next(steps, 0.8)):
        pass
    assert clock.pauses == [0.1, 0.2, 0.4, 0.8]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_without_time_there_is_one_look(clock, seconds) -> None:
    assert (within(clock, seconds).pause(0.25), clock.pauses) == (False, [])


def test_it_goes_by_the_load_adjusted_clock_unless_told_otherwise(clock, monkeypatch) -> None:
    monkeypatch.setattr(load_adjusted_clock, "now", clock.now)
    deadline = Deadline(1.0, sleep=clock.sleep)
    assert deadline.pause(0.75)
    clock.at += 0.25
    assert not deadline.pause(0.75)
