"""The first change of a newer mam in a root of mam 0.1.0: faults at every call, two deaths, and no power.

tests/faults/test_migration.py has the death before each call.
"""

from __future__ import annotations

import errno
import random

import pytest
from tests.faults.machine import FAIL_FROM, FAIL_ONCE, KILL_AFTER, KILL_BEFORE, LOSE_POWER, Machine
from tests.faults.test_migration import (
    OLD,
    ROWS,
    TODAY,
    begin,
    look,
    points,
    read_by_old_mam,
    root_of_old_mam,
    user_folder,
)

pytestmark = pytest.mark.slow

__all__ = ["read_by_old_mam", "root_of_old_mam"]
SEEDS = 44
FAULTS = [
    (KILL_AFTER, 0),
    (FAIL_ONCE, errno.ENOSPC),
    (FAIL_FROM, errno.ENOSPC),
    (FAIL_ONCE, errno.EIO),
    (FAIL_FROM, errno.EIO),
]


@pytest.fixture
def names(machine, root_of_old_mam) -> list[str]:
    """Return the calls of the change, which begins with a copy of the database."""
    begin(machine)
    answer = machine.run("settle")
    assert answer["acknowledged"], answer
    return answer["names"]


def flaw(machine: Machine) -> object:
    """Return what is wrong after a fault; None if nothing was lost, and the next change migrates the rest."""
    statuses, number, verdict = look(machine)
    error = machine.run("settle")["error"]
    copies = list((user_folder() / "backups").glob(f"*/*-before-migration-of-{OLD[0]}.{OLD[1]}.db*"))
    seen = (statuses, number in (OLD, TODAY), verdict, error, bool(copies), look(machine))
    return None if seen == (ROWS, True, "ok", None, True, (ROWS, TODAY, "ok")) else seen


@pytest.mark.parametrize(("mode", "number"), FAULTS, ids=str)
def test_a_fault_at_every_call_loses_nothing(machine, names, mode, number, record_property):
    broken, flaws = points(names), {}
    for n in broken:
        begin(machine)
        machine.run("settle", n, mode, number)
        flaws[n, names[n - 1]] = flaw(machine)
    record_property("points", len(broken))
    assert not any(flaws.values()), [one for one in flaws.items() if one[1]]


def test_a_death_in_the_recovery_from_a_death_loses_nothing(machine, names, record_property):
    """Every sixth of the calls, and of those of the recovery every sixth."""
    flaws = {}
    for n in points(names)[::6]:
        for m in range(1, 400, 6):
            begin(machine)
            machine.run("settle", n, KILL_BEFORE)
            if not machine.run("settle", m, KILL_BEFORE)["killed"]:
                break
            flaws[n, m] = flaw(machine)
    record_property("points", len(flaws))
    assert not any(flaws.values()), [one for one in flaws.items() if one[1]]


def test_a_loss_of_power_loses_nothing(machine, names, record_property):
    flaws = {}
    for seed in range(SEEDS):
        n = random.Random(seed).randint(1, len(names) + 1)
        begin(machine)
        assert machine.run("settle", n, LOSE_POWER, seed)["killed"]
        flaws[seed, n] = flaw(machine)
    record_property("points", len(flaws))
    assert not any(flaws.values()), [one for one in flaws.items() if one[1]]
