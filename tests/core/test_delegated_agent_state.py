"""The single state of an agent, made of status and activity."""

import pytest

from mam.core.delegated_agent_state import ENDED, STATES, TARGETS, agent_state, is_reached


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (("running", "booting"), "booting"),
        (("running", "working"), "working"),
        (("running", "waiting"), "idle"),
        (("running", "unknown"), "unknown"),
        (("running", "exited"), "error"),
        (("stopped", "exited"), "done"),
        (("archived", "exited"), "done"),
        (("terminated", "exited"), "done"),
    ],
)
def test_status_and_activity_give_one_word(facts, state) -> None:
    assert agent_state(*facts) == state
    assert state in STATES


@pytest.mark.parametrize(("spoken", "state"), [(False, "ready"), (True, "idle"), (None, "idle")])
def test_an_agent_at_rest_is_ready_until_its_first_turn(spoken, state) -> None:
    assert agent_state("running", "idle", has_spoken=spoken) == state


def test_one_that_was_found_dead_is_an_error() -> None:
    assert agent_state("terminated", "exited", termination_mode="auto-detected") == "error"
    assert agent_state("terminated", "exited", termination_mode="purge") == "done"


def test_whoever_has_had_a_turn_takes_words_as_well() -> None:
    assert is_reached("idle", "ready")
    assert not is_reached("ready", "idle")
    assert all(is_reached(target, target) for target in TARGETS)
    assert set(ENDED) <= set(TARGETS)
