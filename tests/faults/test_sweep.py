"""A sweep says at which call what was wrong, whatever that was, and goes on with the next call."""

from __future__ import annotations

import pytest
from tests.faults import sweep
from tests.faults.machine import KILL_BEFORE

SWEEPS = {
    "one fault": lambda case: sweep.sweep(case, KILL_BEFORE),
    "one of each kind": sweep.sweep_classes,
    "a loss of power": lambda case: sweep.lose_power(case, range(2)),
    "the same process goes on": sweep.sweep_and_go_on,
    "two faults": lambda case: sweep.sweep_twice(case, 1, 1),
}


class FakeMachine:
    """A machine of which each verb makes two calls, and is killed at the one that is named."""

    def __init__(self, error: dict | None) -> None:
        self.error = error

    def run(self, _verb, n=0, mode=0, number=0, again=None) -> dict:
        is_killed = 0 < n <= 3
        return {
            "error": self.error,
            "names": ["write a", "rename b"],
            "paths": ["write /state.db", "rename /user.db"],
            "calls": 2,
            "calls_of_verb": 2,
            "killed": is_killed,
            "acknowledged": False,
            "broken": "rename b",
        }


class FakeCase(sweep.Case):
    """A verb after which the look at the state raises what no check has foreseen."""

    verb = "fake"
    allowed = ({},)

    def __init__(self, error: dict | None = None) -> None:
        self.machine = FakeMachine(error)

    def begin(self) -> None:
        self.before = {}

    def check(self) -> dict[str, str]:
        return {}

    def check_after(self, n: int) -> dict[str, str]:
        raise KeyError("one")

    check_after_loss = check_after


@pytest.mark.parametrize("run", SWEEPS.values(), ids=SWEEPS)
def test_an_error_that_nobody_foresaw_is_told_with_each_call(run) -> None:
    with pytest.raises(AssertionError) as found:
        run(FakeCase())
    lines = str(found.value).strip().splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("fake, ") and line.endswith("KeyError: 'one'") for line in lines), lines


@pytest.mark.parametrize("run", SWEEPS.values(), ids=SWEEPS)
def test_a_verb_that_fails_without_a_fault_is_noticed(run) -> None:
    with pytest.raises(AssertionError, match="disk_full"):
        run(FakeCase({"code": "disk_full"}))
