"""Reading every recorded screen of Gemini CLI, and texts that resemble one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import captured, facts_of, screen_of

from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.kind import Screen

KIND = Gemini()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "gemini"
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
    "question-refused": IDLE,
    "queue-answered": IDLE,
    "resumed": IDLE,
    "retry-interrupted": IDLE,
    "tool-done": IDLE,
    "big-paste": ("idle", None, "draft"),
    "draft": ("idle", None, "draft"),
    "slash-menu": ("idle", None, "draft"),
    # In a mode in which Enter runs a command mam must not type: it counts as a draft.
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


def read_recorded(path):
    return KIND.read_screen(screen_of(path)), facts_of(path)


def recorded(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


def at_start(lines):
    """Return a screen with the cursor on the first cell of the input box."""
    row = max(number for number, line in enumerate(lines) if line.startswith((" > ", " * ")))
    return Screen("\n".join(lines), 3, row)


def framed(*lines):
    rows = [f"│ {line:<96} │" for line in lines]
    return "\n".join(["╭" + "─" * 98 + "╮", *rows, "╰" + "─" * 98 + "╯"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    screen_state, facts = read_recorded(path)
    assert (screen_state.state, screen_state.dialog, screen_state.box) == EXPECTED[facts["state"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_title_never_contradicts_the_screen(path) -> None:
    screen_state, facts = read_recorded(path)
    title_state = KIND.read_title(facts["pane_title"])
    assert title_state in ("unknown", screen_state.state)
    if facts["exit_status"] is None:
        assert title_state == (TITLES[facts["pane_title"][0]] or "unknown")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cut_screen_shows_no_empty_box_that_the_whole_screen_does_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.read_screen(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.read_screen(Screen("\n".join(lines[:end])))
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


def test_the_box_counts_only_with_the_header() -> None:
    """Gemini draws the box seconds before it takes input; only warnings are above it then."""
    lines = recorded("idle").splitlines()
    early = KIND.read_screen(at_start(lines[13:]))
    assert (early.state, early.box) == ("unknown", None)
    assert KIND.read_screen(at_start([lines[1], *lines[13:]])).box == "empty"
    scrolled = KIND.read_screen(at_start(["  the end of an answer", *lines[16:]]))
    assert (scrolled.state, scrolled.box) == ("idle", "empty")


@pytest.mark.parametrize(("name", "state"), [("idle", "idle"), ("thinking", "working"), ("draft", "idle")])
def test_with_true_colour_the_box_has_edges(name, state) -> None:
    lines = recorded(name).splitlines()
    (at,) = [
        number
        for number, line in enumerate(lines)
        if line.startswith(" > ") and number > 15 and not lines[number + 1]
    ][-1:]
    lines[at - 1], lines[at + 1] = "▄" * 200, "▀" * 200
    screen_state = KIND.read_screen(at_start(lines))
    assert (screen_state.state, screen_state.box) == (state, EXPECTED[name][2])


def test_a_draft_of_several_lines() -> None:
    text = recorded("idle").replace(">   Type your message or @path/to/file", ">   \n   second line")
    assert KIND.read_screen(Screen(text)).box == "draft"


@pytest.mark.parametrize("edge", ["", "▀" * 200])
def test_a_new_line_after_the_draft(edge) -> None:
    """Gemini takes an Enter that comes too early for a new line: the cursor is below the text then."""
    lines = recorded("draft").splitlines()
    row = lines.index(" > half a thought")
    lines[row + 1 : row + 2] = ["", edge]

    def is_on_new_line(x, y):
        return KIND.read_screen(Screen("\n".join(lines), x, y)).is_on_new_line

    assert is_on_new_line(3, row + 1)
    assert not is_on_new_line(17, row), "the end of the text"
    assert not is_on_new_line(3, row), "its beginning"
    assert not is_on_new_line(3, row + 2), "below the input box"
    assert not is_on_new_line(3, row - 1), "above the text"
    lines[row + 2 : row + 2] = ["   another line"]
    assert not is_on_new_line(3, row + 1), "an empty line within a text"
    empty = recorded("idle")
    row = empty.splitlines().index(" >   Type your message or @path/to/file")
    assert not KIND.read_screen(Screen(empty, 3, row + 1)).is_on_new_line


def test_a_draft_with_the_text_of_the_placeholder() -> None:
    text, (x, y) = captured(SCREENS / "idle.txt"), facts_of(SCREENS / "idle.txt")["cursor"]
    assert KIND.read_screen(Screen(text, x, y)).box == "empty"
    assert KIND.read_screen(Screen(text, x + 30, y)).box == "draft"
    assert KIND.read_screen(Screen(text)).box == "draft"


def test_a_running_hook_of_the_user_does_not_hide_the_box() -> None:
    lines = recorded("idle").splitlines()
    lines[17] = "  Executing Hook: mine" + " " * 100 + "? for shortcuts"
    screen_state = KIND.read_screen(at_start(lines))
    assert (screen_state.state, screen_state.box) == ("idle", "empty")


def test_the_detail_names_the_queue() -> None:
    assert KIND.read_screen(Screen(recorded("queued"))).detail == "messages are queued"


def test_mam_presses_enter_in_the_trust_dialog_only_on_yes() -> None:
    assert KIND.answer_keys(KIND.read_screen(Screen(recorded("trust"))), "trust") == ["Enter"]
    moved = recorded("trust").replace("● 1.", "  1.").replace("  3. Don't", "● 3. Don't")
    assert KIND.answer_keys(KIND.read_screen(Screen(moved)), "trust") == ["Up"]
    assert KIND.answer_keys(KIND.read_screen(Screen(recorded("permission"))), "trust") is None


@pytest.mark.parametrize(
    "quote", ["● 1. Trust folder (demo)", "● 1. Sign in with Google", "Answer Questions"]
)
def test_a_text_in_a_dialog_does_not_make_it_another_dialog(quote) -> None:
    plain = "touch made-by-tool".ljust(len(quote))
    text = recorded("permission").replace(f"│ {plain}", f"│ {quote.ljust(len(plain))}")
    assert quote in text
    screen_state = KIND.read_screen(Screen(text))
    assert screen_state.dialog == "permission"


@pytest.mark.parametrize(
    ("lines", "dialog", "detail"),
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
def test_dialogs_that_were_not_recorded(lines, dialog, detail) -> None:
    screen_state = KIND.read_screen(Screen(framed(*lines)))
    assert (screen_state.state, screen_state.dialog, screen_state.detail) == ("waiting", dialog, detail)


def test_a_dialog_below_a_text_that_resembles_a_box() -> None:
    text = "\n".join(
        [*recorded("idle").splitlines(), framed("● 1. Allow once", "  2. No, suggest changes (esc)")]
    )
    screen_state = KIND.read_screen(Screen(text))
    assert (screen_state.state, screen_state.dialog, screen_state.box) == ("waiting", "permission", None)


def test_a_frame_above_other_text_is_no_dialog() -> None:
    text = framed("● 1. Allow once") + "\n\none\ntwo\nthree\n"
    assert KIND.read_screen(Screen(text)).state == "unknown"


@given(st.text(alphabet=st.sampled_from("─╭╮╰╯│▄▀●>*! \nab1.?Esc⠋⚠"), max_size=300))
def test_any_text_can_be_read(text) -> None:
    screen_state = KIND.read_screen(Screen(text))
    assert screen_state.state != "idle" or screen_state.box is not None
    assert screen_state.box is None or "─" * 10 in text
