"""Drift: for each combination of a row and an observation, which drift is reported and which never is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.drift_detection import (
    HANDS_OFF_SECONDS,
    Observation,
    SessionObservation,
    UnregisteredSession,
    drift_class,
    plan,
)
from mam.core.session_row import STATUSES, with_all_fields

NOW = 1_800_000_000.0
STATES = ("alive", "dead", "gone", "loose", "unknown")
ID = "3f2c8c9e-0000-4000-8000-000000000000"
OTHER = "4f2c8c9e-0000-4000-8000-000000000000"


def row(status="running", *, own=None, ago=60.0, **changes):
    fields = {
        "id": "s_00000001",
        "name": "demo-creator-claude",
        "agent": "claude",
        "status": status,
        "workspace": "/w",
        "claude_session_id_own": own,
        "pane": {"id": "%1", "pid": 7, "pid_start": 70, "cmd": "claude"},
        "last_action": {"by": "user", "verb": "create", "at_epoch": int(NOW - ago)},
    }
    return with_all_fields(fields | changes)


def planned(row, observed, *, confirmed=True, busy=(), unregistered=()):
    observation = Observation({"default": confirmed}, {row["id"]: observed} if observed else {}, unregistered)
    return plan([row], observation, NOW, busy)


@pytest.mark.parametrize(("status", "state"), list(itertools.product(STATUSES, STATES)))
def test_class_a_is_only_for_a_running_row_whose_process_is_gone(status, state) -> None:
    drifts = planned(row(status), SessionObservation(state, "why"))
    assert [drift.kind for drift in drifts] == (
        ["A"] if status == "running" and state in ("dead", "gone", "loose") else []
    )
    for drift in drifts:
        assert drift.after == (None if state == "loose" else "terminated")
        assert "process 7 (claude)" in drift.message


@pytest.mark.parametrize("own", [None, ID])
@pytest.mark.parametrize("now", [None, ID, OTHER])
@pytest.mark.parametrize("on_disk", [True, False, None])
@pytest.mark.parametrize("own_on_disk", [True, False, None])
def test_conversations(own, now, on_disk, own_on_disk) -> None:
    drifts = planned(
        row(own=own), SessionObservation("alive", conversation=now, on_disk=on_disk, own_on_disk=own_on_disk)
    )
    if now and now != own and on_disk:
        assert [(drift.kind, drift.before, drift.after) for drift in drifts] == [("C", own, now)]
    elif own and own_on_disk is False:
        assert [(drift.kind, drift.before, drift.after) for drift in drifts] == [("D", own, None)]
    else:
        assert drifts == []


def test_a_server_that_did_not_answer_causes_no_drift() -> None:
    session = UnregisteredSession("default", "x-creator-claude", "%9", 9, "/w")
    assert planned(row(), SessionObservation("gone"), confirmed=False, unregistered=[session]) == []
    observation = Observation({}, {"s_00000001": SessionObservation("gone")})
    assert plan([row()], observation, NOW) == []


@pytest.mark.parametrize("ago", [0.0, 1.0, HANDS_OFF_SECONDS - 0.5])
def test_a_row_is_left_alone_after_an_action(ago) -> None:
    assert planned(row(ago=ago), SessionObservation("gone")) == []
    assert planned(row(ago=HANDS_OFF_SECONDS + 1.5), SessionObservation("gone"))


def test_a_clock_that_was_set_back_hides_no_drift() -> None:
    assert planned(row(ago=-3600.0), SessionObservation("gone"))


@pytest.mark.parametrize("busy", ["s_00000001", "demo-creator-claude"])
def test_a_row_that_a_verb_works_on_is_left_alone(busy) -> None:
    assert planned(row(), SessionObservation("gone"), busy={busy}) == []


@pytest.mark.parametrize(
    ("name", "registered"),
    [("x-creator-claude", True), ("x-creator-agy", True), ("x", False), ("demo-creator-claude", False)],
)
def test_class_b_is_for_a_name_of_the_pattern_without_a_row(name, registered) -> None:
    drifts = planned(row("stopped"), None, unregistered=[UnregisteredSession("default", name, "%9", 9, "/w")])
    assert [drift.kind for drift in drifts] == (["B"] if registered else [])
    busy = planned(
        row("stopped"), None, unregistered=[UnregisteredSession("default", name, "%9", 9, "/w")], busy={name}
    )
    assert busy == []


def test_an_episode_is_the_same_until_something_changes() -> None:
    (first,) = planned(row(), SessionObservation("gone"))
    (again,) = planned(row(), SessionObservation("dead"))
    (other,) = planned(
        row(pane={"id": "%1", "pid": 8, "pid_start": 80, "cmd": "claude"}), SessionObservation("gone")
    )
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
    session = row(status, own=own, ago=ago)
    observed = SessionObservation(state, conversation=now, on_disk=on_disk, own_on_disk=own_on_disk)
    drifts = planned(session, observed, confirmed=confirmed)
    if status == "running" and (not confirmed or state == "unknown"):
        assert drifts == []
    if status != "running":
        assert [drift.kind for drift in drifts] in ([], ["D"])
    assert len(drifts) <= 1
    for drift in drifts:
        assert drift.after != "terminated" or state in ("dead", "gone")
        shown = drift_class(session, state, conversation=now, on_disk=on_disk, own_on_disk=own_on_disk)
        assert drift.kind == shown, "a listing and a pass report the same class"


@pytest.mark.parametrize("status", STATUSES)
def test_s001_13_an_ended_row_whose_conversation_is_gone(status) -> None:
    """What a tmux server says of an ended row does not matter; archived and purged rows say nothing."""
    for confirmed, on_disk in itertools.product([True, False], [True, False, None]):
        gone = SessionObservation("gone", own_on_disk=on_disk)
        kinds = [drift.kind for drift in planned(row(status, own=ID), gone, confirmed=confirmed)]
        is_said = status in ("stopped", "terminated") and on_disk is False
        assert kinds == (["D"] if is_said else ["A"] if status == "running" and confirmed else [])
    purged = row("terminated", own=ID, termination_mode="purge")
    assert planned(purged, SessionObservation("gone", own_on_disk=False)) == []


def test_s001_13_the_episode_of_a_session_goes_on_when_it_ends() -> None:
    (running,) = planned(row(own=ID), SessionObservation("alive", conversation=ID, own_on_disk=False))
    (stopped,) = planned(row("stopped", own=ID), SessionObservation("gone", own_on_disk=False))
    assert running.key == stopped.key


def test_the_class_of_an_ended_row() -> None:
    def shown(**facts):
        return drift_class(row("stopped", own=ID), "gone", conversation=ID, **facts)

    assert shown(on_disk=False, own_on_disk=False) == "D"
    assert shown(on_disk=True, own_on_disk=True) == "-"
    assert shown(on_disk=None, own_on_disk=None) == "-"
