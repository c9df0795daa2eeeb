"""Where draft and cursor stand in the box."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import count_calls

from mam.practice.editor import Editor
from mam.practice.header_and_footer_rows import rule
from mam.practice.input_box import box_rows
from mam.practice.text_width import cells


def holding(text: str) -> Editor:
    editor = Editor()
    editor.insert(text)
    return editor


def test_an_empty_box_is_the_prompt_alone():
    assert box_rows(Editor(), 80) == (["❯ "], (0, 2))


def test_lines_are_indented_below_the_prompt():
    assert box_rows(holding("one\ntwo"), 80) == (["❯ one", "  two"], (1, 5))


def test_wide_text_wraps_by_cells():
    assert box_rows(holding("漢字漢字"), 9) == (["❯ 漢字漢", "  字"], (1, 4))


def test_more_than_eight_rows_show_the_last_eight():
    rows, (row, _) = box_rows(holding("\n".join("abcdefghij")), 80)
    assert rows == ["❯ c", *(f"  {char}" for char in "defghij")]
    assert row == 7


def test_the_cursor_is_always_among_the_rows():
    editor = holding("\n".join("abcdefghij"))
    for _ in range(9):
        editor.up()
    rows, (row, _) = box_rows(editor, 80)
    assert (rows[0], row) == ("❯ a", 0)


def test_a_folded_paste_shows_its_label():
    editor = Editor()
    editor.paste("x\n" * 100)
    assert box_rows(editor, 80)[0] == ["❯ [Pasted text #1 +100 lines]"]


def test_controls_are_shown_not_sent():
    assert box_rows(holding("a\x1b[2Jb\x07"), 80)[0] == ["❯ a^[[2Jb^G"]


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(5, 60), st.integers(0, 300))
def test_rows_fit_and_the_cursor_is_inside(text, columns, at):
    editor = holding(text)
    editor.cursor = min(at, len(text))
    rows, (row, column) = box_rows(editor, columns)
    assert 1 <= len(rows) <= 8
    assert all(cells(line) <= columns for line in rows)
    assert 0 <= row < len(rows)
    assert 2 <= column < columns


def test_a_huge_typed_draft_is_not_laid_out_whole():
    _, calls = count_calls(lambda: box_rows(holding("x" * 1_000_000), 80))
    assert calls < 20_000, calls


@settings(deadline=None)
@given(st.integers(1, 200), st.text(max_size=30))
def test_rules_have_the_full_width(columns, name):
    assert cells(rule(columns, name)) == columns
    assert rule(columns, name).startswith("─")
