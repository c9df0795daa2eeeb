"""The program in tmux, as a person and as a program that reads screens see it."""

from __future__ import annotations

import pytest
from tests.practice.drive import wait_for

from mam.practice.text_width import cells

ID = "11111111-2222-4333-8444-555555555555"


def test_idle_busy_and_ready_again(panes, store):
    pane = panes.ready("--name", "demo", "--session-id", ID)
    screen = pane.screen()
    assert "Practice agent v0.1" in screen[0]
    assert screen[2].endswith(str(store.folder)[-20:])
    assert screen[-4:] == ["─" * 72 + " demo ──", "❯", "─" * 80, "  ? for help · permissions: ask"]
    assert pane.value("pane_title") == "◇ practice · ready"
    assert (pane.value("cursor_x"), pane.value("cursor_y")) == ("2", "5")
    assert pane.value("alternate_on") == "0"

    pane.type("/slow 1.5", "Enter")
    pane.shows("Thinking… (1s · esc to interrupt)")
    assert pane.box() == ["❯"]
    assert pane.value("pane_title") == "✦ practice · working"
    pane.type("half a draft")
    pane.shows("Done after 1.5 seconds.")
    wait_for(lambda: "Thinking" not in "".join(pane.screen()))
    assert pane.box() == ["❯ half a draft"]


def test_the_answer_streams(panes, store):
    pane = panes.ready("--session-id", ID)
    pane.type("explain the parser", "Enter")
    assert wait_for(lambda: store.turns(ID))[0]["text"] == "explain the parser"
    pane.shows("● ")
    early = pane.history()
    assert "esc to interrupt" in early
    wait_for(lambda: len(store.turns(ID)) == 2, "the end of the answer", pane.history)
    answer = store.turns(ID)[1]["text"]
    wait_for(lambda: pane.value("pane_title") == "◇ practice · ready")
    screen = pane.history().split("❯ explain the parser", 1)[1].split("──")[0]
    assert " ".join(screen.split()) == "● " + " ".join(answer.split())
    assert len(early) < len(pane.history())


def test_enter_in_a_dialog_approves_whatever_was_typed(panes, store):
    pane = panes.ready("--speed", "0", "--session-id", ID)
    pane.type("/ask touch made", "Enter")
    pane.shows("Do you want to proceed?")
    assert pane.screen()[-7:] == [
        " Bash command",
        "   touch made",
        " Do you want to proceed?",
        " ❯ 1. Yes",
        "   2. Yes, and don't ask again",
        "   3. No, and tell the agent what to do differently (esc)",
        " Enter to confirm · Esc to cancel",
    ]
    assert pane.box() == []
    assert pane.value("pane_title") == "✋ practice · waiting"
    pane.paste("a message that never arrives")
    assert not (store.folder / "made").exists()
    pane.press("Enter")
    wait_for((store.folder / "made").exists)
    pane.shows("  ⎿ ok")
    wait_for(lambda: len(store.turns(ID)) == 2)
    assert "never arrives" not in pane.history()
    assert pane.box() == ["❯"]


def test_escape_denies(panes, store):
    pane = panes.ready("--speed", "0")
    pane.type("create made.txt", "Enter")
    pane.shows("   touch made.txt")
    pane.press("Escape")
    pane.shows("  ⎿ Interrupted · What should the agent do instead?")
    wait_for(lambda: pane.box() == ["❯"])
    assert not list(store.folder.iterdir())


def test_a_long_paste_is_folded_and_arrives_whole(panes, store):
    pane = panes.ready("--speed", "0", "--session-id", ID)
    text = "\n".join(f"line {number} é漢👍" for number in range(2000))
    pane.paste(text)
    wait_for(lambda: pane.box() == ["❯ [Pasted text #1 +1999 lines]"], "the fold", pane.history)
    pane.press("Enter")
    wait_for(lambda: store.turns(ID))
    assert store.turns(ID)[0]["text"] == text


def test_a_short_paste_is_shown_and_newlines_do_not_submit(panes, store):
    pane = panes.ready("--speed", "0", "--session-id", ID)
    pane.paste("one\n  two\nthree")
    wait_for(lambda: pane.box() == ["❯ one", "    two", "  three"], "the paste", pane.history)
    pane.press("M-Enter")
    pane.type("four")
    wait_for(lambda: pane.box()[-1] == "  four")
    assert store.turns(ID) == []
    pane.press("Enter")
    wait_for(lambda: store.turns(ID))
    assert store.turns(ID)[0]["text"] == "one\n  two\nthree\nfour"
    wait_for(lambda: pane.box() == ["❯"])


def test_the_cursor_stands_where_text_goes(panes):
    pane = panes.ready()
    pane.type("漢字 👍 e\u0301 👨\u200d👩\u200d👧")
    wait_for(lambda: "👍" in "".join(pane.box()))
    assert int(pane.value("cursor_x")) == 2 + cells("漢字 👍 e\u0301 👨\u200d👩\u200d👧")
    pane.press("Home", "Right")
    wait_for(lambda: pane.value("cursor_x") == "4")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50), (40, 15)])
def test_sizes(columns, rows, panes):
    pane = panes.ready("--speed", "0", "--name", "demo", columns=columns, rows=rows)
    pane.type("hello there", "Enter")
    pane.shows("● ")
    pane.rests()
    assert all(cells(row) <= columns for row in pane.screen())
    assert sum(row == "─" * columns for row in pane.screen()) == 1
    pane.type("x" * columns)
    wait_for(lambda: pane.box() == ["❯ " + "x" * (columns - 3), "  " + "x" * 3], "two rows", pane.history)


def test_resizing_leaves_one_box_and_the_whole_conversation(panes):
    pane = panes.ready("--speed", "0")
    pane.type("hello there", "Enter")
    pane.shows("● ")

    def words() -> list[str]:
        rows = pane.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane.id).split("\n")
        return [row.strip() for row in rows if row.strip()]

    pane.rests()
    before = words()
    for columns, height in [(50, 24), (120, 30), (33, 20), (80, 24)]:
        pane.resize(columns, height)
        pane.rests()
    assert words() == before


def test_s003_28_another_height_leaves_one_box_and_the_whole_conversation(panes):
    """A lower window makes tmux drop the rows below the cursor, which are the end of the input box."""
    pane = panes.ready("--speed", "0")
    pane.type("hello there", "Enter")
    pane.shows("● ")
    pane.rests()
    before = pane.history().split()
    for height in (9, 30, 8, 24):
        pane.resize(80, height)
        pane.rests()
        pane.type(f"at {height} rows")
        wait_for(lambda height=height: pane.box() == [f"❯ at {height} rows"], "the draft", pane.history)
        pane.press("C-u")
        wait_for(lambda: pane.box() == ["❯"], "the empty box", pane.history)
    assert pane.history().split() == before


def test_queue_and_interrupt(panes, store):
    pane = panes.ready("--speed", "0", "--session-id", ID)
    pane.type("/hang", "Enter")
    pane.shows("esc to interrupt")
    pane.type("second message", "Enter")
    pane.shows("  queued: second message")
    assert [turn["text"] for turn in store.turns(ID)] == ["/hang"]
    pane.press("Escape")
    wait_for(lambda: [turn["text"] for turn in store.turns(ID)][:2] == ["/hang", "second message"])
    wait_for(lambda: "queued" not in pane.history())


def test_flood_keeps_the_box(panes, store):
    pane = panes.ready("--speed", "0", "--session-id", ID)
    pane.type("/flood 2000", "Enter")
    wait_for(lambda: len(store.turns(ID)) == 2)
    pane.shows("Printed 2000 KB.")
    wait_for(lambda: pane.box() == ["❯"])


def test_exit_and_its_code(panes):
    pane = panes.ready("--speed", "0")
    pane.press("C-c")
    pane.shows("Press Ctrl-C again to exit")
    pane.press("C-c")
    pane.shows("ended with 0")
    assert "──" not in pane.history()


def test_the_last_words_can_be_copied_from_a_narrow_pane(panes):
    pane = panes.ready("--speed", "0", "--session-id", ID, columns=40)
    pane.type("hello", "Enter")
    pane.shows("● ")
    pane.type("/exit", "Enter")
    pane.shows("ended with 0")
    joined = pane.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane.id)
    assert f"Resume with: python -m mam.practice --resume {ID}" in joined


def test_trust_dialog_exits_by_default(panes):
    pane = panes.start("--trust-dialog")
    pane.shows("Enter to confirm")
    assert " ❯ No, exit" in pane.screen()
    pane.press("Enter")
    pane.shows("ended with 1")


def test_killing_the_session_is_told_to_the_hooks(panes, store):
    pane = panes.ready("--settings", store.recorder())
    wait_for(lambda: store.heard_names() == ["SessionStart"])
    pane.tmux("kill-session", "-t", pane.id)
    wait_for(lambda: store.heard_names() == ["SessionStart", "SessionEnd"], "the end", store.heard_names)
    assert store.heard()[-1]["reason"] == "other"
