"""Rows of the conversation."""

from __future__ import annotations

import pytest

from mam.practice.scrollback import Output


@pytest.mark.parametrize(
    ("kind", "text", "rows"),
    [
        ("user", "one\ntwo", ["", "❯ one", "  two"]),
        ("user", "\n".join("abcdefghij"), ["", "❯ a", *(f"  {c}" for c in "bcdefgh"), "  … +2 lines"]),
        ("assistant", "\n".join("abcdefghij"), ["", "● a", *(f"  {c}" for c in "bcdefghij")]),
        ("user", "x\x1b[2J", ["", "❯ x^[[2J"]),
    ],
)
def test_past_turns(kind, text, rows):
    output = Output(80)
    output.show_earlier(kind, text)
    assert output.take() == rows


def test_a_huge_past_turn_is_cut_quickly():
    output = Output(80)
    output.show_earlier("user", "x" * 5_000_000)
    rows = output.take()
    assert len(rows) < 20
    assert rows[-1] == "  …"


def test_a_streamed_answer_commits_full_rows_only():
    output = Output(20)
    output.stream("some words that")
    assert (output.take(), output.growing()) == ([""], ["● some words that"])
    output.stream(" go on\nnext")
    assert (output.take(), output.growing()) == (["● some words that", "  go on"], ["  next"])
    output.end()
    assert (output.take(), output.growing()) == (["  next"], [])


def test_a_new_width_holds_for_what_still_grows():
    output = Output(80)
    output.stream("some words that go on")
    output.fit(14)
    assert (output.take(), output.growing()) == (["", "● some words"], ["  that go on"])


def test_a_tool_line_ends_the_answer_and_is_clean():
    output = Output(80)
    output.stream("before")
    output.tool("ok\x07\nmore")
    assert output.take() == ["", "● before", "  ⎿ ok^G", "    more"]
