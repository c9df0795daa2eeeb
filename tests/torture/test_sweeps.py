"""The rest of the crash sweep: the other verbs, death after each call, a disk full or failing, two deaths.

The gate part is tests/faults/test_crash.py; the machinery is beside it.
"""

from __future__ import annotations

import errno

import pytest
from tests.faults import sweep
from tests.faults.machine import FAIL_FROM, FAIL_ONCE, KILL_AFTER, KILL_BEFORE

GATE = [sweep.Create, sweep.Stop, sweep.Resume, sweep.TakeIn]
KILLED = [*GATE, sweep.Send]
REST = [
    sweep.CreateFirst,
    sweep.CreateAnew,
    sweep.CreateInDeadPane,
    sweep.Purge,
    sweep.Rename,
    sweep.Fork,
    sweep.Archive,
    sweep.Forget,
    sweep.Adopt,
    sweep.JobEvent,
]


def name(case) -> str:
    return case.__name__.lower()


def test_a_submission_that_dies(machine):
    """Every fifth call: each case waits until its job has ended."""
    assert sweep.sweep(sweep.JobSubmit(machine), KILL_BEFORE, step=5) >= 20


@pytest.mark.parametrize(
    ("mode", "number"), [(KILL_BEFORE, 0), (KILL_AFTER, 0), (FAIL_FROM, errno.ENOSPC)], ids=str
)
def test_a_drill_that_dies(machine, mode, number):
    """Every fifth call: each case starts and ends an agent."""
    assert sweep.sweep(sweep.Drill(machine), mode, number, step=5) >= 20


@pytest.mark.parametrize("case", REST, ids=name)
def test_a_death_before_every_call(machine, case):
    assert sweep.sweep(case(machine), KILL_BEFORE) >= 20


@pytest.mark.parametrize("case", [*KILLED, *REST], ids=name)
def test_a_death_after_every_call(machine, case):
    assert sweep.sweep(case(machine), KILL_AFTER) >= 20


@pytest.mark.parametrize("mode", [FAIL_ONCE, FAIL_FROM], ids=["once", "from then on"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("case", [*KILLED, *REST], ids=name)
def test_a_disk_that_fails_at_every_call(machine, case, number, mode):
    """The verb says what is wrong in our words, or succeeds all the same; either way everything agrees."""
    assert sweep.sweep(case(machine), mode, number) >= 20


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("case", [*GATE, *REST], ids=name)
def test_a_long_lived_process_goes_on_after_a_fault(machine, case, number):
    """The same process, with the connections that it has, repeats the verb as if nothing had been."""
    assert sweep.sweep_and_go_on(case(machine), number) >= 20


@pytest.mark.parametrize("case", [*GATE, *REST], ids=name)
def test_a_death_in_the_recovery_from_a_death(machine, case):
    """Every fourth call, and in the recovery from each of them every fourth again."""
    assert sweep.sweep_twice(case(machine), step=4) >= 20


@pytest.mark.parametrize(
    ("mode", "number"), [(FAIL_ONCE, errno.EIO), (FAIL_FROM, errno.ENOSPC)], ids=["EIO once", "ENOSPC"]
)
@pytest.mark.parametrize("case", [*GATE, *REST], ids=name)
def test_a_disk_that_fails_in_the_recovery_from_a_death(machine, case, mode, number):
    """Every fourth call of both."""
    assert sweep.sweep_twice(case(machine), 4, mode, number) >= 20
