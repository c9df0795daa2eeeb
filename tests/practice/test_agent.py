"""The agent without a terminal: keys go in, the clock is ours, rows and events come out."""

from __future__ import annotations

import pytest

from mam.practice.agent import Agent
from mam.practice.options import parse
from mam.practice.output import Output
from mam.practice.region import live_region, title
from mam.practice.session import Session
from mam.practice.stage import Crash
from mam.practice.transcript import open_conversation


class Listener:
    """Stands where the hooks stand and remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def fire(self, event, payload):
        self.events.append((event, payload))

    def names(self) -> list[str]:
        return [event for event, _ in self.events]


class Held:
    """An agent in the test's hands."""

    def __init__(self, *arguments: str) -> None:
        options = parse(["--speed", "0", *arguments])
        self.listener = Listener()
        self.output = Output(80)
        session = Session(options, open_conversation(options), self.listener, "/w", self.output)
        self.agent = Agent(options, session)
        self.said: list[str] = []
        self.agent.start(0.0)
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, as the loop does."""
        until = self.agent.now + seconds
        while True:
            self.agent.advance()
            self.agent.painted()
            self.said += self.output.take()
            due = self.agent.deadline()
            if due is None or due > until or self.agent.outcome:
                break
            self.agent.at(max(due, self.agent.now))
        self.agent.at(until)

    def key(self, *names: str) -> None:
        for name in names:
            self.agent.key(name, "")
        self.said += self.output.take()

    def send(self, text: str) -> None:
        self.agent.key("text", text)
        self.key("enter")

    def live(self, columns: int = 80, height: int = 24) -> list[str]:
        return live_region(self.agent, columns, height)[0]

    def turns(self) -> list[tuple[str, str]]:
        return self.agent.session.conversation.turns


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


BOX = ["─" * 80, "❯ ", "─" * 80, "  ? for help · permissions: ask"]


def test_idle():
    held = Held()
    assert held.said[0].endswith("Practice agent v0.1")
    assert held.said[1].endswith("practice-1")
    assert held.said[2].endswith("/w")
    assert held.live() == ["", *BOX]
    assert title(held.agent) == "◇ practice · ready"
    assert held.listener.names() == ["SessionStart"]
    assert held.listener.events[0][1]["source"] == "startup"
    assert held.turns() == []


def test_a_turn_from_prompt_to_stop():
    held = Held("--speed", "40", "--name", "demo")
    held.send("explain it")
    assert held.said[-2:] == ["", "❯ explain it"]
    assert held.turns() == [("user", "explain it")]
    held.pass_time(1.2)
    live = held.live()
    assert live[-5][0] in "·✢✳✶✻✽"
    assert live[-5][1:] == " Thinking… (1s · esc to interrupt)"
    assert live[-4] == "─" * 72 + " demo " + "──"
    assert title(held.agent) == "✦ practice · working"
    held.pass_time(5)
    (_, answer) = held.turns()[1]
    assert "explain it" in answer
    assert held.live()[-4:] == [live[-4], *BOX[1:]]
    assert "● " + answer.split("\n")[0][:30] in "\n".join(held.said)
    assert held.listener.names() == ["SessionStart", "UserPromptSubmit", "Stop"]
    assert held.listener.events[1][1]["prompt"] == "explain it"
    assert held.listener.events[2][1]["last_assistant_message"] == answer


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


def test_the_streamed_rows_are_the_answer():
    held = Held("--speed", "40")
    held.send("explain it")
    held.pass_time(6)
    answer = held.turns()[1][1]
    shown = " ".join(" ".join(held.said[held.said.index("❯ explain it") + 1 :]).split())
    assert shown == "● " + " ".join(answer.split())


def test_escape_interrupts_and_tells_nobody():
    held = Held("--speed", "40")
    held.send("explain it")
    held.pass_time(1.5)
    held.key("escape")
    assert held.said[-1] == "  ⎿ Interrupted · What should the agent do instead?"
    held.pass_time(10)
    assert held.live() == ["", *BOX]
    assert held.turns() == [("user", "explain it")]
    assert held.listener.names() == ["SessionStart", "UserPromptSubmit"]


def test_messages_wait_their_turn():
    held = Held()
    held.send("/slow 5")
    held.send("second\nline")
    held.send("third")
    assert held.live()[-6:-4] == ["  queued: second line", "  queued: third"]
    assert [text for _, text in held.turns()] == ["/slow 5"]
    assert held.listener.names().count("UserPromptSubmit") == 1
    held.pass_time(6)
    assert [text for kind, text in held.turns() if kind == "user"] == ["/slow 5", "second\nline", "third"]
    assert held.live() == ["", *BOX]


def test_many_queued_messages_are_all_taken():
    held = Held()
    held.send("/slow 1")
    for number in range(1500):
        held.send(f"message {number}")
    assert "  queued: +1497 more" in held.live()
    held.pass_time(2)
    assert len(held.turns()) == 3002


def test_a_permission_is_asked_and_given(tmp_path):
    held = Held()
    held.send("/ask touch made")
    assert held.live() == ["", *held.agent.dialog().rows(80)]
    assert "   touch made" in held.live()
    assert title(held.agent) == "✋ practice · waiting"
    assert not (tmp_path / "made").exists()
    held.key("enter")
    held.pass_time(1)
    assert (tmp_path / "made").exists()
    assert held.said[held.said.index("● Bash(touch made)") + 1] == "  ⎿ ok"
    names = ["SessionStart", "UserPromptSubmit", "PermissionRequest", "PostToolUse", "Stop"]
    assert held.listener.names() == names
    request = held.listener.events[2][1]
    assert (request["tool_name"], request["tool_input"]) == ("Bash", {"command": "touch made"})


@pytest.mark.parametrize("keys", [["escape"], ["ctrl-c"], ["down", "down", "enter"]])
def test_a_permission_is_denied(keys, tmp_path):
    held = Held()
    held.send("/ask touch made")
    held.key(*keys)
    held.pass_time(1)
    assert not (tmp_path / "made").exists()
    assert held.said[-1] == "  ⎿ Interrupted · What should the agent do instead?"
    assert held.live() == ["", *BOX]
    assert held.listener.names() == ["SessionStart", "UserPromptSubmit", "PermissionRequest"]


def test_dont_ask_again_holds_for_the_same_tool():
    held = Held()
    held.send("/ask touch one")
    held.agent.key("text", "2")
    held.pass_time(1)
    held.send("/ask touch two")
    held.pass_time(1)
    assert held.agent.dialog() is None
    held.send("/ask make it")
    assert held.agent.dialog()


@pytest.mark.parametrize("mode", ["auto", "skip"])
def test_no_questions_with_permissions(mode, tmp_path):
    held = Held("--permissions", mode)
    held.send("create made.txt")
    held.pass_time(1)
    assert (tmp_path / "made.txt").exists()
    assert "PermissionRequest" not in held.listener.names()
    assert held.live()[-1] == f"  ? for help · permissions: {mode}"


def test_a_prompt_that_calls_for_a_tool_asks():
    held = Held()
    held.send("run the tests")
    held.pass_time(1)
    assert "   make test" in held.live()


def test_a_draft_survives_a_dialog():
    held = Held()
    held.send("/slow 1")
    held.send("/ask make it")
    held.agent.key("text", "half a thou")
    held.pass_time(2)
    held.agent.key("text", "swallowed")
    held.key("escape")
    assert "❯ half a thou" in held.live()


def test_question_error_retry_limit():
    held = Held()
    held.send("/question")
    assert " ☐ Colour" in held.live()
    held.key("down", "enter")
    held.pass_time(1)
    assert held.turns()[-1] == ("assistant", "You chose Green.")
    held.send("/error")
    held.pass_time(1)
    assert held.said[-1] == "● API Error: 500 practice error"
    assert held.listener.events[-1][0] == "StopFailure"
    assert held.listener.events[-1][1]["error"] == "server_error"
    held.send("/retry")
    for attempt in (1, 2, 3):
        assert f"✻ 500 practice error · Retrying in 1s · attempt {attempt}/10" in held.live()
        held.pass_time(1)
    assert held.turns()[-1][1].startswith("The service answered")
    held.send("/limit")
    assert "● Usage limit reached · resets 6pm" in held.said
    assert title(held.agent) == "✋ practice · waiting"
    held.key("enter")
    assert held.live() == ["", *BOX]


def test_hang_ends_with_escape_only():
    held = Held()
    held.send("/hang")
    held.pass_time(100_000)
    assert title(held.agent) == "✦ practice · working"
    held.key("escape")
    assert title(held.agent) == "◇ practice · ready"


def test_flood_prints_what_was_asked_for():
    held = Held()
    held.send("/flood 200")
    held.pass_time(1)
    flood = [row for row in held.said if "flood" in row and "~" in row]
    assert sum(len(row) + 1 for row in flood) == 200 * 1024
    assert held.turns()[-1] == ("assistant", "Printed 200 KB.")


def test_crash():
    held = Held()
    held.send("/crash 7")
    with pytest.raises(Crash) as crash:
        held.pass_time(1)
    assert crash.value.code == 7
    assert held.turns() == [("user", "/crash 7")]
    assert held.listener.names() == ["SessionStart", "UserPromptSubmit"]


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
    assert held.said[-1] == answer
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
    shown = held.said[held.said.index("❯   two") :]
    assert shown[:3] == ["❯   two", "", "      lines ^[[31mred^G"]


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
    ends = [(name, p["session_id"] == first, p.get("reason"), p.get("source")) for name, p in held.listener.events]
    assert ("SessionEnd", True, "clear", None) in ends
    assert ("SessionStart", False, None, "clear") in ends


def test_resume_knows_what_was_said():
    held = Held()
    held.send("the word is swordfish")
    held.pass_time(1)
    again = Held("--resume", held.agent.session.conversation.id)
    assert "❯ the word is swordfish" in again.said
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
    assert any(row.startswith("● The transcript could not be written: ") for row in held.said)
    assert held.live() == ["", *BOX]
