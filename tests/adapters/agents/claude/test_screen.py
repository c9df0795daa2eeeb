"""Reading every recorded screen of Claude Code, and texts that resemble one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import captured, facts_of, screen_of

from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.kind import Screen

KIND = Claude()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "claude"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
EXPECTED = {
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
    # With a menu above the box, or in a mode in which Enter runs a command, mam must not type: a draft.
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


def read_recorded(path):
    return KIND.read_screen(screen_of(path)), facts_of(path)


def recorded(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    screen_state, facts = read_recorded(path)
    assert (screen_state.state, screen_state.dialog, screen_state.box) == EXPECTED.get(
        path.stem, EXPECTED[facts["state"]]
    )


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_screen_never_contradicts_the_state_file(path) -> None:
    screen_state, facts = read_recorded(path)
    status = facts.get("own_status", {}).get("status")
    if status and screen_state.state != "unknown" and facts["exit_status"] is None:
        assert screen_state.state == {"busy": "working"}.get(status, status)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cut_screen_shows_no_empty_box_that_the_whole_screen_does_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.read_screen(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.read_screen(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"


def test_the_detail_names_the_queue_and_a_missing_login() -> None:
    assert read_recorded(SCREENS / "queued.txt")[0].detail == "messages are queued"
    assert KIND.read_screen(Screen(recorded("no-key-refused"))).detail == "not logged in"


def test_mam_presses_enter_in_the_trust_dialog_only_on_yes() -> None:
    before = KIND.read_screen(Screen(recorded("trust")))
    assert KIND.answer_keys(before, "trust") == ["Down"]
    moved = recorded("trust").replace("❯ No, exit", "  No, exit").replace("   Yes, I", " ❯ Yes, I")
    assert KIND.answer_keys(KIND.read_screen(Screen(moved)), "trust") == ["Enter"]
    assert KIND.answer_keys(KIND.read_screen(Screen(recorded("permission"))), "trust") is None


def test_mam_reports_an_older_trust_dialog_as_a_menu() -> None:
    older = " ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel\n"
    screen_state = KIND.read_screen(Screen(older))
    assert (screen_state.state, screen_state.dialog) == ("waiting", "menu")
    assert KIND.answer_keys(screen_state, "trust") is None


@pytest.mark.parametrize(
    "quote", ["Yes, I trust this folder", "Do you want to use this API key?", "limit reached, resets 3pm"]
)
def test_a_text_in_a_dialog_does_not_make_it_another_dialog(quote) -> None:
    screen_state = KIND.read_screen(
        Screen(recorded("permission").replace("touch made-by-tool", f"echo '{quote}'"))
    )
    assert screen_state.dialog == "permission"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Text of the conversation that looks like an input box or a dialog is neither.
        ("❯\xa0", "❯ ", ("unknown", None)),
        ("● The first", "● Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel\n● And", ("idle", "empty")),
    ],
)
def test_a_text_that_resembles_a_box_or_a_dialog(old, new, expected) -> None:
    text = recorded("idle-after-turn")
    assert old in text
    screen_state = KIND.read_screen(Screen(text.replace(old, new)))
    assert (screen_state.state, screen_state.box) == expected


def test_the_cursor_distinguishes_a_suggestion_from_a_draft() -> None:
    text, (x, y) = captured(SCREENS / "queued.txt"), facts_of(SCREENS / "queued.txt")["cursor"]
    assert KIND.read_screen(Screen(text, x, y)).box == "empty"
    assert KIND.read_screen(Screen(text, x + 20, y)).box == "draft"
    assert KIND.read_screen(Screen(text, x, y - 1)).box == "draft"
    assert KIND.read_screen(Screen(text)).box == "draft"


def test_a_busy_screen_with_another_footer_is_unknown() -> None:
    text = recorded("streaming").replace("⏸ manual mode on · esc to interrupt", "paste again to expand")
    assert KIND.read_screen(Screen(text)).state == "unknown"
    short = "\n".join(line for line in text.splitlines() if "count number" not in line or "1" in line)
    assert KIND.read_screen(Screen(short)).state == "unknown"


@given(st.text(alphabet=st.sampled_from("❯\xa0 ─\nab1.?!EscEnter to·"), max_size=300))
def test_any_text_can_be_read(text) -> None:
    screen_state = KIND.read_screen(Screen(text))
    assert screen_state.state != "idle" or screen_state.box is not None
    assert screen_state.box is None or "❯\xa0" in text or "!\xa0" in text
