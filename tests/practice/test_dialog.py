"""Dialogs: what they look like and what answers them."""

from __future__ import annotations

import pytest

from mam.practice.dialog import CANCEL, limit, permission, question, trust
from mam.practice.text_width import cells


def test_the_permission_dialog_looks_like_this():
    assert permission("make test").rows(80) == [
        " Bash command",
        "   make test",
        " Do you want to proceed?",
        " ❯ 1. Yes",
        "   2. Yes, and don't ask again",
        "   3. No, and tell the agent what to do differently (esc)",
        " Enter to confirm · Esc to cancel",
    ]


def test_the_question_looks_like_this():
    assert question("Colour", "Which one?", ["Red", "Green"]).rows(80) == [
        " ☐ Colour",
        " Which one?",
        " ❯ 1. Red",
        "   2. Green",
        " Enter to select · ↑/↓ to navigate · Esc to cancel",
    ]


def test_the_trust_dialog_starts_at_no():
    rows = trust("/w/\x1b[2J").rows(80)
    assert rows[1] == " /w/^[[2J"
    assert rows[-3:] == [" ❯ No, exit", "   Yes, I trust this folder", " Enter to confirm · Esc to cancel"]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ([("enter", "")], 0),
        ([("text", "some words"), ("paste", "2"), ("enter", "")], 0),
        ([("text", "2")], 1),
        ([("down", ""), ("enter", "")], 1),
        ([("up", ""), ("enter", "")], 2),
        ([("escape", "")], CANCEL),
        ([("ctrl-c", "")], CANCEL),
        ([("text", "4")], None),
        ([("text", "12"), ("newline", ""), ("ctrl-d", "")], None),
    ],
)
def test_answers(keys, answer):
    dialog = permission("x")
    assert [dialog.key(*key) for key in keys][-1] == answer


def test_digits_do_not_answer_a_dialog_without_numbers():
    assert trust("/w").key("text", "2") is None


@pytest.mark.parametrize("columns", [12, 40, 80])
def test_rows_fit(columns):
    for dialog in (permission("x " * 300 + "\n" * 20), limit(), trust("/long" * 30)):
        assert all(cells(row) <= columns for row in dialog.rows(columns))
