"""Values that a row may have: what was calculated with, or became an argument, must be fit for that."""

from __future__ import annotations

import pytest

from mam.core.row_checks import flaws

ROW = {"name": "one", "agent": "practice", "status": "stopped"}


@pytest.mark.parametrize("field", ["stopped_at_epoch", "terminated_at_epoch", "created_at_epoch"])
@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("-inf"), float("nan"), "1", True])
def test_a_time_is_a_number_that_a_clock_can_show(field, value) -> None:
    assert [key for key, _ in flaws({**ROW, field: value})] == [field]


@pytest.mark.parametrize("value", [0, 1795132999, 1795132999.5, -1.0])
def test_a_time(value) -> None:
    assert list(flaws({**ROW, "stopped_at_epoch": value})) == []


def test_the_time_of_the_last_action() -> None:
    action = {"by": "user", "verb": "stop", "at_epoch": 10**400}
    assert [key for key, _ in flaws({**ROW, "last_action": action})] == ["last_action"]


@pytest.mark.parametrize("value", ["x" * 101, "", "  ", "a\nb"])
def test_a_role_is_as_short_as_at_the_creation(value) -> None:
    assert [key for key, _ in flaws({**ROW, "role": value})] == ["role"]
