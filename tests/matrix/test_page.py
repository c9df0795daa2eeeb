"""The table is whole, the tests that it names exist, and docs/faults.md shows what it says."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.matrix.faults import FAULTS
from tests.matrix.page import PAGE, page
from tests.matrix.states import STATES
from tests.matrix.table import ALL, ROWS, expected, is_not_applicable, tried_by
from tests.matrix.verbs import VERBS

ROOT = Path(__file__).parents[2]
CELLS = [(row, verb, row.cell(verb)) for row in ROWS for verb in ALL]


def test_every_verb_has_a_cell_for_every_fault() -> None:
    assert list(VERBS) == ALL
    for row in ROWS:
        verbs = [verb for key in row.cells for verb in key.split()]
        assert sorted(verbs) == sorted(ALL), row.name


def test_every_row_has_its_fault_or_names_the_test_of_each_cell() -> None:
    tried = {row.name for row, verb, _ in CELLS if row.is_tried_here(verb)}
    assert tried == set(FAULTS)


def test_a_cell_without_a_meaning_says_why() -> None:
    assert [cell for _, _, cell in CELLS if cell.startswith("n/a") and len(cell) < len("n/a: it ") + 4] == []


def test_the_states_of_the_table_are_those_that_are_checked() -> None:
    used = {expected(cell)[1] for _, _, cell in CELLS if not is_not_applicable(cell)}
    assert used == set(STATES)


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("test", sorted({test for _, _, cell in CELLS if (test := tried_by(cell))}))
def test_a_test_that_the_table_names_exists(test) -> None:
    file, *_, name = test.split("::")
    assert name in functions_of(file)


def test_the_page_shows_the_table() -> None:
    """`python -m tests.matrix.page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()
