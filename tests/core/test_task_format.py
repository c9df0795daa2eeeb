"""Tasks: their names, texts and results."""

import pytest

from mam.core import task_format
from mam.core.errors import InvalidPrompt, Usage


@pytest.mark.parametrize("text", ["TASK-007", "task-7", "7", "007"])
def test_a_task_by_its_number(text):
    assert task_format.parse(text) == 7
    assert task_format.shown(7) == "TASK-007"


@pytest.mark.parametrize("text", ["", "TASK-", "TASK-0", "-1", "7a", "٧", "1" * 10])
def test_what_is_no_task(text):
    with pytest.raises(Usage):
        task_format.parse(text)


def test_a_role_has_one_spelling():
    assert task_format.parse_role("Tech Writer") == "tech-writer"
    for text in ("", None, "…", "x" * 41):
        with pytest.raises(Usage):
            task_format.parse_role(text)


def test_words_are_clean():
    assert task_format.parse_text(" a\r\nb\x1b[31m ") == "a\nb[31m"
    for text in (" ", "x" * 70_000):
        with pytest.raises(InvalidPrompt):
            task_format.parse_text(text)


def test_a_result_is_one_line():
    assert task_format.parse_result("a\nb") == "a b"
    assert task_format.parse_result(None) == "done"
    assert len(task_format.parse_result("x" * 5000)) == task_format.LONGEST_RESULT
