"""A spawn, a report and a close that are killed at every call: one member, told once, or nothing at all."""

from __future__ import annotations

import pytest
from tests.app.team_desk import said
from tests.faults.machine import KILL_AFTER, KILL_BEFORE

import mam
from mam.adapters.store.tables import teams
from mam.app.messages.delivery import deliver_all

pytestmark = pytest.mark.slow


def facts(fleet):
    """What the records say of the team, and what is really there."""
    rows = {one.name: one.row for one in fleet.sessions.list()}
    panes = [
        pane
        for pane in fleet._access.context.tmux(fleet._access.context.server_name(None)).panes().panes
        if pane.mark
    ]
    return rows, panes, fleet.teams.list()["teams"], fleet.tasks.list()["tasks"]


def settled(machine):
    """Let the next verbs do what is left, until nothing is open."""
    with mam.open(str(machine.root)) as fleet:

        def is_done() -> bool:
            fleet._access.begin()
            deliver_all(fleet._access.context)
            left = fleet._access.context.registry.peek(teams.starting, [])
            open_words = [
                one
                for row in fleet.sessions.list()
                for one in fleet.messages.inbox(row.id)
                if one["state"] == "held"
            ]
            running = [one for one in fleet.sessions.list() if one.row["status"] == "running"]
            return (
                not left
                and not (open_words and running)
                and not fleet._access.context.registry.view().intents
            )

        machine.until(is_done, "something stays open")


@pytest.mark.parametrize("mode", [KILL_BEFORE, KILL_AFTER], ids=["before", "after"])
def test_a_spawner_that_is_killed_at_every_call(machine, mode):
    machine.clear()
    calls = machine.run("spawn")["calls"]
    assert calls >= 40
    failures = []
    for n in range(1, calls + 1):
        machine.clear()
        machine.run("spawn", n, mode)
        try:
            settled(machine)
            check_spawn(machine)
        except AssertionError as error:
            failures.append(f"call {n} of {calls}: {error}")
    assert not failures, "\n" + "\n".join(failures)


def check_spawn(machine) -> None:
    with mam.open(str(machine.root)) as fleet:
        rows, panes, up, work = facts(fleet)
        live = [pane for pane in panes if not pane.dead and pane.mark != "s_ffffffff"]
        if not rows:
            assert not live, "a pane without a row"
            assert not up or not up[0]["members"], "a member without a row"
            assert not any(one["status"] == "in-progress" for one in work), "nobody has the task"
            return
        (row,) = rows.values()
        (member,) = up[0]["members"]
        assert (row["status"], member["state"], len(live)) == ("running", "active", 1)
        assert [one["status"] for one in work] == ["in-progress"] and member["task"] == "TASK-001"
        assert member["pane"] == row["pane"]["id"] == live[0].id
        prompts = [words for words in said(fleet, "dev") if "TASK-001: work" in words]
        sent = [one for one in fleet.messages.inbox("dev") if "TASK-001: work" in one["text"]]
        assert len(sent) == 1 and len(prompts) <= 1, f"told {len(prompts)} times"
        assert len(prompts) == 1 or sent[0]["state"] == "unconfirmed", sent[0]["state"]


@pytest.mark.parametrize("verb", ["report", "close"])
def test_a_report_and_a_close_that_are_killed(machine, verb):
    machine.clear()
    machine.run("spawn")
    calls = machine.run(verb)["calls"]
    failures = []
    for n in range(1, calls + 1):
        machine.clear()
        machine.run("spawn")
        machine.run(verb, n, KILL_BEFORE)
        try:
            settled(machine)
            machine.run(verb)
            settled(machine)
            with mam.open(str(machine.root)) as fleet:
                rows, panes, up, work = facts(fleet)
                (member,) = up[0]["members"]
                if verb == "report":
                    assert [one["status"] for one in work] == ["done"]
                    assert all(member["boxes"].values()), member["boxes"]
                else:
                    assert (member["state"], rows["dev"]["status"]) == ("closed", "stopped")
                    assert [one["status"] for one in work] == ["pending"]
                    assert not [pane for pane in panes if pane.mark == rows["dev"]["id"]]
        except AssertionError as error:
            failures.append(f"call {n} of {calls}: {error}")
    assert not failures, "\n" + "\n".join(failures)
