"""Tasks: oldest first, claimed by exactly one, ended by who may."""

import json
import subprocess
import sys

import pytest

from mam.core import caller as callers
from mam.core.errors import Conflict, NotAllowed, TaskNotFound, Usage


def speak_as(fleet, who):
    fleet._access._caller = callers.session(who)


def test_oldest_first_and_by_role(fleet):
    for text, role in (("one", "dev"), ("two", "qa"), ("three", "Dev")):
        fleet.tasks.add(text, role=role)
    assert [one["id"] for one in fleet.tasks.list()["tasks"]] == ["TASK-001", "TASK-002", "TASK-003"]
    assert fleet.tasks.claim(role="dev")["task"]["text"] == "one"
    assert fleet.tasks.claim(role="dev")["task"]["text"] == "three"
    with pytest.raises(TaskNotFound):
        fleet.tasks.claim(role="dev")
    assert [one["text"] for one in fleet.tasks.list(status="pending")["tasks"]] == ["two"]
    with pytest.raises(Usage):
        fleet.tasks.claim()


def test_no_registry_has_no_tasks(fleet, workspace):
    assert fleet.tasks.list() == {"tasks": []}
    assert not (workspace / ".mam").exists(), "reading makes nothing"


def test_ten_claimers_of_one_task(fleet, workspace):
    fleet.tasks.add("just one", role="dev")
    words = [sys.executable, "-m", "mam", "task", "claim", "--role", "dev", "--json"]
    claimers = [
        subprocess.Popen(words, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    answers = []
    for one in claimers:
        out, err = one.communicate(timeout=120)
        assert not err, err
        answers.append((one.returncode, json.loads(out)))
    won = [answer for code, answer in answers if code == 0]
    assert [one["task"]["id"] for one in won] == ["TASK-001"]
    lost = {(code, answer["error"]["code"]) for code, answer in answers if code != 0}
    assert lost == {(1, "task_not_found")}
    assert len(fleet._access.context.registry.peek(_claims, [])) == 1


def _claims(draft):
    return draft.connection.execute("SELECT * FROM log WHERE verb='task claim'").fetchall()


def test_one_by_name(fleet):
    session = fleet.sessions.create("practice", name="one", role="dev", args=["--speed", "0"])
    fleet.tasks.add("x", role="dev")
    first = fleet.tasks.claim("TASK-001", session="one")
    assert first["changed"] and first["task"]["claimed_by"] == "one"
    assert first["task"]["pane"] == session.row["pane"]["id"]
    assert fleet.tasks.claim("1", session="one")["changed"] is False, "it has it already"
    with pytest.raises(Conflict):
        fleet.tasks.claim("TASK-001")
    session.stop()
    assert fleet.tasks.claim("TASK-001")["changed"], "who had it has ended"
    with pytest.raises(TaskNotFound):
        fleet.tasks.claim("TASK-099")


def test_the_log_says_who_gave_it(fleet):
    session = fleet.sessions.create("practice", name="one", role="dev", args=["--speed", "0"])
    fleet.tasks.add("x", role="dev")
    fleet.tasks.claim(session="one")
    (claimed,) = [one for one in fleet.sessions.log("one") if one["verb"] == "task claim"]
    assert (claimed["by"], claimed["session"]) == ("user", session.name)


def test_who_may_end_it(fleet):
    fleet.tasks.add("x", role="dev")
    speak_as(fleet, "s_00000001")
    fleet.tasks.claim(role="dev")
    speak_as(fleet, "s_00000002")
    with pytest.raises(NotAllowed):
        fleet.tasks.finish("TASK-001")
    speak_as(fleet, "s_00000001")
    done = fleet.tasks.finish("TASK-001", result="all\nof it")
    assert (done["task"]["status"], done["task"]["result"]) == ("done", "all of it")
    assert fleet.tasks.finish("TASK-001")["changed"] is False
    with pytest.raises(Conflict):
        fleet.tasks.claim("TASK-001")
    with pytest.raises(TaskNotFound):
        fleet.tasks.finish("TASK-002")
