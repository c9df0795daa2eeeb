"""A loss of power, at a few calls of three verbs: what was acknowledged is there all the same.

`power_loss.c` says what may be lost; the seed chooses the call, and what is lost. tests/torture has every
verb, and more seeds.
"""

from __future__ import annotations

import pytest
from tests.faults import sweep

pytestmark = pytest.mark.slow

SEEDS = 6


@pytest.mark.promise("P48")
@pytest.mark.parametrize(
    "case", [sweep.Create, sweep.TakeIn, sweep.JobEvent], ids=lambda one: one.__name__.lower()
)
def test_nothing_acknowledged_is_lost_with_the_power(machine, case, record_property):
    losses = sweep.lose_power(case(machine), range(SEEDS))
    record_property("points", losses)
    assert losses == SEEDS
