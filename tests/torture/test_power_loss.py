"""Losses of power: of what was not flushed some is on the disk, some is torn, and some is not there.

`tests/faults/power_loss.c` says what may be lost. The seed chooses the call, and what is lost. Two fifths of
the losses come after the verb was acknowledged.
"""

from __future__ import annotations

import pytest
from tests.faults import sweep
from tests.torture.test_sweeps import ALL, name

pytestmark = pytest.mark.slow

# Of each case: more than a thousand in all.
SEEDS = 44


@pytest.mark.promise("P48")
@pytest.mark.parametrize("case", ALL, ids=name)
def test_nothing_acknowledged_is_lost_with_the_power(machine, case, record_property):
    record_property("points", sweep.lose_power(case(machine), range(SEEDS)))
