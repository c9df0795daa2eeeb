"""A suggestion in the empty input box: it is dim, and never part of the draft."""

from __future__ import annotations

from mam.practice.editor import Editor
from mam.practice.header_and_footer_rows import box_region
from mam.practice.input_box import SuggestedRow
from mam.practice.redraw import Screen

WORDS = 'Try "fix the tests"'


def region(draft: str):
    editor = Editor()
    editor.insert(draft)
    return box_region(editor, "", "  ? for help", 40, WORDS)


def test_only_the_empty_box_shows_it():
    rows, cursor = region("")
    assert rows[1] == f"❯ {WORDS}"
    assert cursor == (1, 2)
    assert region("a")[0][1] == "❯ a"


def test_a_draft_with_the_same_words_is_painted_anew():
    screen = Screen()
    assert f"❯ \x1b[2m{WORDS}\x1b[0m" in screen.paint([], region("")[0], (1, 2), 40)
    rows, cursor = region(WORDS)
    assert not isinstance(rows[1], SuggestedRow)
    painted = screen.paint([], rows, cursor, 40)
    assert f"❯ {WORDS}" in painted
    assert "\x1b[2m" not in painted


def test_a_long_one_is_shortened():
    rows, _ = box_region(Editor(), "", "", 20, "x" * 50)
    assert rows[1] == "❯ " + "x" * 16 + "…"
