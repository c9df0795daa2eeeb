"""Tasks: oldest first, claimed by exactly one, and finished only by those who may."""

import json
import subprocess
import sys

import pytest

from mam.core import caller as callers
from mam.core.errors import Conflict, NotAllowed, TaskNotFound, Usage


def call_as(fleet, session_id):
    fleet._access._caller = callers.session(session_id)


def test_oldest_first_and_by_role(fleet):
    for text, role in (("one", "dev"), ("two", "qa"), ("three", "Dev")):
        fleet.tasks.add(text, role=role)
    assert [task["id"] for task in fleet.tasks.list()["tasks"]] == ["TASK-001", "TASK-002", "TASK-003"]
    assert fleet.tasks.claim(role="dev")["task"]["text"] == "one"
    assert fleet.tasks.claim(role="dev")["task"]["text"] == "three"
    with pytest.raises(TaskNotFound):
        fleet.tasks.claim(role="dev")
    assert [task["text"] for task in fleet.tasks.list(status="pending")["tasks"]] == ["two"]
    with pytest.raises(Usage):
        fleet.tasks.claim()


def test_no_registry_has_no_tasks(fleet, workspace):
    assert fleet.tasks.list() == {"tasks": []}
    assert not (workspace / ".mam").exists(), "reading makes nothing"


@pytest.mark.promise("P35")
def test_ten_claimers_of_one_task(fleet, workspace):
    fleet.tasks.add("just one", role="dev")
    argv = [sys.executable, "-m", "mam", "task", "claim", "--role", "dev", "--json"]
    claimers = [
        subprocess.Popen(argv, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    answers = []
    for claimer in claimers:
        out, err = claimer.communicate(timeout=120)
        assert not err, err
        answers.append((claimer.returncode, json.loads(out)))
    winners = [answer for code, answer in answers if code == 0]
    assert [winner["task"]["id"] for winner in winners] == ["TASK-001"]
    errors = {(code, answer["error"]["code"]) for code, answer in answers if code != 0}
    assert errors == {(1, "task_not_found")}
    assert len(fleet._access.context.registry.peek(_claims, [])) == 1


def _claims(transaction):
    return transaction.connection.execute("SELECT * FROM log WHERE verb='task claim'").fetchall()


def test_a_task_is_claimed_by_name(fleet):
    session = fleet.sessions.create("practice", name="one", role="dev", args=["--speed", "0"])
    fleet.tasks.add("x", role="dev")
    first = fleet.tasks.claim("TASK-001", session="one")
    assert first["changed"] and first["task"]["claimed_by"] == "one"
    assert first["task"]["pane"] == session.row["pane"]["id"]
    assert fleet.tasks.claim("1", session="one")["changed"] is False, "it has it already"
    with pytest.raises(Conflict):
        fleet.tasks.claim("TASK-001")
    session.stop()
    assert fleet.tasks.claim("TASK-001")["changed"], "its claimant has ended"
    with pytest.raises(TaskNotFound):
        fleet.tasks.claim("TASK-099")


def test_the_log_names_the_caller_of_a_claim(fleet):
    session = fleet.sessions.create("practice", name="one", role="dev", args=["--speed", "0"])
    fleet.tasks.add("x", role="dev")
    fleet.tasks.claim(session="one")
    (claim,) = [entry for entry in fleet.sessions.log("one") if entry["verb"] == "task claim"]
    assert (claim["by"], claim["session"]) == ("user", session.name)


def test_who_may_finish_a_task(fleet):
    fleet.tasks.add("x", role="dev")
    call_as(fleet, "s_00000001")
    fleet.tasks.claim(role="dev")
    call_as(fleet, "s_00000002")
    with pytest.raises(NotAllowed):
        fleet.tasks.finish("TASK-001")
    call_as(fleet, "s_00000001")
    document = fleet.tasks.finish("TASK-001", result="all\nof it")
    assert (document["task"]["status"], document["task"]["result"]) == ("done", "all of it")
    assert fleet.tasks.finish("TASK-001")["changed"] is False
    with pytest.raises(Conflict):
        fleet.tasks.claim("TASK-001")
    with pytest.raises(TaskNotFound):
        fleet.tasks.finish("TASK-002")
