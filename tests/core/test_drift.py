"""The plan: for each combination of a row and what was seen, what follows, and what never does."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.drift import HANDS_OFF_SECONDS, Observation, Seen, Stray, letter, plan
from mam.core.session_row import STATUSES, settled

NOW = 1_800_000_000.0
STATES = ("alive", "dead", "gone", "loose", "unknown")
ID = "3f2c8c9e-0000-4000-8000-000000000000"
OTHER = "4f2c8c9e-0000-4000-8000-000000000000"


def row(status="running", *, own=None, ago=60.0, **more):
    made = {
        "id": "s_00000001",
        "name": "demo-creator-claude",
        "agent": "claude",
        "status": status,
        "workspace": "/w",
        "claude_session_id_own": own,
        "pane": {"id": "%1", "pid": 7, "pid_start": 70, "cmd": "claude"},
        "last_action": {"by": "user", "verb": "create", "at_epoch": int(NOW - ago)},
    }
    return settled(made | more)


def planned(one, seen, *, confirmed=True, busy=(), strays=()):
    found = Observation({"default": confirmed}, {one["id"]: seen} if seen else {}, strays)
    return plan([one], found, NOW, busy)


@pytest.mark.parametrize(("status", "state"), list(itertools.product(STATUSES, STATES)))
def test_a_is_only_for_a_running_row_that_is_surely_gone(status, state) -> None:
    drifts = planned(row(status), Seen(state, "why"))
    assert [one.kind for one in drifts] == (
        ["A"] if status == "running" and state in ("dead", "gone", "loose") else []
    )
    for one in drifts:
        assert one.after == (None if state == "loose" else "terminated")
        assert "process 7 (claude)" in one.message


@pytest.mark.parametrize("own", [None, ID])
@pytest.mark.parametrize("now", [None, ID, OTHER])
@pytest.mark.parametrize("on_disk", [True, False, None])
@pytest.mark.parametrize("own_on_disk", [True, False, None])
def test_conversations(own, now, on_disk, own_on_disk) -> None:
    drifts = planned(row(own=own), Seen("alive", conversation=now, on_disk=on_disk, own_on_disk=own_on_disk))
    if now and now != own and on_disk:
        assert [(one.kind, one.before, one.after) for one in drifts] == [("C", own, now)]
    elif own and own_on_disk is False:
        assert [(one.kind, one.before, one.after) for one in drifts] == [("D", own, None)]
    else:
        assert drifts == []


def test_a_server_that_did_not_answer_says_nothing() -> None:
    stray = Stray("default", "x-creator-claude", "%9", 9, "/w")
    assert planned(row(), Seen("gone"), confirmed=False, strays=[stray]) == []
    found = Observation({}, {"s_00000001": Seen("gone")})
    assert plan([row()], found, NOW) == []


@pytest.mark.parametrize("ago", [0.0, 1.0, HANDS_OFF_SECONDS - 0.5])
def test_a_row_is_left_alone_after_an_action(ago) -> None:
    assert planned(row(ago=ago), Seen("gone")) == []
    assert planned(row(ago=HANDS_OFF_SECONDS + 1.5), Seen("gone"))


def test_a_clock_that_was_put_back_hides_nothing() -> None:
    assert planned(row(ago=-3600.0), Seen("gone"))


@pytest.mark.parametrize("busy", ["s_00000001", "demo-creator-claude"])
def test_a_row_that_a_verb_works_on_is_left_alone(busy) -> None:
    assert planned(row(), Seen("gone"), busy={busy}) == []


@pytest.mark.parametrize(
    ("name", "registered"),
    [("x-creator-claude", True), ("x-creator-agy", True), ("x", False), ("demo-creator-claude", False)],
)
def test_b_is_for_the_naming_pattern_without_a_row(name, registered) -> None:
    drifts = planned(row("stopped"), None, strays=[Stray("default", name, "%9", 9, "/w")])
    assert [one.kind for one in drifts] == (["B"] if registered else [])
    busy = planned(row("stopped"), None, strays=[Stray("default", name, "%9", 9, "/w")], busy={name})
    assert busy == []


def test_an_episode_is_the_same_until_something_changes() -> None:
    (first,) = planned(row(), Seen("gone"))
    (again,) = planned(row(), Seen("dead"))
    (other,) = planned(row(pane={"id": "%1", "pid": 8, "pid_start": 80, "cmd": "claude"}), Seen("gone"))
    assert first.key == again.key != other.key


@given(
    status=st.sampled_from(STATUSES),
    state=st.sampled_from(STATES),
    confirmed=st.booleans(),
    ago=st.floats(-1e6, 1e6),
    own=st.sampled_from([None, ID]),
    now=st.sampled_from([None, ID, OTHER]),
    on_disk=st.sampled_from([True, False, None]),
    own_on_disk=st.sampled_from([True, False, None]),
)
def test_what_never_happens(status, state, confirmed, ago, own, now, on_disk, own_on_disk) -> None:
    one = row(status, own=own, ago=ago)
    seen = Seen(state, conversation=now, on_disk=on_disk, own_on_disk=own_on_disk)
    drifts = planned(one, seen, confirmed=confirmed)
    if status != "running" or not confirmed or state == "unknown":
        assert drifts == []
    assert len(drifts) <= 1
    for found in drifts:
        assert found.after != "terminated" or state in ("dead", "gone")
        shown = letter(one, state, conversation=now, on_disk=on_disk, own_on_disk=own_on_disk)
        assert found.kind == shown, "a listing and a pass say the same"


def test_the_letter_of_an_ended_row() -> None:
    def shown(**facts):
        return letter(row("stopped", own=ID), "gone", conversation=ID, **facts)

    assert shown(on_disk=False, own_on_disk=False) == "D"
    assert shown(on_disk=True, own_on_disk=True) == "-"
    assert shown(on_disk=None, own_on_disk=None) == "-"
