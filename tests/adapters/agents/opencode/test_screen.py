"""Reading every recorded screen of opencode, and texts that resemble one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import captured, facts_of, screen_of

from mam.adapters.agents.kind import Screen
from mam.adapters.agents.opencode.kind import Opencode

KIND = Opencode()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "opencode"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
EXPECTED = {
    "idle": IDLE,
    "idle-after-turn": IDLE,
    "cleared": IDLE,
    "denied": IDLE,
    "error": IDLE,
    "erased": IDLE,
    "interrupted": IDLE,
    "question-refused": IDLE,
    "queue-answered": IDLE,
    "resumed": IDLE,
    "retry-interrupted": IDLE,
    "tool-done": IDLE,
    "draft": ("idle", None, "draft"),
    "big-paste": ("idle", None, "draft"),
    "slash-menu": ("idle", None, "draft"),
    # In a mode in which Enter runs a command mam must not type: it counts as a draft.
    "shell-mode": ("unknown", None, "draft"),
    "half-interrupted": WORKING,
    "queued": WORKING,
    "retry": WORKING,
    "streaming": WORKING,
    "thinking": WORKING,
    "tool-running": WORKING,
    "permission": ("waiting", "permission", None),
    "question": ("waiting", "question", None),
    "menu": ("waiting", "menu", None),
    "no-provider": ("waiting", "login", None),
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}


def read_recorded(path, *, cursor=True):
    return KIND.read_screen(screen_of(path, cursor=cursor)), facts_of(path)


def recorded(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("cursor", [True, False], ids=["cursor", "text alone"])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path, cursor) -> None:
    screen_state, facts = read_recorded(path, cursor=cursor)
    state, dialog, box = EXPECTED[facts["state"]]
    # Without a cursor nothing proves that a text in the box is a suggestion.
    if not cursor and "Ask anything…" in path.read_text(encoding="utf-8") and box == "empty":
        box = "draft"
    assert (screen_state.state, screen_state.dialog, screen_state.box) == (state, dialog, box)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cut_screen_shows_no_empty_box_that_the_whole_screen_does_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.read_screen(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.read_screen(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"
        assert part.state != "idle" or whole.state == "idle"


def test_the_detail_names_the_queue() -> None:
    assert KIND.read_screen(Screen(recorded("queued"))).detail == "messages are queued"
    assert KIND.read_screen(Screen(recorded("streaming"))).detail == ""


@pytest.mark.parametrize(
    ("title", "dialog", "detail"),
    [
        ("Update Available", "update", ""),
        ("Go limit reached", "limit", ""),
        ("Connect a provider", "login", ""),
        ("Switch model", "menu", ""),
    ],
)
def test_the_title_names_a_menu(title, dialog, detail) -> None:
    text = recorded("menu").replace("Commands".ljust(len(title)), title.ljust(len("Commands")))
    screen_state = KIND.read_screen(Screen(text))
    assert (screen_state.state, screen_state.dialog, screen_state.detail, screen_state.box) == (
        "waiting",
        dialog,
        detail,
        None,
    )


def test_a_limit_names_its_end() -> None:
    message = "5 hour usage limit reached. It will reset in 2 hours 3 minutes. To continue usin…"
    screen_state = KIND.read_screen(Screen(recorded("retry").replace("fake error 500", message)))
    assert (screen_state.state, screen_state.dialog, screen_state.detail) == (
        "waiting",
        "limit",
        "in 2 hours 3 minutes",
    )


def test_with_the_cursor_outside_there_is_no_box() -> None:
    screen_state = KIND.read_screen(Screen(recorded("idle-after-turn"), 50, 12))
    assert (screen_state.state, screen_state.box) == ("unknown", None)


def test_the_cursor_distinguishes_a_placeholder_from_a_draft() -> None:
    text = captured(SCREENS / "idle.txt")
    assert KIND.read_screen(Screen(text, 66, 25)).box == "empty"
    assert KIND.read_screen(Screen(text, 80, 25)).box == "draft"
    assert KIND.read_screen(Screen(text)).box == "draft"


@pytest.mark.parametrize(("remainder", "box"), [("\u2067", "empty"), ("   \u093f", "empty"), ("हि", "draft")])
def test_invisible_signs_of_an_earlier_text_are_no_draft(remainder, box) -> None:
    lines = recorded("idle-after-turn").splitlines()
    foot = next(number for number, line in enumerate(lines) if "╹▀▀" in line)
    lines[foot - 3] = f"  ┃  {remainder}"
    assert KIND.read_screen(Screen("\n".join(lines))).box == box


def test_a_busy_line_without_animation() -> None:
    text = recorded("thinking").replace("⬝⬝⬝⬝⬝⬝⬝⬝", "[⋯]     ")
    assert KIND.read_screen(Screen(text)).state == "working"


def test_a_box_whose_footer_is_unknown_is_not_idle() -> None:
    text = recorded("idle-after-turn").replace("ctrl+p commands", "something else")
    screen_state = KIND.read_screen(Screen(text))
    assert (screen_state.state, screen_state.box) == ("unknown", "empty")


def test_a_folder_named_like_a_busy_line_is_not_busy() -> None:
    text = recorded("idle-after-turn").replace("   /w/demo          ", "   /w/esc interrupt ")
    assert KIND.read_screen(Screen(text)).state == "idle"


@pytest.mark.parametrize(
    "quote",
    ["△ Permission required", "↑↓ select  enter submit  esc dismiss", "╹▀▀▀▀▀▀▀▀▀", "limit reached   esc"],
)
def test_a_text_of_the_conversation_is_no_dialog(quote) -> None:
    text = recorded("idle-after-turn").replace("The first answer is complete.", quote.ljust(29))
    screen_state = KIND.read_screen(Screen(text))
    assert (screen_state.state, screen_state.dialog, screen_state.box) == IDLE


@given(st.text(alphabet=st.sampled_from("┃╹▀ \n△⬝■abesc.commands"), max_size=300))
def test_any_text_can_be_read(text) -> None:
    screen_state = KIND.read_screen(Screen(text))
    assert screen_state.state != "idle" or screen_state.box is not None
    assert screen_state.box is None or "╹▀" in text
