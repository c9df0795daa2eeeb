"""Senders that are killed between the text and Enter: fifty of a practice agent, ten of each program."""

from __future__ import annotations

import pytest
from tests.app.killed_senders import kill_senders
from tests.app.team_desk import QUICK, said
from tests.conformance.desk import Desk
from tests.conformance.program import PROGRAMS
from tests.conformance.test_life import see_kills


@pytest.fixture(scope="module", params=list(PROGRAMS))
def kind(request):
    return request.param


def note(ends, record_property) -> None:
    """Say in the summary how many ended in which way."""
    for end, count in ends.items():
        record_property(str(end), count)


@pytest.mark.parametrize("seed", range(5))
def test_ten_killed_senders_of_a_practice_agent(fleet, seed: int, record_property) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK)
    ends = kill_senders(fleet, session, 10, 100 + seed, lambda: said(fleet, "one"))
    assert sum(ends.values()) == 10
    note(ends, record_property)


def test_ten_killed_senders_of_a_real_program(shared: Desk, record_property) -> None:
    ends = see_kills(shared, 10, 200)
    assert sum(ends.values()) == 10
    note(ends, record_property)
