"""Hermes' screens, all that were recorded: each is told by name, and what is none of them is unknown."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.hermes.kind import Hermes
from mam.adapters.agents.kind import Screen

KIND = Hermes()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens_hermes"
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
    "draft": ("idle", None, "draft"),
    "big-paste": ("idle", None, "draft"),
    "slash-menu": ("idle", None, "draft"),
    "thinking": WORKING,
    "streaming": WORKING,
    "draft-in-a-turn": ("working", None, "draft"),
    "permission": ("waiting", "permission", None),
    "question": ("waiting", "question", None),
    "question-in-words": ("waiting", "question", None),
    "confirm": ("waiting", "confirm", None),
    "menu": ("waiting", "menu", None),
    "no-provider": ("waiting", "login", None),
    "exited": ("unknown", None, None),
}
BAR = " ⚕ m │ 0/256K │ [░░░░░░░░░░] 0% │ 1s │ ⏲ 0s"
RULE = "─" * 80


def look(text):
    found = KIND.look(Screen(text))
    return found.state, found.dialog, found.box


def box(*inside, bar=BAR, rule=RULE, below=""):
    return "\n".join(["words", bar, rule, *inside, rule, below])


def test_every_state_is_there_in_three_sizes() -> None:
    assert {path.stem for path in RECORDED} == {
        f"{state}{size}" for state in LOOKS for size in ("", "@100x30", "@60x24")
    }


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    screen = path.read_text(encoding="utf-8")
    assert facts["version"] in KIND.known_versions
    assert look(screen) == LOOKS[facts["state"]]
    assert not re.search(r"/tmp|\b(?!8765)\d{5}\b", screen), "a trace of a machine"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_half_a_screen_is_never_an_empty_box_that_the_whole_is_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = look("\n".join(lines))
    for end in range(len(lines)):
        assert look("\n".join(lines[:end]))[2] != "empty" or whole[2] == "empty"


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ("❯", IDLE),
        ("coder ❯", IDLE),
        ("❯ words", ("idle", None, "draft")),
        ("⚕ ❯", WORKING),
        ("⚕ ❯ msg=interrupt · /queue", WORKING),
        ("⠹ ❯ ⠹ Processing command...", ("working", None, None)),
        ("⚠ ❯", ("waiting", "permission", None)),
        ("🔐 ❯ type password (hidden)", ("waiting", "password", None)),
        ("🔑 ❯ type secret (hidden)", ("waiting", "secret", None)),
        # Voice, another skin, anything else.
        ("🎤 ❯ type or ctrl+b to record", ("unknown", None, None)),
        ("● ❯", ("unknown", None, None)),
        ("⚔ >", ("unknown", None, None)),
        ("", ("unknown", None, None)),
    ],
)
def test_the_sign_before_the_arrow(prompt, seen) -> None:
    assert look(box(prompt)) == seen


def test_a_box_without_its_bar_is_none() -> None:
    assert look(box("❯", bar="")) == ("unknown", None, None)
    assert look(box("❯", bar="╰────╯")) == ("unknown", None, None), (
        "an answer above, and the bar switched off"
    )


def test_a_box_that_a_crash_left_is_none() -> None:
    assert look(box("❯", below="Pane is dead (signal 9)")) == ("unknown", None, None)


def test_a_draft_of_several_lines() -> None:
    assert look(box("❯ one", "two")) == ("idle", None, "draft")
    assert look(box("❯", "two")) == ("idle", None, "draft")
    assert look(box("❯ one", RULE, "two"))[2] != "empty"


def test_a_picture_of_a_box_in_an_answer_is_none() -> None:
    picture = box("❯")
    assert look(f"{picture}\n{box('⚕ ❯ msg=interrupt')}") == WORKING
    assert look(f"{picture}\n{box('⚠ ❯')}") == ("waiting", "permission", None)
    assert look(f"{picture}\n{RULE}\n❯\n{RULE}") == ("unknown", None, None)


@given(st.text(alphabet="─│╭╮╰╯❯⚕⚠?· \nab", max_size=300))
def test_any_text_is_read_without_an_error(text) -> None:
    look(text)
