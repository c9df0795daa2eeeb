"""A disk that fails where it has hurt before: the calls that decide whether a change took place.

tests/torture makes every call of every verb fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import sweep
from tests.faults.machine import EIO, ENOSPC, EROFS, FAIL_FROM, FAIL_ONCE, FULL, KEEPER, KILL_BEFORE
from tests.waiting import wait_for

import mam
from mam.adapters.store import disk_reserve
from mam.app.sessions.death import record_if_dead

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


def live_panes(machine) -> set[str]:
    return {pane.mark for pane in machine.tmux.panes().panes if not pane.dead} - {KEEPER}


@pytest.mark.promise("P7")
@pytest.mark.parametrize("verb", ["stop-reason", "stop-force"])
@pytest.mark.parametrize("number", [ENOSPC, EROFS, EIO], ids=["full", "read-only", "broken"])
def test_e6_a_session_is_stopped_although_nothing_can_be_written(machine, verb, number):
    case = sweep.Stop(machine)
    case.begin()
    assert live_panes(machine)
    answer = machine.run(verb, 1, FAIL_FROM, number)
    assert (answer["error"]["code"], answer["error"]["recorded"]) == ("not_recorded", False), answer
    assert "'one' is stopped" in answer["error"]["message"]
    assert not live_panes(machine)
    assert machine.rows()["one"]["status"] == "running"
    with mam.open(str(machine.root)) as fleet:
        # What a pass of the monitor does once it may write again.
        row = fleet.sessions.get("one").row
        record_if_dead(fleet._access.context, fleet.caller, row)
    assert machine.check() == {"other": "stopped", "one": "terminated"}


@pytest.mark.promise("P7")
@pytest.mark.parametrize("verb", ["stop-reason", "stop-force"])
def test_e6_the_reserve_lets_a_stop_be_recorded_on_a_full_disk(machine, verb):
    case = sweep.Stop(machine)
    case.begin()
    reserve = machine.root / ".mam" / "reserve"
    assert disk_reserve.make(str(reserve.parent))
    answer = machine.run(verb, 1, FULL, ENOSPC)
    assert answer["error"] is None, answer
    assert not reserve.exists()
    assert not live_panes(machine)
    assert machine.check() == case.goal
    assert machine.rows()["one"]["stop_reason"] == "enough"


def test_e6_a_stop_whose_disk_fills_up_on_the_way_is_finished_later(machine):
    case = sweep.Stop(machine)
    case.begin()
    flushes = sweep.points(machine.run("stop-reason")["names"], 1, FLUSH)
    for n in flushes:
        case.begin()
        answer = machine.run("stop-reason", n, FAIL_FROM, ENOSPC)
        error = answer["error"]
        assert error is None or error["recorded"] or error["code"] == "not_recorded", answer
        assert not live_panes(machine), f"call {n}"
        machine.settle()
        row = machine.rows()["one"]
        assert row["status"] == "running" or row["stop_reason"] == "enough", f"call {n}: {row}"


def test_e6_a_turn_is_interrupted_on_a_full_disk(machine):
    machine.clear()
    assert machine.run("create-slow")["error"] is None
    with mam.open(str(machine.root)) as fleet:
        fleet.messages.send("one", "work for long", timeout=20)
        wait_for(fleet.sessions.get("one"), "working")
        answer = machine.run("interrupt", 1, FULL, ENOSPC)
        assert answer["error"] is None, answer
        wait_for(fleet.sessions.get("one"), "idle")


@pytest.mark.parametrize("case", [sweep.Create, sweep.Send], ids=lambda one: one.__name__.lower())
def test_e6_what_a_full_disk_refuses_leaves_nothing_behind(machine, case):
    made = case(machine)
    made.begin()
    panes, files = live_panes(machine), _files(machine)
    answer = machine.run(made.verb, 1, FULL, ENOSPC)
    assert answer["error"]["code"] == "disk_full", answer
    assert (live_panes(machine), _files(machine)) == (panes, files)
    statuses = made.check()
    assert statuses == made.allowed[0]
    made.look(statuses)


def test_a_submission_whose_disk_fills_up_on_the_way_says_what_is_there(machine):
    """Whoever repeats it would have two jobs."""
    case = sweep.JobSubmit(machine)
    case.begin()
    flushes = sweep.points(machine.run(case.verb)["names"], 1, FLUSH)
    seen = set()
    for n in flushes:
        case.begin()
        error = machine.run(case.verb, n, FAIL_FROM, ENOSPC)["error"]
        with mam.open(str(machine.root)) as fleet:
            ids = [job["job_id"] for job in fleet.jobs.list(only_open=True)]
            working = [row for row in machine.rows().values() if row.get("delegate_job_id") in ids]
            if error and ids and error["code"] != "not_recorded":
                # The commit that failed was the one that records the job, and is found all the same.
                assert not working, f"call {n}: {error}"
                (ended,) = fleet.jobs.wait(ids, timeout=60)
                assert (ended["status"], ended["reason"]) == ("error", "submission"), f"call {n}: {error}"
                continue
        if error is None or not ids:
            seen.add(error and "nothing")
            tokens = [*(machine.root / ".mam" / "jobs").glob("*.token")]
            assert ids or not tokens, f"call {n}: {error}, {tokens}"
            continue
        seen.add("agent" if working else "job")
        assert error["code"] == "not_recorded", f"call {n}: {error}"
        assert f"job {ids[0]} is recorded" in error["message"], f"call {n}: {error}"
        runs = "its agent 'one' runs" if working else "no agent runs for it"
        assert runs in error["message"], f"call {n}: {error}"
        assert f"mam job cancel {ids[0]}" in error["hint"], f"call {n}: {error}"
        with mam.open(str(machine.root)) as fleet:
            fleet.jobs.cancel(ids[0], stop=True)
        assert not [pane for pane in live_panes(machine) if working]
    assert {"nothing", "job", "agent"} <= seen, seen


def _files(machine) -> set[str]:
    """Return the files of the state, except the payloads of hooks that an agent has just written."""
    files = (path for folder in machine.folders for path in Path(folder).rglob("*"))
    return {str(path) for path in files if path.parent.name != "spool" and not path.name.endswith("-shm")}
