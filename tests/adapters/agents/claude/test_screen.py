"""Claude's screens, all that were recorded: each is told by name, and what is none of them is unknown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.kind import Screen

KIND = Claude()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "claude"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
LOOKS = {
    "idle": IDLE,
    "idle-after-turn": IDLE,
    "auto-mode": IDLE,
    "cleared": IDLE,
    "denied": IDLE,
    "error": IDLE,
    "erased": IDLE,
    "interrupted": IDLE,
    "no-key": IDLE,
    "no-key-refused": IDLE,
    "question-refused": IDLE,
    "queue-answered": IDLE,
    "resumed": IDLE,
    "tool-done": IDLE,
    "draft": ("idle", None, "draft"),
    "big-paste": ("idle", None, "draft"),
    "retry-interrupted": ("idle", None, "draft"),
    # A menu above the box, and a mode in which Enter runs a command: whoever types there meets a draft.
    "slash-menu": ("unknown", None, "draft"),
    "slash-menu@100x30": ("idle", None, "draft"),
    "shell-mode": ("unknown", None, "draft"),
    "queued": WORKING,
    "retry": WORKING,
    "streaming": WORKING,
    "thinking": WORKING,
    "tool-running": WORKING,
    "trust": ("waiting", "trust", None),
    "api-key": ("waiting", "api-key", None),
    "bypass": ("waiting", "bypass", None),
    "permission": ("waiting", "permission", None),
    "question": ("waiting", "question", None),
    "menu": ("waiting", "menu", None),
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}


def look_at(path):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return KIND.look(Screen(path.read_text(encoding="utf-8"), *facts["cursor"])), facts


def shown(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    look, facts = look_at(path)
    assert (look.state, look.dialog, look.box) == LOOKS.get(path.stem, LOOKS[facts["state"]])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_screen_never_says_otherwise_than_claude_itself(path) -> None:
    look, facts = look_at(path)
    own = facts.get("own_status", {}).get("status")
    if own and look.state != "unknown" and facts["exit_status"] is None:
        assert look.state == {"busy": "working"}.get(own, own)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_half_a_screen_is_never_an_empty_box_that_the_whole_is_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.look(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.look(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"


def test_the_queue_and_a_missing_login_are_told() -> None:
    assert KIND.look(Screen(shown("queued"))).detail == "messages are queued"
    assert KIND.look(Screen(shown("no-key-refused"))).detail == "not logged in"


def test_the_trust_dialog_is_confirmed_only_on_its_yes() -> None:
    before = KIND.look(Screen(shown("trust")))
    assert KIND.answer_keys(before, "trust") == ["Down"]
    moved = shown("trust").replace("❯ No, exit", "  No, exit").replace("   Yes, I", " ❯ Yes, I")
    assert KIND.answer_keys(KIND.look(Screen(moved)), "trust") == ["Enter"]
    assert KIND.answer_keys(KIND.look(Screen(shown("permission"))), "trust") is None


def test_an_older_trust_dialog_is_reported_and_never_answered() -> None:
    older = " ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel\n"
    look = KIND.look(Screen(older))
    assert (look.state, look.dialog) == ("waiting", "menu")
    assert KIND.answer_keys(look, "trust") is None


@pytest.mark.parametrize(
    "said", ["Yes, I trust this folder", "Do you want to use this API key?", "limit reached, resets 3pm"]
)
def test_words_in_a_dialog_do_not_make_it_another(said) -> None:
    look = KIND.look(Screen(shown("permission").replace("touch made-by-tool", f"echo '{said}'")))
    assert look.dialog == "permission"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Text of the conversation that looks like an input box or a dialog is neither.
        ("❯\xa0", "❯ ", ("unknown", None)),
        ("● The first", "● Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel\n● And", ("idle", "empty")),
    ],
)
def test_what_only_looks_like_it(old, new, expected) -> None:
    text = shown("idle-after-turn")
    assert old in text
    look = KIND.look(Screen(text.replace(old, new)))
    assert (look.state, look.box) == expected


def test_a_suggestion_is_told_from_a_draft_by_the_cursor() -> None:
    text = shown("idle").replace("❯\xa0", '❯\xa0Try "fix lint errors"')
    assert KIND.look(Screen(text, 2, 47)).box == "empty"
    assert KIND.look(Screen(text, 25, 47)).box == "draft"
    assert KIND.look(Screen(text)).box == "draft"


def test_a_busy_screen_whose_footer_is_taken_is_unknown_not_idle() -> None:
    text = shown("streaming").replace("⏸ manual mode on · esc to interrupt", "paste again to expand")
    assert KIND.look(Screen(text)).state == "unknown"
    short = "\n".join(line for line in text.splitlines() if "count number" not in line or "1" in line)
    assert KIND.look(Screen(short)).state == "unknown"


@given(st.text(alphabet=st.sampled_from("❯\xa0 ─\nab1.?!EscEnter to·"), max_size=300))
def test_any_text_can_be_looked_at(text) -> None:
    look = KIND.look(Screen(text))
    assert look.state != "idle" or look.box is not None
    assert look.box is None or "❯\xa0" in text or "!\xa0" in text
