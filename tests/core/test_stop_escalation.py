"""The first step of a stop: mam types only into an empty input box."""

import pytest

from mam.core.stop_escalation import ASK, GRACE, HANG_UP, KILL, already_ended, first_step

CALM = {
    "force": False,
    "exit_word": "/exit",
    "ends_on_interrupt": True,
    "box": "empty",
    "dialog": None,
    "is_busy": False,
    "in_mode": False,
}


@pytest.mark.parametrize(
    ("changes", "method", "types", "presses"),
    [
        ({}, ASK, "/exit", None),
        ({"force": True}, KILL, None, None),
        ({"dialog": "permission"}, HANG_UP, None, None),
        ({"box": "draft"}, HANG_UP, None, None),
        ({"box": None}, HANG_UP, None, None),
        ({"is_busy": True}, HANG_UP, None, None),
        ({"in_mode": True}, HANG_UP, None, None),
        ({"exit_word": None, "box": None}, ASK, None, "C-c"),
        ({"exit_word": None, "ends_on_interrupt": False, "box": None}, HANG_UP, None, None),
        ({"exit_word": None, "box": None, "dialog": "trust"}, HANG_UP, None, None),
    ],
)
def test_first_step(changes, method, types, presses) -> None:
    step = first_step(**{**CALM, **changes})
    assert (step.method, step.types, step.presses) == (method, types, presses)
    assert step.reason


def test_the_note_names_when_and_why() -> None:
    row = {"status": "stopped", "stopped_at": "2026-11-15T08:00:00Z", "stop_reason": "done"}
    assert already_ended(row) == "already stopped (2026-11-15T08:00:00Z, done)"


def test_s000_24_the_note_of_a_terminated_session_names_its_last_end() -> None:
    row = {
        "status": "terminated",
        "stopped_at": "2026-11-15T08:00:00Z",
        "stop_reason": "api_error",
        "terminated_at": "2026-11-16T09:00:00Z",
        "termination_mode": "purge",
    }
    assert already_ended(row) == "already terminated (2026-11-16T09:00:00Z, api_error)"
    # An archived session ended when it was terminated, after its stop.
    assert (
        already_ended({**row, "status": "archived"}) == "already archived (2026-11-16T09:00:00Z, api_error)"
    )
    assert already_ended({"status": "terminated"}) == "already terminated (unknown time)"


def test_s000_10_the_agent_has_3_s_for_its_exit_word_and_5_s_after_its_pane_is_closed() -> None:
    assert GRACE == {ASK: 3.0, HANG_UP: 5.0, KILL: 5.0}
