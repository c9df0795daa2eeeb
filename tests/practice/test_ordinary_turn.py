"""Turns, tools, dialogs and drills, without a terminal."""

from __future__ import annotations

import pytest
from tests.practice.held import BOX, Held

from mam.practice.live_region_rows import title
from mam.practice.turn_actions import Crash

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_turn_from_prompt_to_stop():
    held = Held("--speed", "40", "--name", "demo")
    held.send("explain it")
    assert held.rows[-2:] == ["", "❯ explain it"]
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
    assert "● " + answer.split("\n")[0][:30] in "\n".join(held.rows)
    assert held.listener.names() == ["SessionStart", "UserPromptSubmit", "Stop"]
    assert held.listener.events[1][1]["prompt"] == "explain it"
    assert held.listener.events[2][1]["last_assistant_message"] == answer


def test_a_message_is_on_disk_before_anybody_hears_of_it():
    held = Held()
    on_disk = []
    held.listener.fire = lambda *_: on_disk.append(held.agent.session.conversation.is_saved())
    held.send("hello")
    assert on_disk[0] is True


def test_the_streamed_rows_are_the_answer():
    held = Held("--speed", "40")
    held.send("explain it")
    held.pass_time(6)
    answer = held.turns()[1][1]
    rows = " ".join(" ".join(held.rows[held.rows.index("❯ explain it") + 1 :]).split())
    assert rows == "● " + " ".join(answer.split())


def test_escape_interrupts_and_tells_nobody():
    held = Held("--speed", "40")
    held.send("explain it")
    held.pass_time(1.5)
    held.key("escape")
    assert held.rows[-1] == "  ⎿ Interrupted · What should the agent do instead?"
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
    assert held.listener.names().count("UserPromptSubmit") == 3, "told when they are taken"
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
    assert held.rows[held.rows.index("● Bash(touch made)") + 1] == "  ⎿ ok"
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
    assert held.rows[-1] == "  ⎿ Interrupted · What should the agent do instead?"
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
    assert held.rows[-1] == "● API Error: 500 practice error"
    assert held.listener.events[-1][0] == "StopFailure"
    assert held.listener.events[-1][1]["error"] == "server_error"
    held.send("/retry")
    for attempt in (1, 2, 3):
        assert f"✻ 500 practice error · Retrying in 1s · attempt {attempt}/10" in held.live()
        held.pass_time(1)
    assert held.turns()[-1][1].startswith("The service answered")
    held.send("/limit")
    assert "● Usage limit reached · resets 6pm" in held.rows
    assert title(held.agent) == "✋ practice · waiting"
    held.key("enter")
    assert held.live() == ["", *BOX]


def test_hang_ends_with_escape_only():
    held = Held()
    held.send("/hang")
    held.pass_time(4000)
    assert title(held.agent) == "✦ practice · working"
    held.key("escape")
    assert title(held.agent) == "◇ practice · ready"


def test_flood_prints_what_was_asked_for():
    held = Held()
    held.send("/flood 200")
    held.pass_time(1)
    flood = [row for row in held.rows if "flood" in row and "~" in row]
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
