"""Which processes a session may have detached, by the facts of their lineage."""

import pytest

from mam.adapters.system.process import Stat
from mam.core.detached_process import below_reaper, may_be_orphan_of

INIT = Stat(1, 0, 0, 5, False, session=0)


def line(*facts):
    """Return a lineage of (pid, start, terminal session), each the child of the next."""
    parents = [pid for pid, _, _ in facts[1:]] + [0]
    return [
        Stat(pid, parent, 0, start, False, session=session)
        for (pid, start, session), parent in zip(facts, parents, strict=True)
    ]


def test_the_lineage_ends_below_the_first_reaper() -> None:
    lineage = line((30, 9, 30), (20, 8, 20), (10, 2, 10), (1, 1, 0))
    assert [facts.pid for facts in below_reaper(lineage, {1})] == [30, 20, 10]
    assert [facts.pid for facts in below_reaper(lineage, {1, 10})] == [30, 20], "systemd --user is one, too"
    assert below_reaper(lineage, {30}) == []
    assert below_reaper(lineage, set()) == lineage, "in a container a command may have no parent"


@pytest.mark.parametrize(
    ("top", "leader", "may_be"),
    [
        pytest.param((20, 200, 20), (20, 200), True, id="setsid made a later terminal session"),
        pytest.param((20, 100, 20), (20, 100), True, id="in the tick in which the session began"),
        pytest.param((20, 200, 7), None, True, id="the leader of its terminal session has ended"),
        pytest.param((20, 99, 20), (20, 99), False, id="older than the session"),
        pytest.param((20, 200, 0), None, False, id="in the terminal session of init: init has started it"),
        pytest.param((20, 200, 7), (7, 50), False, id="in a terminal session that is older"),
    ],
)
def test_an_orphan_is_later_than_its_session_and_in_a_terminal_session_that_is_later(top, leader, may_be):
    child = Stat(top[0], 1, 0, top[1], False, session=top[2])
    head = Stat(leader[0], 1, 0, leader[1], False, session=leader[0]) if leader else None
    assert may_be_orphan_of(child, INIT, head, 100) is may_be


def test_a_reaper_that_is_hidden_proves_nothing() -> None:
    """/proc can be mounted so that it hides the processes of other users."""
    assert may_be_orphan_of(Stat(20, 1, 0, 200, False, session=0), None, None, 100)
    assert not may_be_orphan_of(Stat(20, 1, 0, 99, False, session=20), None, None, 100)
