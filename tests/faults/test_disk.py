"""A disk that fails where it has hurt before: the calls that decide whether a change took place.

tests/torture makes every call of every verb fail.
"""

from __future__ import annotations

import pytest
from tests.faults import sweep
from tests.faults.machine import EIO, ENOSPC, FAIL_FROM, FAIL_ONCE, KILL_BEFORE

pytestmark = pytest.mark.slow

# SQLite has written a commit before it flushes it: one that fails here may be found all the same.
FLUSH = "fdatasync state.db-wal"


@pytest.mark.parametrize("case", [sweep.Create, sweep.Rename], ids=lambda one: one.__name__.lower())
def test_a_claim_that_failed_and_is_found_all_the_same_keeps_nobody_out(machine, case):
    assert sweep.sweep_and_go_on(case(machine), only=FLUSH) >= 3


def test_a_recovery_that_failed_keeps_nobody_out(machine):
    case = sweep.Create(machine)

    def cut_off() -> None:
        case.begin()
        names = machine.run(case.verb)["names"]
        case.begin()
        # The intent is committed and the pane is there; the row is not.
        launched = next(number for number, name in enumerate(names) if name.endswith(".launch"))
        machine.run(case.verb, names.index("pwrite64 state.db-wal", launched) + 1, KILL_BEFORE)

    cut_off()
    names = machine.run("settle")["names"]
    flushes = sweep.points(names, 1, FLUSH)
    assert len(flushes) >= 3
    for n in flushes:
        cut_off()
        again = machine.run("settle", n, FAIL_FROM, ENOSPC, again=case.verb).get("again") or {}
        assert again.get("code") in (None, "name_taken"), f"call {n} of {len(names)}: {again}"
        assert machine.check() == case.goal


def test_a_purge_that_cannot_ask_who_holds_the_conversation_ends_nothing(machine):
    assert sweep.sweep(sweep.Purge(machine), FAIL_ONCE, EIO, only="open user.db") >= 1
