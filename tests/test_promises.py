"""The page of promises is true: each promise has tests, and each test with a promise's mark stands there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/PROMISES.md").read_text(encoding="utf-8")


def promises() -> dict[str, list[str]]:
    """Return the tests that the page names for each promise."""
    rows = re.findall(r"^\| (P\d+) \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)
    return {number: re.findall(r"`([^`]+)`", cell) for number, cell in rows}


def marked() -> dict[str, set[str]]:
    """Return the promises that each test is marked with."""
    found: dict[str, set[str]] = {}

    def search(body: list[ast.stmt], place: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                search(node.body, f"{place}::{node.name}")
            elif isinstance(node, ast.FunctionDef):
                numbers = {number for call in node.decorator_list for number in _promises_of(call)}
                if numbers:
                    found[f"{place}::{node.name}"] = numbers

    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.promise(" in text:
            search(ast.parse(text).body, path.relative_to(ROOT).as_posix())
    return found


def _promises_of(decorator: ast.expr) -> list[str]:
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "pytest.mark.promise":
        return []
    return [ast.literal_eval(argument) for argument in decorator.args]


def test_the_promises_are_numbered_without_a_gap() -> None:
    numbers = re.findall(r"^\| P(\d+) \|", PAGE, re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(numbers) + 1))


def test_the_page_and_the_marks_of_the_tests_say_the_same() -> None:
    named = {(number, test) for number, tests in promises().items() for test in tests}
    marks = {(number, test) for test, numbers in marked().items() for number in numbers}
    assert named - marks == set(), "the page names tests that do not exist or lack the mark"
    assert marks - named == set(), "marked tests that the page does not name"
    assert [number for number, tests in promises().items() if not tests] == []
