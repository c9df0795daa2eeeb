"""The state machine: every pair of status and event is either in the table or refused."""

import itertools

import pytest

from mam.core import session_transitions
from mam.core.errors import IllegalTransition
from mam.core.session_row import STATUSES, with_all_fields

EVENTS = ("create", "resume", "stop", "died", "purge", "archive", "forget")
ALLOWED = {
    ("running", "stop"),
    ("running", "died"),
    ("running", "purge"),
    ("stopped", "died"),
    ("stopped", "purge"),
    ("stopped", "resume"),
    ("stopped", "create"),
    ("stopped", "archive"),
    ("stopped", "forget"),
    ("terminated", "purge"),
    ("terminated", "resume"),
    ("terminated", "create"),
    ("terminated", "archive"),
    ("terminated", "forget"),
    ("archived", "purge"),
    ("archived", "resume"),
    ("archived", "create"),
    ("archived", "forget"),
}
ACTION = {"by": "user", "verb": "test", "at_epoch": 1794729600}


def row(status: str = "running", **fields):
    return with_all_fields(
        {"id": "s_1f00ab42", "name": "demo", "agent": "claude", "status": status, "workspace": "/w", **fields}
    )


@pytest.mark.parametrize(("status", "event"), list(itertools.product(STATUSES, EVENTS)))
def test_each_pair(status: str, event: str) -> None:
    if (status, event) in ALLOWED:
        next_status = session_transitions.next_status(status, event, "demo")
        assert next_status in (*STATUSES, session_transitions.GONE)
    else:
        with pytest.raises(IllegalTransition, match=f"'demo' is {status}, so .*{event}"):
            session_transitions.next_status(status, event, "demo")


def test_a_refusal_names_the_session_and_the_next_command() -> None:
    with pytest.raises(IllegalTransition) as refused:
        session_transitions.archived(row("running"), ACTION)
    assert refused.value.message == "'demo' is running, so mam does not archive it"
    assert refused.value.hint == "stop it first: mam stop demo"


def test_a_stop_is_resumable_and_keeps_the_placeholder() -> None:
    changed = session_transitions.stopped(row(), ACTION, reason="api_error", mode="graceful", exit_status=0)
    assert (changed["status"], changed["resumable"], changed["stop_reason"]) == ("stopped", True, "api_error")
    assert changed["stopped_at"] == "2026-11-15T08:00:00Z"
    assert changed["claude_session_id_own"] is None
    assert "claude_session_id_own" in changed


def test_a_purge_clears_every_id() -> None:
    before = row(
        "stopped", claude_session_id_own="abc", conversations=[{"id": "abc", "source": "hook", "since": ""}]
    )
    changed = session_transitions.purged(before, ACTION, reason="x", exit_status=None)
    assert (changed["status"], changed["resumable"], changed["termination_mode"]) == (
        "terminated",
        False,
        "purge",
    )
    assert changed["claude_session_id_own"] is None
    assert changed["conversations"] == []


def test_a_resume_clears_how_it_ended_and_counts() -> None:
    stopped = session_transitions.stopped(row(), ACTION, reason="x", mode="forced", exit_status=137)
    changed = session_transitions.resumed(
        stopped, ACTION, pane={"id": "%1"}, tmux_session_id="$1", tier=1, own="abc"
    )
    assert changed["status"] == "running"
    assert (
        changed["stopped_at"],
        changed["stop_reason"],
        changed["exit_status"],
        changed["termination_mode"],
    ) == (None,) * 4
    assert (changed["resume_count"], changed["resume_tier"], changed["claude_session_id_own"]) == (
        1,
        1,
        "abc",
    )


def test_a_failed_resume_never_erases_an_id() -> None:
    changed = session_transitions.resumed(
        row("stopped", claude_session_id_own="abc"),
        ACTION,
        pane={},
        tmux_session_id="$1",
        tier=None,
        own=None,
    )
    assert changed["claude_session_id_own"] == "abc"


def test_unknown_keys_survive_every_change() -> None:
    before = row(mood="calm")
    after = session_transitions.archived(
        session_transitions.died(before, ACTION, on_disk=True, exit_status=None), ACTION
    )
    assert after["mood"] == "calm"


def test_s000_5_a_stop_keeps_the_pane_for_the_record() -> None:
    pane = {"pid": 7, "cmd": "claude", "cwd": "/w", "mcp_attachments": ["serena"]}
    changed = session_transitions.stopped(row(pane=pane), ACTION, reason="x", mode="graceful", exit_status=0)
    assert changed["pane"] == pane


def test_s000_22_the_fields_of_a_stop() -> None:
    changed = session_transitions.stopped(
        row(claude_session_id_own="abc"), ACTION, reason="api_error", mode="graceful", exit_status=0
    )
    fields = ("status", "stop_reason", "termination_mode", "claude_session_id_own", "resumable")
    assert [changed[field] for field in fields] == ["stopped", "api_error", "graceful", "abc", True]
    assert (changed["stopped_at"], changed["stopped_at_epoch"]) == ("2026-11-15T08:00:00Z", 1794729600)


def test_s000_23_the_fields_of_a_purge() -> None:
    changed = session_transitions.purged(row(), ACTION, reason="x", exit_status=None)
    fields = ("status", "termination_mode", "resumable")
    assert [changed[field] for field in fields] == ["terminated", "purge", False]
    assert (changed["terminated_at"], changed["terminated_at_epoch"]) == ("2026-11-15T08:00:00Z", 1794729600)
