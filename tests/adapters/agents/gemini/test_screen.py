"""Gemini's screens, all that were recorded: each is told by name, and what is none of them is unknown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.kind import Screen

KIND = Gemini()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "gemini"
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
    "question-refused": IDLE,
    "queue-answered": IDLE,
    "resumed": IDLE,
    "retry-interrupted": IDLE,
    "tool-done": IDLE,
    "big-paste": ("idle", None, "draft"),
    "draft": ("idle", None, "draft"),
    "slash-menu": ("idle", None, "draft"),
    # A mode in which Enter runs a command: whoever types there meets a draft.
    "shell-mode": ("unknown", None, "draft"),
    "queued": WORKING,
    "retry": WORKING,
    "streaming": WORKING,
    "thinking": WORKING,
    "tool-running": WORKING,
    "api-key": ("waiting", "api-key", None),
    "login": ("waiting", "login", None),
    "menu": ("waiting", "menu", None),
    "permission": ("waiting", "permission", None),
    "question": ("waiting", "question", None),
    "trust": ("waiting", "trust", None),
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}
TITLES = {"◇": None, "✦": "working", "✋": "waiting"}


def look_at(path):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return KIND.look(Screen(path.read_text(encoding="utf-8"), *facts["cursor"])), facts


def shown(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def framed(*words):
    rows = [f"│ {word:<96} │" for word in words]
    return "\n".join(["╭" + "─" * 98 + "╮", *rows, "╰" + "─" * 98 + "╯"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    look, facts = look_at(path)
    assert (look.state, look.dialog, look.box) == LOOKS[facts["state"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_title_never_says_otherwise_than_the_screen(path) -> None:
    look, facts = look_at(path)
    said = KIND.read_title(facts["pane_title"])
    assert said in ("unknown", look.state)
    if facts["exit_status"] is None:
        assert said == (TITLES[facts["pane_title"][0]] or "unknown")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_half_a_screen_is_never_an_empty_box_that_the_whole_is_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.look(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.look(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"


@pytest.mark.parametrize(
    ("title", "state"),
    [
        ("⏲  Working… (demo)", "working"),
        ("✦  Reading the tests (demo)   ", "working"),
        ("◇  Ready (demo)", "unknown"),
        ("Gemini CLI (demo)", "unknown"),
        ("✋ hand made", "unknown"),
        ("", "unknown"),
    ],
)
def test_titles(title, state) -> None:
    assert KIND.read_title(title) == state


def test_the_box_counts_only_when_the_header_is_there() -> None:
    """It is drawn seconds before the program takes input, below nothing but warnings."""
    lines = shown("idle").splitlines()
    early = KIND.look(Screen("\n".join(lines[13:])))
    assert (early.state, early.box) == ("unknown", None)
    assert KIND.look(Screen("\n".join([lines[1], *lines[13:]]))).box == "empty"
    scrolled = KIND.look(Screen("\n".join(["  the end of an answer", *lines[16:]])))
    assert (scrolled.state, scrolled.box) == ("idle", "empty")


@pytest.mark.parametrize(("name", "state"), [("idle", "idle"), ("thinking", "working"), ("draft", "idle")])
def test_with_true_colour_the_box_has_edges(name, state) -> None:
    lines = shown(name).splitlines()
    (at,) = [
        number
        for number, line in enumerate(lines)
        if line.startswith(" > ") and number > 15 and not lines[number + 1]
    ][-1:]
    lines[at - 1], lines[at + 1] = "▄" * 200, "▀" * 200
    look = KIND.look(Screen("\n".join(lines)))
    assert (look.state, look.box) == (state, LOOKS[name][2])


def test_a_draft_of_several_lines_is_one() -> None:
    text = shown("idle").replace(">   Type your message or @path/to/file", ">   \n   second line")
    assert KIND.look(Screen(text)).box == "draft"


def test_words_that_are_those_of_an_empty_box_are_a_draft() -> None:
    text = shown("idle").replace(">   Type your", "> Type your")
    assert KIND.look(Screen(text)).box == "draft"


def test_a_hook_of_the_user_that_runs_does_not_hide_the_box() -> None:
    lines = shown("idle").splitlines()
    lines[17] = "  Executing Hook: mine" + " " * 100 + "? for shortcuts"
    look = KIND.look(Screen("\n".join(lines)))
    assert (look.state, look.box) == ("idle", "empty")


def test_the_queue_is_told() -> None:
    assert KIND.look(Screen(shown("queued"))).detail == "messages are queued"


def test_the_trust_dialog_is_confirmed_only_on_its_yes() -> None:
    assert KIND.answer_keys(KIND.look(Screen(shown("trust"))), "trust") == ["Enter"]
    moved = shown("trust").replace("● 1.", "  1.").replace("  3. Don't", "● 3. Don't")
    assert KIND.answer_keys(KIND.look(Screen(moved)), "trust") == ["Up"]
    assert KIND.answer_keys(KIND.look(Screen(shown("permission"))), "trust") is None


@pytest.mark.parametrize("said", ["● 1. Trust folder (demo)", "● 1. Sign in with Google", "Answer Questions"])
def test_words_in_a_dialog_do_not_make_it_another(said) -> None:
    plain = "touch made-by-tool".ljust(len(said))
    text = shown("permission").replace(f"│ {plain}", f"│ {said.ljust(len(plain))}")
    assert said in text
    look = KIND.look(Screen(text))
    assert look.dialog == "permission"


@pytest.mark.parametrize(
    ("words", "dialog", "detail"),
    [
        (
            (
                "Usage limit reached for gemini-3.1-pro.",
                "Access resets at 3:00 PM GMT+1.",
                "/model to switch models.",
                "",
                "● 1. Keep trying",
                "  2. Stop",
            ),
            "limit",
            "3:00 PM GMT+1",
        ),
        (("We are currently experiencing high demand.", "● 1. Keep trying", "  2. Stop"), "limit", ""),
        (
            (
                "The following files are outside your workspace:",
                "Do you want to allow this read?",
                "● 1. Yes",
                "  2. No",
            ),
            "permission",
            "",
        ),
        (("● 1. Verify your account", "  2. Change authentication"), "login", ""),
        (("⠋ Waiting for authentication... (Press Esc or Ctrl+C to cancel)",), "login", ""),
        (("A potential loop was detected", "● 1. Keep loop detection enabled (esc)"), "menu", ""),
    ],
)
def test_dialogs_that_were_not_recorded(words, dialog, detail) -> None:
    look = KIND.look(Screen(framed(*words)))
    assert (look.state, look.dialog, look.detail) == ("waiting", dialog, detail)


def test_a_dialog_below_something_that_looks_like_a_box_is_the_dialog() -> None:
    text = "\n".join(
        [*shown("idle").splitlines(), framed("● 1. Allow once", "  2. No, suggest changes (esc)")]
    )
    look = KIND.look(Screen(text))
    assert (look.state, look.dialog, look.box) == ("waiting", "permission", None)


def test_a_frame_above_other_words_is_no_dialog() -> None:
    text = framed("● 1. Allow once") + "\n\none\ntwo\nthree\n"
    assert KIND.look(Screen(text)).state == "unknown"


@given(st.text(alphabet=st.sampled_from("─╭╮╰╯│▄▀●>*! \nab1.?Esc⠋⚠"), max_size=300))
def test_any_text_can_be_looked_at(text) -> None:
    look = KIND.look(Screen(text))
    assert look.state != "idle" or look.box is not None
    assert look.box is None or "─" * 10 in text
