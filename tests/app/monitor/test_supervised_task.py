"""A task of the resident that fails rests, longer each time, and is tried again."""

from __future__ import annotations

import pytest

from mam.app.monitor import supervised_task
from mam.app.monitor.supervised_task import SupervisedTask
from mam.core.errors import Unavailable


class Task:
    """A task that is always due, and fails as told."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.ticks = 0

    def due(self) -> float:
        return 0.0

    def handles(self) -> tuple[int, ...]:
        return (7,)

    def is_needed(self) -> bool:
        if self.error is not None:
            raise self.error
        return False

    def tick(self) -> str:
        self.ticks += 1
        if self.error is not None:
            raise self.error
        return "enough"


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [1000.0]
    monkeypatch.setattr(supervised_task.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def made(clock):
    notes: list[tuple] = []
    task = Task()
    return task, SupervisedTask(task, lambda *facts: notes.append(facts)), notes


def test_e2_an_unexpected_error_is_noted_and_tried_again_after_a_growing_pause(made, clock) -> None:
    task, supervised, notes = made
    task.error = TypeError("unsupported operand type(s) for -: 'str' and 'float'")
    for pause in (1.0, 2.0, 4.0):
        assert supervised.tick(must=True) == ""
        assert notes[-1] == ("Task", task.error, len(notes), pause)
        before = task.ticks
        assert supervised.tick(must=True) == ""
        assert (task.ticks, supervised.due()) == (before, clock[0] + pause)
        clock[0] += pause
    assert supervised.state.reason.startswith("TypeError: unsupported")
    task.error = None
    assert supervised.tick(must=False) == "enough"
    assert (supervised.state.failures, supervised.state.reason) == (0, None)
    assert supervised.tick(must=False) == "enough", "and it rests no more"


def test_a_task_that_rests_wakes_nobody(made, clock) -> None:
    task, supervised, _ = made
    assert supervised.handles() == (7,)
    task.error = ValueError("x")
    supervised.tick(must=True)
    assert supervised.handles() == ()


def test_e2_a_task_that_cannot_say_whether_it_needs_the_resident_does(made) -> None:
    task, supervised, notes = made
    assert supervised.is_needed() is False
    task.error = ValueError("x")
    assert supervised.is_needed() is True
    assert supervised.is_needed() is True
    assert len(notes) == 1, "it is noted once in a pause"


def test_an_error_of_mam_is_for_the_resident_and_costs_no_growing_pause(made, clock) -> None:
    task, supervised, notes = made
    task.error = Unavailable("not now")
    for _ in range(3):
        with pytest.raises(Unavailable):
            supervised.tick(must=True)
        assert supervised.due() == clock[0] + 1.0, "a task that stays due leaves time for the others"
        clock[0] += 1.0
    assert notes == []
