"""Telling a suggestion from a draft, and a text in an input box from another one."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.recorded_screens import captured, facts_of

from mam.adapters.agents.box_contents import may_show_text, shows_part, shows_text, surely_shows_text
from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Screen

RECORDED = Path(__file__).parents[2] / "conformance"
# One recorded screen of each kind with a suggestion in its empty box: a piece of the suggestion as it was
# captured, and a recorded screen with a draft.
SUGGESTIONS = {
    "claude": ("screens/claude/queued", "ress up to edit", "half a thought"),
    "codex": ("screens/codex/idle", "Ask Codex to do", "half a thought"),
    "gemini": ("screens/gemini/idle", "Type your message", "half a thought"),
    "opencode": ("screens/opencode/idle", "Ask anything…", "half a thought"),
    "hermes": ("screens_hermes/thinking", "msg=interrupt", "draft in a turn"),
}
PRACTICE = f'● done\n{"─" * 40}\n❯ \x1b[2mTry "fix the tests"\x1b[0m\n{"─" * 40}\n  ? for help\n'
NORMAL = "\x1b[0m"


def suggestion_of(name):
    """Return the kind, the captured screen, its cursor, and a piece of its suggestion."""
    if name == "practice":
        return kind(name), PRACTICE, (2, 2), "fix the tests"
    path = RECORDED / f"{SUGGESTIONS[name][0]}.txt"
    return kind(name), captured(path), tuple(facts_of(path)["cursor"]), SUGGESTIONS[name][1]


ALL = [*SUGGESTIONS, "practice"]


@pytest.mark.parametrize("name", ALL)
def test_a_suggestion_with_the_cursor_before_it_is_an_empty_box(name) -> None:
    agent, text, cursor, _ = suggestion_of(name)
    state = agent.read_screen(Screen(text, *cursor))
    assert (state.box, state.has_suggestion, state.draft) == ("empty", True, "")
    assert not agent.box_shows(state, "")


@pytest.mark.parametrize("name", ALL)
def test_the_cursor_proves_a_suggestion_and_an_unknown_one_does_not(name) -> None:
    agent, text, (x, y), _ = suggestion_of(name)
    for cursor in ((0, 0), (0, y), (x + 1, y), (x, y + 1)):
        assert agent.read_screen(Screen(text, *cursor)).box != "empty"


@pytest.mark.parametrize("name", ALL)
def test_one_cell_in_normal_style_makes_a_suggestion_a_draft(name) -> None:
    agent, text, cursor, piece = suggestion_of(name)
    at = text.index(piece) + 2
    style = re.findall("\x1b\\[[0-9;]*m", text[:at])
    mixed = f"{text[:at]}{NORMAL}{text[at]}{''.join(style)}{text[at + 1 :]}"
    state = agent.read_screen(Screen(mixed, *cursor))
    assert (state.box, state.has_suggestion) == ("draft", False)
    assert state.draft.strip().endswith(text[at])


@pytest.mark.parametrize("name", SUGGESTIONS)
def test_the_draft_is_what_was_typed(name) -> None:
    folder, draft = (RECORDED / SUGGESTIONS[name][0]).parent, SUGGESTIONS[name][2]
    path = folder / ("draft-in-a-turn.txt" if name == "hermes" else "draft.txt")
    agent = kind(name)
    state = agent.read_screen(Screen(captured(path), *facts_of(path)["cursor"]))
    assert (state.box, state.draft.strip()) == ("draft", draft)
    assert agent.box_shows(state, draft)
    assert agent.box_shows(state, f" {draft}\n")
    assert not agent.box_shows(state, draft[:-1])
    assert not agent.box_shows(state, f"{draft}s")


@pytest.mark.parametrize("size", ["", "@100x30"])
@pytest.mark.parametrize("name", SUGGESTIONS)
def test_a_folded_paste_is_known_by_its_count(name, size) -> None:
    folder = (RECORDED / SUGGESTIONS[name][0]).parent
    path = folder / f"big-paste{size}.txt"
    lines = (
        [f"line {number} of a big paste" for number in range(100)]
        if name == "hermes"
        else [f"line {number} of a long text" for number in range(1, 101)]
    )
    agent = kind(name)
    screen = captured(path)
    # The recording cut the path of the file.
    state = agent.read_screen(Screen(screen.replace("→ /w/home", "→ /w/home]"), *facts_of(path)["cursor"]))
    assert state.box == "draft"
    assert agent.box_shows(state, "\n".join(lines))
    assert not agent.box_shows(state, "\n".join(lines[1:]))


def test_a_folded_paste_with_an_absurd_count_is_none() -> None:
    """Whoever types can write the sign, and no pane is too narrow for it."""
    folded = kind("claude").folded_paste
    assert not shows_text(f"[Pasted text #1 +{'9' * 5000} lines]", "x", folded=folded)


def test_a_sign_without_a_count_stands_only_for_a_long_line() -> None:
    edge, agent = "─" * 40, kind("claude")
    state = agent.read_screen(Screen(f"● x\n{edge}\n❯\xa0[Pasted text #1]\n{edge}\n", 18, 2))
    assert state.draft.strip() == "[Pasted text #1]"
    assert agent.box_shows(state, "x" * 2000)
    assert not agent.box_shows(state, "yes")
    assert not agent.box_shows(state, f"{'x' * 2000}\nyes")


@pytest.mark.parametrize("size", ["", "@100x30", "@60x24"])
def test_what_completes_a_typed_text_is_not_part_of_it(size) -> None:
    path = RECORDED / "screens_hermes" / f"slash-menu{size}.txt"
    agent = kind("hermes")
    state = agent.read_screen(Screen(captured(path), *facts_of(path)["cursor"]))
    assert (state.box, state.draft.strip()) == ("draft", "/mo")
    assert agent.box_shows(state, "/mo")


@pytest.mark.parametrize("size", ["", "@100x30"])
@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode"])
def test_a_list_of_commands_beside_the_box_is_not_in_it(name, size) -> None:
    path = RECORDED / "screens" / name / f"slash-menu{size}.txt"
    agent = kind(name)
    state = agent.read_screen(Screen(captured(path), *facts_of(path)["cursor"]))
    assert (state.box, state.draft) == ("draft", "/")
    assert agent.box_shows(state, "/")


@pytest.mark.parametrize(
    ("words", "box"), [("Press up to edit queued messages", "empty"), ("Press up", "draft")]
)
def test_without_colours_a_suggestion_is_known_by_its_words(words, box) -> None:
    edge, agent = "─" * 40, kind("claude")
    text = f"● x\n{edge}\n❯\xa0\x1b[7m{words[0]}\x1b[0m{words[1:]}\n{edge}\n  \x1b[1mmanual\x1b[0m mode on\n"
    assert agent.read_screen(Screen(text, 2, 2)).box == box
    assert agent.read_screen(Screen(text, 5, 2)).box == "draft"
    assert agent.read_screen(Screen(text.replace("mode", "\x1b[2mmode"), 2, 2)).box == "draft"
    assert agent.read_screen(Screen(text.replace("mode", "\x1b[0;38;5;8mmode"), 2, 2)).box == "draft"


def test_a_skin_may_draw_prompt_and_draft_of_hermes_alike() -> None:
    path = RECORDED / "screens_hermes" / "draft.txt"
    text = captured(path).replace("❯ \x1b[39m", "❯ ")
    assert text != captured(path)
    x, y = facts_of(path)["cursor"]
    for cursor in ((x, y), (2, y)):
        state = kind("hermes").read_screen(Screen(text, *cursor))
        assert (state.box, state.draft.strip()) == ("draft", "some words")


def test_hermes_shows_the_end_of_a_long_draft_without_its_prompt() -> None:
    rule, words = "─" * 80, " ".join(f"word{number}" for number in range(300))
    rows = [words[at : at + 80] for at in range(0, len(words), 80)][-8:]
    text = "\n".join(["words", " ⚕ m │ 0/256K │ [░░░░░░░░░░] 0% │ 1s │ ⏲ 0s", rule, *rows, rule])
    agent = kind("hermes")
    state = agent.read_screen(Screen(text, len(rows[-1]), 10))
    assert (state.state, state.box, state.shows_end_only) == ("unknown", "draft", True)
    assert agent.box_shows(state, words)
    assert not agent.box_shows(state, f"{words} more")


def test_spaces_that_somebody_typed_are_a_draft() -> None:
    edge, agent = "─" * 40, kind("practice")
    text = f"{edge}\n❯\n{edge}\n"
    assert agent.read_screen(Screen(text, 2, 1)).box == "empty"
    assert agent.read_screen(Screen(text, 5, 1)).box == "draft"
    # A cursor that is not in the box says nothing.
    assert agent.read_screen(Screen(text)).box == "empty"


@pytest.mark.parametrize(
    ("draft", "text", "expected"),
    [
        ("one two", "one two", True),
        ("one\ntwo", "one two", True),
        ("one tw\no", "one two", True),
        ("a    b", "a\tb", True),
        ("a^Ib", "a\tb", True),
        ("one two", "one two three", False),
        ("one two three", "one two", False),
        ("two", "one two", False),
        ("", "one", False),
        ("", "", False),
        ("é漢👍", "é漢👍", True),
        ("e", "e\u200b", True),
    ],
)
def test_a_draft_is_compared_without_spaces(draft, text, expected) -> None:
    assert shows_text(draft, text) is expected


def test_what_a_terminal_cannot_show_is_not_compared() -> None:
    """Seen in Codex on tmux 3.3a: the colour of an emoji is missing."""
    assert shows_text("naïve  flag, 👍 thumb", "naïve flag, 👍🏽 thumb")
    assert not shows_text("naïve flag, 👍 thumbs", "naïve flag, 👍🏽 thumb")
    assert shows_text("🇩🇪", "🇩🇪 🇫🇷") and not shows_text("🇩🇪 x", "🇩🇪 🇫🇷") and not shows_text("", "🇩🇪")


def test_a_text_taller_than_the_box_counts_by_its_end() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    shown = "\n".join(f"line {number}" for number in range(22, 30))
    assert shows_text(shown, text, shows_end_only=True)
    assert not shows_text(shown, text)
    assert not shows_text(f"{shown}\nmore", text, shows_end_only=True)
    assert not shows_text("", text, shows_end_only=True)


@given(st.text(alphabet="ab \n\t漢é", min_size=1), st.integers(1, 20))
def test_where_a_box_wraps_does_not_matter(text, room) -> None:
    wrapped = "\n".join(text[at : at + room] for at in range(0, len(text), room))
    assert shows_text(wrapped, text) is bool(text.strip())


@pytest.mark.parametrize(
    ("draft", "options", "expected"),
    [
        ("the first words of it", {}, True),
        ("the first words\nof it", {}, True),
        ("the first", {}, False),
        ("the first", {"is_sure": False}, True),
        ("", {"is_sure": False}, False),
        ("the first words of it, and then the rest", {}, False),
        ("the first words of mine", {}, False),
        ("words of it, and then the rest", {}, False),
        ("words of it, and then", {"shows_end_only": True}, False),
    ],
)
def test_a_part_of_a_text(draft, options, expected) -> None:
    """A few signs may be what a person types just now."""
    assert shows_part(draft, "the first words of it, and then the rest", **options) is expected


@pytest.mark.parametrize(
    ("draft", "options", "expected"),
    [
        ("the first words of it, and then the rest", {}, True),
        ("the first words\nof it", {}, True),
        ("words of it", {}, True),
        ("mine: the first words of it, and then the rest, and more", {}, True),
        ("the first words of mine", {}, True),
        ("mine, and then the rest", {}, True),
        ("half a thought", {}, False),
        ("half a thought", {"shows_end_only": True}, True),
        ("[Pasted text #1 +3 lines]", {"folded": r"\[Pasted text #\d+ \+\d+ lines\]"}, True),
    ],
)
def test_a_draft_that_may_have_a_text_as_a_part(draft, options, expected) -> None:
    assert may_show_text(draft, "the first words of it, and then the rest", **options) is expected


def test_a_part_of_a_text_that_is_taller_than_the_box() -> None:
    text = "\n".join(f"line {number} of a tall text" for number in range(40))
    assert shows_part("\n".join(text.split("\n")[10:18]), text, shows_end_only=True)


@pytest.mark.parametrize(
    ("draft", "text", "expected"),
    [
        ("the words of one message", "the words of one message", True),
        ("the words of\none mess\nage", " the words of one message\n", True),
        ("the words\n\nof one message", "the words\n\nof one message", True),
        ("the words of  one message", "the words of one  message", True),
        ("the flag 🇩 of one message", "the flag 🇩🇪 of one message", True),
        ("the wordsof one message", "the words of one message", False),
        ("the wor ds of one message", "the words of one message", False),
        ("the words of one message and", "the words of one message", False),
        ("words of one message", "the words of one message", False),
        ("yes", "yes", False),
        ("[Pasted text #1 +59 lines]", "\n".join(["line"] * 60), False),
        ("[Pasted text #1 +59 lines]", "[Pasted text #1 +59 lines]", False),
        ("", "", False),
    ],
)
def test_a_draft_that_surely_is_a_text(draft, text, expected) -> None:
    assert surely_shows_text(draft, text, folded=kind("claude").folded_paste) is expected


def test_the_end_of_a_tall_text_surely_is_it() -> None:
    text = "\n".join(f"line {number} of a tall text" for number in range(40))
    shown = "\n".join(text.split("\n")[-8:])
    assert surely_shows_text(shown, text, shows_end_only=True)
    assert not surely_shows_text(shown, text)
    assert not surely_shows_text(shown.replace("of a", "ofa"), text, shows_end_only=True)
    assert not surely_shows_text("line 39 of a tall text", text, shows_end_only=True)


@given(st.text(alphabet="ab \n漢é", min_size=1), st.integers(1, 20))
def test_where_a_box_wraps_does_not_make_it_less_sure(text, room) -> None:
    wrapped = "\n".join(text[at : at + room] for at in range(0, len(text), room))
    assert surely_shows_text(wrapped, text) is (len("".join(text.split())) >= 16)
