"""Reading every recorded screen of Hermes, and texts that resemble one."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import facts_of, screen_of

from mam.adapters.agents.hermes.kind import Hermes
from mam.adapters.agents.kind import Screen

KIND = Hermes()
SCREENS = Path(__file__).parents[3] / "conformance" / "screens_hermes"
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


def at_start(text):
    """Return a screen with the cursor just after the last arrow."""
    arrows = [(line.index("❯") + 2, row) for row, line in enumerate(text.split("\n")) if "❯" in line]
    return Screen(text, *(arrows[-1] if arrows else ()))


def read(text):
    screen_state = KIND.read_screen(at_start(text))
    return screen_state.state, screen_state.dialog, screen_state.box


def box(*inside, bar=BAR, rule=RULE, below=""):
    return "\n".join(["words", bar, rule, *inside, rule, below])


def test_every_state_is_recorded_in_three_sizes() -> None:
    assert {path.stem for path in RECORDED} == {
        f"{state}{size}" for state in EXPECTED for size in ("", "@100x30", "@60x24")
    }


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_screen(path) -> None:
    facts, screen_state = facts_of(path), KIND.read_screen(screen_of(path))
    assert facts["version"] in KIND.known_versions
    assert (screen_state.state, screen_state.dialog, screen_state.box) == EXPECTED[facts["state"]]
    screen = path.read_text(encoding="utf-8")
    assert not re.search(r"/tmp|\b(?!8765)\d{5}\b", screen), "a path or a number of the recording machine"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cut_screen_shows_no_empty_box_that_the_whole_screen_does_not(path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    whole = read("\n".join(lines))
    for end in range(len(lines)):
        assert read("\n".join(lines[:end]))[2] != "empty" or whole[2] == "empty"


@pytest.mark.parametrize(
    ("prompt", "expected"),
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
        # Voice input, another skin, and any other sign.
        ("🎤 ❯ type or ctrl+b to record", ("unknown", None, None)),
        ("● ❯", ("unknown", None, None)),
        ("⚔ >", ("unknown", None, None)),
        ("", ("unknown", None, None)),
    ],
)
def test_the_sign_before_the_arrow(prompt, expected) -> None:
    assert read(box(prompt)) == expected


def test_without_the_status_bar_there_is_no_box() -> None:
    assert read(box("❯", bar="")) == ("unknown", None, None)
    assert read(box("❯", bar="╰────╯")) == ("unknown", None, None), (
        "the status bar is switched off, and an answer is above"
    )


def test_after_a_crash_there_is_no_box() -> None:
    assert read(box("❯", below="Pane is dead (signal 9)")) == ("unknown", None, None)


def test_a_draft_of_several_lines() -> None:
    assert read(box("❯ one", "two")) == ("idle", None, "draft")
    assert read(box("❯", "two")) == ("idle", None, "draft")
    assert read(box("❯ one", RULE, "two"))[2] != "empty"


def test_a_box_that_an_answer_quotes_is_no_box() -> None:
    picture = box("❯")
    assert read(f"{picture}\n{box('⚕ ❯ msg=interrupt')}") == WORKING
    assert read(f"{picture}\n{box('⚠ ❯')}") == ("waiting", "permission", None)
    assert read(f"{picture}\n{RULE}\n❯\n{RULE}") == ("unknown", None, None)


@given(st.text(alphabet="─│╭╮╰╯❯⚕⚠?· \nab", max_size=300))
def test_any_text_can_be_read(text) -> None:
    read(text)
