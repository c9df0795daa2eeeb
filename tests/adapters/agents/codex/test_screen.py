"""Reading every recorded screen of Codex, and texts that resemble one."""

import time
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import captured, facts_of, screen_of

from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.kind import Screen

KIND = Codex()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "codex"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
EXPECTED = {
    "idle": IDLE,
    "idle-after-turn": IDLE,
    "cleared": IDLE,
    "denied": IDLE,
    "erased": IDLE,
    "error": IDLE,
    "interrupted": IDLE,
    "queue-answered": IDLE,
    "queued": IDLE,
    "resumed": IDLE,
    "retry-interrupted": IDLE,
    "tool-done": IDLE,
    "draft": ("idle", None, "draft"),
    "big-paste": ("idle", None, "draft"),
    # With a menu above the box, or in a mode in which Enter runs a command, mam must not type: a draft.
    "slash-menu": ("unknown", None, "draft"),
    "shell-mode": ("unknown", None, "draft"),
    "retry": WORKING,
    "tab-queued": WORKING,
    "thinking": WORKING,
    "tool-running": WORKING,
    # This screen looks like an idle one; only the title and the rollout show the activity.
    "streaming": ("unknown", None, "empty"),
    "trust": ("waiting", "trust", None),
    "login": ("waiting", "login", None),
    "locked": ("waiting", "locked", None),
    "permission": ("waiting", "permission", None),
    "menu": ("waiting", "menu", None),
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}

# Codex asks questions only in plan mode.
QUESTION = """› ask me


  Question 1/1 (1 unanswered)
  Which color?

  › 1. Red                the red one
    2. Green              the green one
    3. None of the above  Optionally, add details in notes (tab)

  tab to add notes | enter to submit answer | esc to interrupt
"""
# Codex shows this at every start, before the trust dialog. Keys are lost, or go to that dialog.
SPLASH = """
  >_ OpenAI Codex (v0.166.0)
     /w/demo

› Ask Codex to do anything

  ? for shortcuts
"""
LIMIT = """› hit the limit

■ You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com
/settings/usage to purchase more credits or try again at 2:32 PM.

› Ask Codex to do anything

  fake-model default · /w/demo · A title
  ? for shortcuts
"""


SUGGESTION = "Ask Codex to do anything"


def read_recorded(path):
    return KIND.read_screen(screen_of(path)), facts_of(path)


def recorded(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def at_start(text):
    """Return a screen with the cursor on the first cell of the input box, its suggestion dim as recorded."""
    rows = [row for row, line in enumerate(text.split("\n")) if line.startswith("›")]
    styled = text.replace(SUGGESTION, f"\x1b[2m{SUGGESTION}\x1b[0m")
    return Screen(styled, 2, rows[-1]) if rows else Screen(text)


def read(text):
    screen_state = KIND.read_screen(at_start(text))
    return screen_state.state, screen_state.dialog, screen_state.box


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    screen_state, facts = read_recorded(path)
    assert (screen_state.state, screen_state.dialog, screen_state.box) == EXPECTED[facts["state"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_screen_never_contradicts_the_title(path) -> None:
    screen_state, facts = read_recorded(path)
    title = KIND.read_title(facts["pane_title"] or "")
    if "unknown" not in (title, screen_state.state):
        assert title == screen_state.state
    assert screen_state.state != "working" or title == "working"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cut_screen_shows_no_empty_box_that_the_whole_screen_does_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.read_screen(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.read_screen(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"


def test_the_splash_is_not_ready() -> None:
    assert read(SPLASH) == ("unknown", None, None)
    assert read(SPLASH.replace("  ?", "  fake-model default · /w/demo\n  ?")) == ("idle", None, "empty")


@pytest.mark.parametrize(
    "footer",
    [
        # Another status line, and none.
        "  fake-model\n  ? for shortcuts     ⚠ 1 warning · f2 to view\n",
        "  ? for shortcuts     100% context left    ⚠ 1 warning · f2 to view\n",
    ],
)
def test_another_status_line(footer) -> None:
    assert read(SPLASH.replace("  ? for shortcuts\n", footer)) == ("idle", None, "empty")


def test_a_warning_beside_the_hints_is_no_status_line() -> None:
    warned = SPLASH.replace("  ? for shortcuts", "  ? for shortcuts     ⚠ 1 warning · f2 to view")
    assert read(warned) == ("unknown", None, None)


def test_a_question() -> None:
    assert read(QUESTION) == ("waiting", "question", None)


@pytest.mark.parametrize(
    ("end", "now", "is_on"),
    [
        ("2:32 PM", "2026-11-15 14:30", True),
        # The message names the minute only.
        ("2:32 PM", "2026-11-15 14:32", True),
        ("2:32 PM", "2026-11-15 14:33", False),
        ("11:30 PM", "2026-11-16 07:00", False),
        ("Nov 22nd, 2026 9:05 AM", "2026-11-15 14:30", True),
        ("Nov 22nd, 2026 9:05 AM", "2026-11-22 09:06", False),
        ("3 days", "2026-11-15 14:30", False),
        ("", "2026-11-15 14:30", False),
    ],
)
def test_a_limit_counts_until_its_end(monkeypatch, end, now, is_on) -> None:
    monkeypatch.setattr(time, "time", datetime.fromisoformat(now).timestamp)
    screen_state = KIND.read_screen(
        at_start(LIMIT.replace("2:32 PM", end) if end else LIMIT.replace(" or try again at 2:32 PM", ""))
    )
    assert screen_state.box == "empty"
    assert (screen_state.state, screen_state.dialog) == (("waiting", "limit") if is_on else ("idle", None))
    assert screen_state.detail == end if is_on else screen_state.detail.startswith("a limit was reached")


def test_the_dialog_of_an_update() -> None:
    offer = "  ✨ Update available!\n\n› 1. Update now\n  2. Skip\n\n  Press enter to continue\n"
    assert read(offer) == ("waiting", "update", None)


def test_mam_presses_enter_in_the_trust_dialog_only_on_yes() -> None:
    before = KIND.read_screen(Screen(recorded("trust")))
    assert KIND.answer_keys(before, "trust") == ["Enter"]
    moved = recorded("trust").replace("› 1.", "  1.").replace("  2.", "› 2.")
    assert KIND.answer_keys(KIND.read_screen(Screen(moved)), "trust") == ["Up"]
    assert KIND.answer_keys(KIND.read_screen(Screen(recorded("permission"))), "trust") is None


@pytest.mark.parametrize("quote", ["› 1. Trust and continue", "🔒  This conversation is open in another app"])
def test_a_text_in_a_dialog_does_not_make_it_another_dialog(quote) -> None:
    text = recorded("permission")
    assert "$ touch made-by-tool" in text
    assert read(text.replace("$ touch made-by-tool", f"$ echo '\n{quote}\n'"))[1] == "permission"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Text of the conversation that looks like an input box or a dialog is neither.
        ("  fake-model", "• fake-model", ("unknown", None, None)),
        (
            "• The first",
            "• Would you?\n\n  › 1. Yes, proceed (y)\n\n  Press enter to confirm or esc to cancel\n\n• And",
            IDLE,
        ),
        # A busy line of an earlier turn does not count.
        ("› remember", "• Working (3s • esc to interrupt)\n\n› remember", IDLE),
        ("  Worked for", "• Worked for", ("unknown", None, "empty")),
    ],
)
def test_a_text_that_resembles_a_box_or_a_dialog(old, new, expected) -> None:
    text = recorded("idle-after-turn")
    assert old in text
    assert read(text.replace(old, new)) == expected


def test_a_draft_with_the_text_of_the_placeholder() -> None:
    text = captured(SCREENS / "idle.txt")
    assert f"\x1b[2m{SUGGESTION}" in text
    assert KIND.read_screen(Screen(text, 2, 46)).box == "empty"
    assert KIND.read_screen(Screen(text, 26, 46)).box == "draft"
    assert KIND.read_screen(Screen(text)).box == "draft"
    # Without any style its known words count, with the cursor before them.
    assert KIND.read_screen(Screen(recorded("idle"), 2, 46)).box == "empty"
    assert KIND.read_screen(Screen(recorded("idle"), 26, 46)).box == "draft"
    assert KIND.read_screen(Screen(recorded("idle").replace(SUGGESTION, "Ask"), 2, 46)).box == "draft"


def test_a_draft_of_several_lines() -> None:
    text = recorded("idle-after-turn").replace("Ask Codex to do anything", "one\n\n  1. two\n  three")
    assert read(text) == ("idle", None, "draft")


def test_titles() -> None:
    states = [
        KIND.read_title(title) for title in ("demo", "A title | demo", "", "⠹demo", "Action Required | x")
    ]
    assert states == ["unknown"] * 5
    assert KIND.read_title("⠹ A title | demo") == "working"
    assert {KIND.read_title(f"[ {sign} ] Action Required | demo") for sign in "!."} == {"waiting"}


@given(st.text(alphabet=st.sampled_from("›! ·\nab1.•■Workedescenter"), max_size=300))
def test_any_text_can_be_read(text) -> None:
    screen_state = KIND.read_screen(Screen(text))
    assert screen_state.state != "idle" or screen_state.box is not None
    assert screen_state.box is None or "›" in text or "!" in text
