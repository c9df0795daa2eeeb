"""Each cell of the fault matrix: the verb answers what the table says, and works once the fault is lifted.

Checked in each cell: the code and the exit of the error, that it has a hint, the state afterwards, that no
process of others was ended and nothing typed into their panes, and the invariants after the recovery.
"""

from __future__ import annotations

import traceback

import pytest
from tests.matrix.cell import try_cell
from tests.matrix.faults import FAULTS
from tests.matrix.table import ALL, ROWS, is_not_applicable, tried_by
from tests.matrix.world import World

from mam.core import drift_detection

pytestmark = [pytest.mark.slow, pytest.mark.starts]


@pytest.fixture
def hands_off(monkeypatch):
    """A pass may record at once what somebody has just changed."""
    monkeypatch.setattr(drift_detection, "HANDS_OFF_SECONDS", -10.0)


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[pytest.mark.long] if row.is_long else [], id=row.name) for row in ROWS],
)
def test_the_verbs_answer_what_the_table_says(row, quick_path, tmux_server, hands_off) -> None:
    fault = FAULTS[row.name]
    world = World(quick_path, tmux_server, fault.args)
    failures = []
    try:
        for verb in ALL:
            cell = row.cell(verb)
            if is_not_applicable(cell) or tried_by(cell):
                continue
            try:
                try_cell(world, fault, verb, cell)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                failures.append(f"{verb}: {cell}\n    {type(error).__name__} {error} ({place.name})")
    finally:
        world.close()
    assert not failures, "\n" + "\n".join(failures)
