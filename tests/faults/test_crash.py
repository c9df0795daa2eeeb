"""SIGKILL before every single call by which a verb changes a file: registry, YAML and tmux agree afterwards.

For each call a fresh process is killed in the middle of the verb, and the next verb finds what is left: one
that changes something, that only reads, or that is refused. Checked each time: I1 to I4, I8 (a second
recovery changes nothing), I9 (no stray file), and that the verb can simply be repeated. Six verbs die before
every call, the others before one call for each kind of call and class of file. tests/torture has the rest.
"""

from __future__ import annotations

import pytest
from tests.faults import sweep, team_and_copy_cases
from tests.faults.machine import KILL_BEFORE

pytestmark = pytest.mark.slow


@pytest.mark.promise("P1")
@pytest.mark.promise("P2")
@pytest.mark.parametrize(
    "case",
    [sweep.Create, sweep.Stop, sweep.Resume, sweep.TakeIn, sweep.Send, sweep.JobEvent],
    ids=lambda one: one.__name__.lower(),
)
def test_a_death_at_every_point(machine, case, record_property):
    points = sweep.sweep(case(machine), KILL_BEFORE)
    record_property("kill points", points)
    assert points >= 20, "the shim counts too little to prove anything"


@pytest.mark.promise("P1")
@pytest.mark.promise("P2")
@pytest.mark.parametrize(
    "case",
    [sweep.Archive, sweep.Adopt, sweep.Rename, sweep.Purge, sweep.JobSubmit, *team_and_copy_cases.CASES],
    ids=lambda one: one.__name__.lower(),
)
def test_a_death_at_each_kind_of_call_and_file(machine, case, record_property):
    points = sweep.sweep_classes(case(machine))
    record_property("kill points", points)
    assert points >= 10, "the shim counts too little to prove anything"


def test_e10_a_refused_verb_brings_the_file_up_to_date(machine):
    case = sweep.Create(machine)
    case.begin()
    names = machine.run("create")["names"]
    behind = 0
    for n in sweep.points(names, 1, "renameat2 agent-sessions.yaml"):
        case.begin()
        machine.run("create", n, KILL_BEFORE)
        if "one" not in machine.rows() or _shows(machine, "one"):
            continue
        behind += 1
        assert machine.run("create")["error"]["code"] == "name_taken"
        assert _shows(machine, "one"), "the refused verb left the file behind"
        case.check()
    assert behind, "no death came between the commit and the file"


def _shows(machine, name: str) -> bool:
    registry = machine.root / ".hermes" / "agent-sessions.yaml"
    return f"name: {name}\n" in registry.read_text(encoding="utf-8")
