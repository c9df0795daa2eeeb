"""The draft: edits, folded pastes, history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam.practice.editor import Editor


def typed(text: str, *keys: str) -> Editor:
    editor = Editor()
    editor.key("text", text)
    for key in keys:
        editor.key(key, "")
    return editor


@pytest.mark.parametrize(
    ("text", "keys", "left", "right"),
    [
        ("abc", ["left", "backspace"], "a", "c"),
        ("abc", ["home", "delete"], "", "bc"),
        ("abc", ["home", "right", "kill-right"], "a", ""),
        ("abc", ["left", "kill-left"], "", "c"),
        ("one two  ", ["kill-word"], "one ", ""),
        ("one\ntwo", ["home", "kill-left"], "one", "two"),
        ("one\ntwo", ["kill-left", "kill-left", "kill-left"], "", ""),
        ("one\ntwo", ["up", "kill-right"], "one", "two"),
        ("long line\nab", ["up"], "lo", "ng line\nab"),
        ("ab\nlong line", ["up"], "ab", "\nlong line"),
        ("ab\nlong", ["home", "up", "end", "down"], "ab\nlo", "ng"),
        ("e\u0301x", ["left", "backspace"], "", "x"),
        ("👨\u200d👩\u200d👧", ["left"], "", "👨\u200d👩\u200d👧"),
        ("👨\u200d👩\u200d👧", ["home", "delete"], "", ""),
        ("", ["backspace", "delete", "left", "right", "kill-left", "kill-word"], "", ""),
        ("a", ["newline"], "a\n", ""),
        ("a", ["no such key"], "a", ""),
    ],
)
def test_keys(text, keys, left, right):
    editor = typed(text, *keys)
    assert (editor.text[: editor.cursor], editor.text[editor.cursor :]) == (left, right)


def test_short_paste_stands_as_it_is():
    editor = Editor()
    editor.key("paste", "a\nb\nc\nd\ne\nf\ng\nh")
    assert editor.take() == ("a\nb\nc\nd\ne\nf\ng\nh",) * 2


@pytest.mark.parametrize(("text", "lines"), [("x" * 801, 0), ("1\n2\n3\n4\n5\n6\n7\n8\n9", 8)])
def test_long_paste_is_folded_and_sent_whole(text, lines):
    editor = typed("see ")
    editor.key("paste", text)
    editor.key("text", " there")
    assert len(editor.text) == len("see _ there")
    assert editor.take() == (f"see {text} there", f"see [Pasted text #1 +{lines} lines] there")


def test_a_folded_paste_is_deleted_and_recalled_as_one():
    editor = Editor()
    editor.paste("x" * 900)
    editor.key("backspace", "")
    assert editor.text == ""
    editor.paste("y" * 900)
    assert editor.take()[1] == "[Pasted text #2 +0 lines]"
    editor.key("up", "")
    assert editor.take()[0] == "y" * 900


def test_what_looks_like_a_fold_is_not_one():
    editor = Editor()
    editor.paste("x" * 900)
    editor.insert("[Pasted text #1 +0 lines]")
    assert editor.take()[0] == "x" * 900 + "[Pasted text #1 +0 lines]"


def test_many_pastes_never_run_out_of_folds():
    editor = Editor()
    for number in range(1500):
        editor.paste(f"{number:04d}" + "x" * 900)
        whole, shown = editor.take()
        assert whole.startswith(f"{number:04d}x")
        assert shown == f"[Pasted text #{number + 1} +0 lines]"


def test_history_keeps_the_unsent_draft():
    editor = Editor()
    for text in ("first", "second"):
        editor.insert(text)
        editor.take()
    editor.insert("unsent")
    for key, text in [
        ("up", "second"),
        ("up", "first"),
        ("up", "first"),
        ("down", "second"),
        ("down", "unsent"),
    ]:
        editor.key(key, "")
        assert editor.text == text
    editor.key("down", "")
    assert editor.text == "unsent"


@pytest.mark.parametrize(("text", "is_blank"), [("", True), (" \n\t ", True), (" x ", False)])
def test_blank(text, is_blank):
    assert typed(text).is_blank() is is_blank


NAMES = st.sampled_from(
    [
        "left",
        "right",
        "up",
        "down",
        "home",
        "end",
        "backspace",
        "delete",
        "kill-left",
        "kill-right",
        "kill-word",
    ]
)


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, st.just("")) | st.tuples(st.just("text"), st.text(max_size=5)), max_size=30))
def test_the_cursor_stays_in_the_text(keys):
    editor = Editor()
    for name, text in keys:
        editor.key(name, text)
        assert 0 <= editor.cursor <= len(editor.text)
