"""Widths, cuts and the cleaning of foreign text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam.practice.text_width import cells, clean, shorten, shorten_left, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("漢字", 4),
        ("한", 2),
        ("e\u0301", 1),
        ("👍", 2),
        ("👨\u200d👩\u200d👧", 2),
        ("🇩🇪", 2),
        ("❯ ●⎿✻", 5),
        ("Ａ", 2),
        ("\u1112\u1161\u11ab", 2),
        ("ที่", 1),
    ],
)
def test_width_as_tmux_has_it(text, width):
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é漢", "plain é漢"),
        ("a\x1b[31mb", "a^[[31mb"),
        ("\x07\x00\x7f", "^G^@^?"),
        ("a\tb", "a    b"),
        ("\x9b31m", "\ufffd31m"),
        ("\u202eevil", "evil"),
        ("a\u2028b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("👨\u200d👩", "👨\u200d👩"),
    ],
)
def test_cleaning(text, shown):
    assert clean(text) == shown


@settings(deadline=None)
@given(st.text())
def test_nothing_a_terminal_acts_upon_survives(text):
    shown = clean(text.replace("\n", ""))
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown)
    shown.encode()


@settings(deadline=None)
@given(st.text(alphabet="ab 漢👍é\u0301"), st.integers(2, 30))
def test_rows_fit_and_lose_nothing_but_spaces(text, room):
    rows = wrap(text, room)
    assert all(cells(row) <= room or len(row) == 1 for row in rows[:-1])
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@settings(deadline=None)
@given(st.text(alphabet="ab 漢👍"), st.integers(0, 20))
def test_shortening_fits(text, room):
    for shortened in (shorten(text, room), shorten_left(text, room)):
        assert cells(shortened) <= max(room, 1)
        assert shortened == text or "…" in shortened or not room


def test_words_stay_whole_and_indents_stay():
    assert wrap("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrap("    indented code", 14) == ["    indented", "code"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "word", "漢字漢字", "longerword"]), max_size=20), st.integers(4, 20))
def test_growing_text_wraps_like_finished_text(words, room):
    finished = wrap(" ".join(words), room)
    rows, partial = [], ""
    for index, word in enumerate(words):
        *full, partial = wrap(partial + (" " if index else "") + word, room)
        rows += full
    assert [*rows, partial] == finished
