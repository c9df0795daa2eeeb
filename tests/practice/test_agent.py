"""Keys, commands, start and end, without a terminal."""

from __future__ import annotations

import pytest
from tests.practice.held import BOX, Held

from mam.practice.live_region_rows import live_region, title

pytestmark = pytest.mark.usefixtures("own_folder")


def test_idle():
    held = Held()
    assert held.rows[0].endswith("Practice agent v0.1")
    assert held.rows[1].endswith("practice-1")
    assert held.rows[2].endswith("/w")
    assert held.live() == ["", *BOX]
    assert title(held.agent) == "◇ practice · ready"
    assert held.listener.names() == ["SessionStart"]
    assert held.listener.events[0][1]["source"] == "startup"
    assert held.turns() == []


def test_every_payload_says_who_and_where():
    held = Held()
    held.send("hello")
    held.pass_time(1)
    conversation = held.agent.session.conversation
    for event, payload in held.listener.events:
        assert payload["session_id"] == conversation.id
        assert payload["transcript_path"] == conversation.path
        assert payload["cwd"] == "/w"
        assert payload["hook_event_name"] == event


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("/nosuch x", "● Unknown command: /nosuch"),
        ("/slow", "● Usage: /slow SECONDS"),
        ("/slow nan", "● Usage: /slow SECONDS"),
        ("/flood -1", "● Usage: /flood KB"),
        ("/crash 256", "● Usage: /crash [N]"),
        ("/ask  ", "● Usage: /ask TOOL ARGS…"),
    ],
)
def test_commands_that_cannot_run_are_no_turns(text, answer):
    held = Held()
    held.send(text)
    assert held.rows[-1] == answer
    assert held.turns() == []
    assert held.listener.names() == ["SessionStart"]


@pytest.mark.parametrize("text", ["/etc/passwd is a file", "/ x", " /exit", "/1", "//"])
def test_messages_that_begin_like_commands(text):
    held = Held()
    held.send(text)
    assert held.turns()[0] == ("user", text)


@pytest.mark.parametrize("text", [" ", "\n", " \t\n "])
def test_blank_is_not_submitted(text):
    held = Held()
    held.send(text)
    assert held.turns() == []
    assert held.live() == ["", *BOX]


def test_text_is_kept_exactly_and_shown_clean():
    held = Held()
    text = "  two\n\n\tlines \x1b[31mred\x07 "
    held.agent.key("paste", text)
    held.key("enter")
    assert held.turns()[0] == ("user", text)
    screen = held.rows[held.rows.index("❯   two") :]
    assert screen[:3] == ["❯   two", "", "      lines ^[[31mred^G"]


def test_clear_begins_anew():
    held = Held()
    held.send("hello")
    held.pass_time(1)
    first = held.agent.session.conversation.id
    held.send("/clear")
    held.send("what did I say?")
    held.pass_time(1)
    assert held.agent.session.conversation.id != first
    assert "not said anything" in held.turns()[-1][1]
    ends = [
        (name, p["session_id"] == first, p.get("reason"), p.get("source")) for name, p in held.listener.events
    ]
    assert ("SessionEnd", True, "clear", None) in ends
    assert ("SessionStart", False, None, "clear") in ends


def test_resume_knows_what_was_said():
    held = Held()
    held.send("the word is swordfish")
    held.pass_time(1)
    again = Held("--resume", held.agent.session.conversation.id)
    assert "❯ the word is swordfish" in again.rows
    assert again.listener.events[0][1]["source"] == "resume"
    again.send("what did I say?")
    again.pass_time(1)
    assert "1. the word is swordfish" in again.turns()[-1][1]
    again.key("up", "up")
    assert "❯ the word is swordfish" in again.live()
    fork = Held("--resume", held.agent.session.conversation.id, "--fork-session")
    assert fork.listener.events[0][1]["source"] == "fork"


def test_control_c_in_its_three_meanings():
    held = Held()
    held.agent.key("text", "draft")
    held.key("ctrl-c")
    assert held.live() == ["", *BOX]
    held.send("/hang")
    held.key("ctrl-c")
    assert title(held.agent) == "◇ practice · ready"
    held.key("ctrl-c")
    assert held.live()[-1] == "  Press Ctrl-C again to exit"
    held.pass_time(3)
    assert held.live()[-1] == BOX[-1]
    held.key("ctrl-c", "left", "ctrl-c")
    assert held.agent.outcome is None
    held.key("ctrl-c")
    assert (held.agent.outcome.code, held.agent.outcome.reason) == (0, "prompt_input_exit")


def test_control_d_deletes_or_exits():
    held = Held()
    held.agent.key("text", "ab")
    held.key("home", "ctrl-d")
    assert held.agent.editor.text == "b"
    held.key("ctrl-d", "ctrl-d")
    assert held.agent.outcome.code == 0


@pytest.mark.parametrize("command", ["/exit", "/quit"])
def test_exit_works_during_a_turn(command):
    held = Held()
    held.send("/hang")
    held.send(command)
    assert (held.agent.outcome.code, held.agent.outcome.reason) == (0, "prompt_input_exit")


def test_an_agent_that_does_not_leave():
    held = Held("--ignore-sigterm")
    held.send("/exit")
    held.key("ctrl-c", "ctrl-c", "ctrl-d", "escape")
    held.pass_time(60)
    assert held.agent.outcome is None
    assert held.live()[1] == "✻ Exiting…"


def test_slow_start_keeps_text_and_loses_enter():
    held = Held("--slow-start", "2")
    assert held.live() == ["Starting…"]
    assert held.listener.names() == []
    held.send("early")
    held.pass_time(1.9)
    assert held.live() == ["Starting…"]
    held.pass_time(0.2)
    assert "❯ early" in held.live()
    assert held.turns() == []
    assert held.listener.names() == ["SessionStart"]


def test_trust_dialog():
    held = Held("--trust-dialog", "a prompt")
    assert " ❯ No, exit" in held.live()
    assert title(held.agent) == "✋ practice · waiting"
    assert held.listener.names() == []
    held.key("enter")
    assert (held.agent.outcome.code, held.agent.outcome.reason) == (1, "")
    trusting = Held("--trust-dialog", "a prompt")
    trusting.key("down", "enter")
    trusting.pass_time(1)
    assert trusting.turns()[0] == ("user", "a prompt")
    assert trusting.listener.names()[:2] == ["SessionStart", "UserPromptSubmit"]


def test_name_and_colour_are_no_turns():
    held = Held()
    held.send("/rename new \x1b name")
    held.send("/color red")
    assert held.live()[1].endswith(" new ^[ name ──")
    assert held.agent.edge == "red"
    assert held.turns() == []


@pytest.mark.parametrize(("columns", "height"), [(1, 1), (3, 2), (12, 5), (40, 15), (200, 50)])
def test_any_size_can_be_shown(columns, height):
    held = Held("--name", "a name that is long enough to be cut")
    held.output.fit(columns)
    for text in ("hello there", "漢" * 50, "/ask make " + "x" * 99, "/help"):
        held.send(text)
        held.pass_time(1)
        rows, cursor = live_region(held.agent, columns, height)
        assert 1 <= len(rows) <= max(height, 1)
        assert cursor is None or cursor[0] < len(rows)
        held.key("escape")


def test_a_disk_that_takes_nothing_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    held = Held()
    held.send("hello")
    held.pass_time(1)
    assert any(row.startswith("● The transcript could not be written: ") for row in held.rows)
    assert held.live() == ["", *BOX]
