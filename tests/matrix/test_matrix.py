"""Each cell of the fault matrix: the verb answers what the table says, and works once the fault is lifted.

Checked in each cell: the code and the exit of the error, that it has a hint, the state afterwards, that no
process of others was ended and nothing typed into their panes, and the invariants after the recovery.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest
from tests.matrix.broker_proxy import BrokerProxy
from tests.matrix.cell import try_cell
from tests.matrix.faults import FAULTS
from tests.matrix.table import ALL, ROWS
from tests.matrix.verbs import VERBS
from tests.matrix.world import World

from mam.core import drift_detection

pytestmark = [pytest.mark.slow, pytest.mark.starts]


@pytest.fixture
def hands_off(monkeypatch):
    """A pass may record at once what somebody has just changed."""
    monkeypatch.setattr(drift_detection, "HANDS_OFF_SECONDS", -10.0)


@pytest.fixture
def proxy(mosquitto, monkeypatch):
    """The way to the broker, which the environment names as the broker."""
    made = BrokerProxy(mosquitto.port)
    monkeypatch.setenv("MAM_BROKER", mosquitto.url().replace(str(mosquitto.port), str(made.port)))
    yield made
    made.close()


def rows() -> Iterator[object]:
    """Yield the rows of which at least one cell is tried here."""
    for row in ROWS:
        if any(row.is_tried_here(verb) for verb in ALL):
            yield pytest.param(row, marks=[pytest.mark.long] if row.is_long else [], id=row.name)


@pytest.mark.promise("P45")
@pytest.mark.parametrize("row", list(rows()))
def test_the_verbs_answer_what_the_table_says(row, request, quick_path, tmux_server, hands_off) -> None:
    fault = FAULTS[row.name]
    parts = {"proxy": fault.needs_broker, "shim": fault.disk is not None}
    needed = {name: request.getfixturevalue(name) for name, is_needed in parts.items() if is_needed}
    world = World(quick_path, tmux_server, fault.args, **needed)
    failures = []
    # The state that the last verb began in, and only looked at.
    arranged: object = None
    try:
        for verb in filter(row.is_tried_here, ALL):
            cell, tried = row.cell(verb), VERBS[verb]
            try:
                goes_on = tried.is_look and tried.arrange is arranged
                try_cell(world, fault, tried, cell, goes_on=goes_on)
                arranged = tried.arrange if tried.is_look else None
            except Exception as error:
                arranged = None
                place = traceback.extract_tb(error.__traceback__)[-1]
                failures.append(f"{verb}: {cell}\n    {type(error).__name__} {error} ({place.name})")
    finally:
        world.close()
    assert not failures, "\n" + "\n".join(failures)


def test_a_harm_to_others_is_noticed(quick_path, tmux_server) -> None:
    world = World(quick_path, tmux_server)
    try:
        world.begin()
        world.check_strangers(with_pane=True)
        world.tmux_words("send-keys", "-t", "=bystander:", "-l", "words for somebody else")
        world.wait_for_screen("words", "bystander")
        with pytest.raises(AssertionError, match="I4"):
            world.check_strangers(with_pane=True)
        world.stranger.terminate()
        world.stranger.wait()
        with pytest.raises(AssertionError, match="I7"):
            world.check_strangers(with_pane=False)
    finally:
        world.close()
