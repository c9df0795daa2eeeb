"""The rest of the crash sweep: the other verbs, death after each call, a disk full or failing, two deaths.

The gate part is tests/faults/test_crash.py; the machinery is beside it. Of a verb that takes seconds only
every so many calls are broken, as `STEPS` says. Of two faults in a row every eighth and sixth call is broken,
or every twelfth and eighth.
"""

from __future__ import annotations

import errno

import pytest
from tests.faults import sweep, team_and_copy_cases
from tests.faults.machine import FAIL_FROM, FAIL_ONCE, KILL_AFTER, KILL_BEFORE

pytestmark = pytest.mark.slow

# They start and end several agents, wait for a job, or restore twice: every so many calls.
STEPS = {
    sweep.JobSubmit: 5,
    sweep.Drill: 5,
    team_and_copy_cases.TeamUp: 16,
    team_and_copy_cases.Restore: 4,
}
GATE = [sweep.Create, sweep.Stop, sweep.Resume, sweep.TakeIn, sweep.Send, sweep.JobEvent]
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
    sweep.JobSubmit,
    sweep.Drill,
    *team_and_copy_cases.CASES,
]
ALL = [*GATE, *REST]
# A process that may have typed words, or given the task of a job, does not do so again.
REPEATED = [case for case in ALL if case not in (sweep.Send, sweep.JobSubmit, *team_and_copy_cases.CASES)]


def name(case) -> str:
    return case.__name__.lower()


def expect_enough(case, points: int, record_property) -> None:
    """Say in the summary how many points there were, and whether these are all, and expect enough."""
    record_property("points", points)
    if case in STEPS:
        record_property("verbs of which some calls are left out", 1)
    assert points >= 10, "the shim counts too little to prove anything"


@pytest.mark.parametrize("case", REST, ids=name)
def test_a_death_before_every_call(machine, case, record_property):
    expect_enough(case, sweep.sweep(case(machine), KILL_BEFORE, step=STEPS.get(case, 1)), record_property)


@pytest.mark.parametrize("case", ALL, ids=name)
def test_a_death_after_every_call(machine, case, record_property):
    expect_enough(case, sweep.sweep(case(machine), KILL_AFTER, step=STEPS.get(case, 1)), record_property)


@pytest.mark.parametrize("mode", [FAIL_ONCE, FAIL_FROM], ids=["once", "from then on"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("case", ALL, ids=name)
def test_a_disk_that_fails_at_every_call(machine, case, number, mode, record_property):
    """The verb says what is wrong in our words, or succeeds all the same; either way everything agrees."""
    expect_enough(case, sweep.sweep(case(machine), mode, number, step=STEPS.get(case, 1)), record_property)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("case", REPEATED, ids=name)
def test_a_long_lived_process_goes_on_after_a_fault(machine, case, number, record_property):
    """The same process, with the connections that it has, repeats the verb as if nothing had been."""
    expect_enough(
        case, sweep.sweep_and_go_on(case(machine), number, step=STEPS.get(case, 1)), record_property
    )


@pytest.mark.parametrize("case", ALL, ids=name)
def test_a_death_in_the_recovery_from_a_death(machine, case, record_property):
    expect_enough(case, sweep.sweep_twice(case(machine), 8 * STEPS.get(case, 1), 6), record_property)


@pytest.mark.parametrize(
    ("mode", "number"), [(FAIL_ONCE, errno.EIO), (FAIL_FROM, errno.ENOSPC)], ids=["EIO once", "ENOSPC"]
)
@pytest.mark.parametrize("case", ALL, ids=name)
def test_a_disk_that_fails_in_the_recovery_from_a_death(machine, case, mode, number, record_property):
    points = sweep.sweep_twice(case(machine), 12 * STEPS.get(case, 1), 8, mode, number)
    expect_enough(case, points, record_property)
