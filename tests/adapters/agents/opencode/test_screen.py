"""opencode's screens, all that were recorded: each is told by name, and what is none of them is unknown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.kind import Screen
from mam.adapters.agents.opencode.kind import Opencode

KIND = Opencode()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens" / "opencode"
RECORDED = sorted(SCREENS.glob("*.txt"))

# state, dialog, box
IDLE, WORKING = ("idle", None, "empty"), ("working", None, "empty")
LOOKS = {
    "idle": IDLE,
    "idle-after-turn": IDLE,
    "cleared": IDLE,
    "denied": IDLE,
    "error": IDLE,
    "erased": IDLE,
    "interrupted": IDLE,
    "no-provider": IDLE,
    "question-refused": IDLE,
    "queue-answered": IDLE,
    "resumed": IDLE,
    "retry-interrupted": IDLE,
    "tool-done": IDLE,
    # Recorded before the typed text was drawn.
    "draft": IDLE,
    "draft@100x30": ("idle", None, "draft"),
    "big-paste": ("idle", None, "draft"),
    "slash-menu": ("idle", None, "draft"),
    # A mode in which Enter runs a command: whoever types there meets a draft.
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
    "exited": ("unknown", None, None),
    "exited-after-turn": ("unknown", None, None),
}


def look_at(path, *, cursor=True):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    where = facts["cursor"] if cursor else ()
    return KIND.look(Screen(path.read_text(encoding="utf-8"), *where)), facts


def shown(name):
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("cursor", [True, False], ids=["cursor", "text alone"])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path, cursor) -> None:
    look, facts = look_at(path, cursor=cursor)
    assert (look.state, look.dialog, look.box) == LOOKS.get(path.stem, LOOKS[facts["state"]])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_half_a_screen_is_never_an_empty_box_that_the_whole_is_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = KIND.look(Screen("\n".join(lines)))
    for end in range(len(lines)):
        part = KIND.look(Screen("\n".join(lines[:end])))
        assert part.box != "empty" or whole.box == "empty"
        assert part.state != "idle" or whole.state == "idle"


def test_the_queue_is_told() -> None:
    assert KIND.look(Screen(shown("queued"))).detail == "messages are queued"
    assert KIND.look(Screen(shown("streaming"))).detail == ""


@pytest.mark.parametrize(
    ("title", "dialog", "detail"),
    [
        ("Update Available", "update", ""),
        ("Go limit reached", "limit", ""),
        ("Connect a provider", "login", ""),
        ("Switch model", "menu", ""),
    ],
)
def test_a_dialog_over_the_screen_by_its_title(title, dialog, detail) -> None:
    text = shown("menu").replace("Commands".ljust(len(title)), title.ljust(len("Commands")))
    look = KIND.look(Screen(text))
    assert (look.state, look.dialog, look.detail, look.box) == ("waiting", dialog, detail, None)


def test_a_reached_limit_says_when_it_is_lifted() -> None:
    said = "5 hour usage limit reached. It will reset in 2 hours 3 minutes. To continue usin…"
    look = KIND.look(Screen(shown("retry").replace("fake error 500", said)))
    assert (look.state, look.dialog, look.detail) == ("waiting", "limit", "in 2 hours 3 minutes")


def test_whatever_takes_the_cursor_from_the_box_takes_the_keys() -> None:
    look = KIND.look(Screen(shown("idle-after-turn"), 50, 12))
    assert (look.state, look.box) == ("unknown", None)


def test_a_placeholder_is_told_from_a_draft_by_the_cursor() -> None:
    text = shown("idle")
    assert KIND.look(Screen(text, 66, 25)).box == "empty"
    assert KIND.look(Screen(text, 80, 25)).box == "draft"


@pytest.mark.parametrize(("left", "box"), [("\u2067", "empty"), ("   \u093f", "empty"), ("हि", "draft")])
def test_what_a_text_that_was_taken_left_in_the_box_is_no_draft(left, box) -> None:
    lines = shown("idle-after-turn").splitlines()
    foot = next(number for number, line in enumerate(lines) if "╹▀▀" in line)
    lines[foot - 3] = f"  ┃  {left}"
    assert KIND.look(Screen("\n".join(lines))).box == box


def test_a_busy_line_without_animation() -> None:
    text = shown("thinking").replace("⬝⬝⬝⬝⬝⬝⬝⬝", "[⋯]     ")
    assert KIND.look(Screen(text)).state == "working"


def test_a_box_whose_footer_is_unknown_is_not_idle() -> None:
    text = shown("idle-after-turn").replace("ctrl+p commands", "something else")
    look = KIND.look(Screen(text))
    assert (look.state, look.box) == ("unknown", "empty")


def test_a_folder_named_like_a_busy_line_is_not_busy() -> None:
    text = shown("idle-after-turn").replace("   /w/demo          ", "   /w/esc interrupt ")
    assert KIND.look(Screen(text)).state == "idle"


@pytest.mark.parametrize(
    "said",
    ["△ Permission required", "↑↓ select  enter submit  esc dismiss", "╹▀▀▀▀▀▀▀▀▀", "limit reached   esc"],
)
def test_words_of_the_conversation_are_no_dialog(said) -> None:
    text = shown("idle-after-turn").replace("The first answer is complete.", said.ljust(29))
    look = KIND.look(Screen(text))
    assert (look.state, look.dialog, look.box) == IDLE


@given(st.text(alphabet=st.sampled_from("┃╹▀ \n△⬝■abesc.commands"), max_size=300))
def test_any_text_can_be_looked_at(text) -> None:
    look = KIND.look(Screen(text))
    assert look.state != "idle" or look.box is not None
    assert look.box is None or "╹▀" in text
