"""Codex's screens, all that were recorded: each is told by name, and what is none of them is unknown."""

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.kind import Screen

KIND = Codex()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "codex"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
LOOKS = {
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
    # A menu above the box, and a mode in which Enter runs a command: whoever types there meets a draft.
    "slash-menu": ("unknown", None, "draft"),
    "shell-mode": ("unknown", None, "draft"),
    "retry": WORKING,
    "tab-queued": WORKING,
    "thinking": WORKING,
    "tool-running": WORKING,
    # Nothing on the screen tells it from rest; the title and the rollout do.
    "streaming": ("unknown", None, "empty"),
    "trust": ("waiting", "trust", None),
    "login": ("waiting", "login", None),
    "locked": ("waiting", "locked", None),
    "permission": ("waiting", "permission", None),
    "menu": ("waiting", "menu", None),
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}

# Seen in plan mode, where alone it asks questions.
QUESTION = """› ask me


  Question 1/1 (1 unanswered)
  Which color?

  › 1. Red                the red one
    2. Green              the green one
    3. None of the above  Optionally, add details in notes (tab)

  tab to add notes | enter to submit answer | esc to interrupt
"""
# Seen at the start of every session, before the trust dialog: keys are lost, or meet that dialog.
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


def look_at(path):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return KIND.look(Screen(path.read_text(encoding="utf-8"), *facts["cursor"])), facts


def shown(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def seen(text):
    look = KIND.look(Screen(text))
    return look.state, look.dialog, look.box


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    look, facts = look_at(path)
    assert (look.state, look.dialog, look.box) == LOOKS[facts["state"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_screen_never_says_otherwise_than_the_title(path) -> None:
    look, facts = look_at(path)
    title = KIND.read_title(facts["pane_title"] or "")
    if "unknown" not in (title, look.state):
        assert title == look.state
    assert look.state != "working" or title == "working"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_half_a_screen_is_never_an_empty_box_that_the_whole_is_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.look(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.look(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"


def test_the_splash_is_not_ready() -> None:
    assert seen(SPLASH) == ("unknown", None, None)
    assert seen(SPLASH.replace("  ?", "  fake-model default · /w/demo\n  ?")) == ("idle", None, "empty")


@pytest.mark.parametrize(
    "footer",
    [
        # A person's own status line, and none.
        "  fake-model\n  ? for shortcuts     ⚠ 1 warning · f2 to view\n",
        "  ? for shortcuts     100% context left    ⚠ 1 warning · f2 to view\n",
    ],
)
def test_another_status_line(footer) -> None:
    assert seen(SPLASH.replace("  ? for shortcuts\n", footer)) == ("idle", None, "empty")


def test_a_warning_beside_the_hints_is_no_status_line() -> None:
    warned = SPLASH.replace("  ? for shortcuts", "  ? for shortcuts     ⚠ 1 warning · f2 to view")
    assert seen(warned) == ("unknown", None, None)


def test_a_question() -> None:
    assert seen(QUESTION) == ("waiting", "question", None)


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
def test_a_reached_limit_is_told_with_its_end_until_then(monkeypatch, end, now, is_on) -> None:
    monkeypatch.setattr(time, "time", datetime.fromisoformat(now).timestamp)
    look = KIND.look(
        Screen(LIMIT.replace("2:32 PM", end) if end else LIMIT.replace(" or try again at 2:32 PM", ""))
    )
    assert look.box == "empty"
    assert (look.state, look.dialog) == (("waiting", "limit") if is_on else ("idle", None))
    assert look.detail == end if is_on else look.detail.startswith("a limit was reached")


def test_an_update_is_told() -> None:
    offer = "  ✨ Update available!\n\n› 1. Update now\n  2. Skip\n\n  Press enter to continue\n"
    assert seen(offer) == ("waiting", "update", None)


def test_the_trust_dialog_is_confirmed_only_on_its_yes() -> None:
    before = KIND.look(Screen(shown("trust")))
    assert KIND.answer_keys(before, "trust") == ["Enter"]
    moved = shown("trust").replace("› 1.", "  1.").replace("  2.", "› 2.")
    assert KIND.answer_keys(KIND.look(Screen(moved)), "trust") == ["Up"]
    assert KIND.answer_keys(KIND.look(Screen(shown("permission"))), "trust") is None


@pytest.mark.parametrize("said", ["› 1. Trust and continue", "🔒  This conversation is open in another app"])
def test_words_in_a_dialog_do_not_make_it_another(said) -> None:
    text = shown("permission")
    assert "$ touch made-by-tool" in text
    assert seen(text.replace("$ touch made-by-tool", f"$ echo '\n{said}\n'"))[1] == "permission"


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
        # Its words are old where another turn has ended since.
        ("› remember", "• Working (3s • esc to interrupt)\n\n› remember", IDLE),
        ("  Worked for", "• Worked for", ("unknown", None, "empty")),
    ],
)
def test_what_only_looks_like_it(old, new, expected) -> None:
    text = shown("idle-after-turn")
    assert old in text
    assert seen(text.replace(old, new)) == expected


def test_a_draft_of_the_words_that_an_empty_box_shows() -> None:
    text = shown("idle")
    assert KIND.look(Screen(text, 2, 46)).box == "empty"
    assert KIND.look(Screen(text, 26, 46)).box == "draft"


def test_a_draft_of_several_lines() -> None:
    text = shown("idle-after-turn").replace("Ask Codex to do anything", "one\n\n  1. two\n  three")
    assert seen(text) == ("idle", None, "draft")


def test_titles() -> None:
    said = [
        KIND.read_title(title) for title in ("demo", "A title | demo", "", "⠹demo", "Action Required | x")
    ]
    assert said == ["unknown"] * 5
    assert KIND.read_title("⠹ A title | demo") == "working"
    assert {KIND.read_title(f"[ {sign} ] Action Required | demo") for sign in "!."} == {"waiting"}


@given(st.text(alphabet=st.sampled_from("›! ·\nab1.•■Workedescenter"), max_size=300))
def test_any_text_can_be_looked_at(text) -> None:
    look = KIND.look(Screen(text))
    assert look.state != "idle" or look.box is not None
    assert look.box is None or "›" in text or "!" in text
