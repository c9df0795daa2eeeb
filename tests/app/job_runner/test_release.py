"""A parked job waits for a person: nothing runs, ends or times out before its release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mam.adapters.store.tables import jobs
from mam.app.job_runner import release as releasing
from mam.app.job_runner.resident_task import JobTask, _commands_without_job
from mam.app.roots.parking import park_everything
from mam.core import caller as callers
from mam.core.errors import EventRefused, NotAllowed

FAST = ["--speed", "0"]
REASON = "the root came from elsewhere"


def park(fleet):
    return fleet._access.context.registry.note(lambda transaction: park_everything(transaction, REASON))


def tick(fleet):
    task = JobTask(fleet._access.context, fleet.caller)
    task.tick()
    task.join()


@pytest.fixture
def job(fleet):
    """A job whose agent got its task and has not reported yet."""
    submitted = fleet.jobs.submit("please never report", agent="practice", args=FAST, timeout=1000)
    return submitted["job_id"]


def status(fleet, job):
    return fleet.jobs.status(job)["status"]


def overdue(fleet, job):
    """Make the job's time long over."""
    fleet._access.context.registry.note(
        lambda transaction: jobs.update(
            transaction, jobs.find(transaction, job), created_at=1.0, last_event_at=1.0, data={"began": 1.0}
        )
    )


def test_nothing_happens_to_a_parked_job(fleet, job) -> None:
    assert [one.id for one in park(fleet).jobs] == [job]
    overdue(fleet, job)
    tick(fleet)
    assert status(fleet, job) == "parked"
    with pytest.raises(EventRefused, match="the job is parked") as refused:
        fleet.jobs.event(job, "completed", detail="done")
    assert refused.value.hint == f"a person runs mam job release {job}"
    assert fleet.jobs.list(only_open=True) == []
    (ended,) = fleet.jobs.wait([job], timeout=5)
    assert ended["status"] == "parked", "whoever waits learns that it is parked"
    fleet.sessions.stop(fleet.jobs.status(job)["agent_session"].removeprefix("tmux:"))
    assert status(fleet, job) == "parked"


def test_a_released_job_goes_on_with_new_timeouts(fleet, job) -> None:
    before = status(fleet, job)
    park(fleet)
    overdue(fleet, job)
    (outcome,) = fleet.jobs.release(job)
    assert (outcome["released"], outcome["status"]) == (True, before)
    tick(fleet)
    assert status(fleet, job) in (before, "running")
    fleet.jobs.event(job, "completed", detail="done")
    assert status(fleet, job) == "completed"
    names = [entry["event"] for entry in fleet.jobs.logs(job)["events"]]
    assert names.index("parked") < names.index("released") < names.index("completed")
    (again,) = fleet.jobs.release(job)
    assert (again["released"], again["reason"]) == (False, "it is completed, and not parked")


def test_a_job_without_a_live_session_stays_parked_with_a_way_out(fleet, job) -> None:
    name = fleet.jobs.status(job)["agent_session"].removeprefix("tmux:")
    park(fleet)
    fleet.sessions.stop(name)
    (outcome,) = fleet.jobs.release()
    assert outcome["released"] is False
    assert outcome["reason"] == f"its session '{name}' does not run, so it would end with an error at once"
    assert outcome["hint"] == f"mam resume {name} first; mam job cancel {job} ends it"
    fleet.sessions.resume(name)
    assert fleet.jobs.release(job)[0]["released"] is True


def test_a_parked_job_can_be_cancelled(fleet, job) -> None:
    park(fleet)
    document = fleet.jobs.cancel(job)
    assert (document["changed"], document["job"]["status"]) == (True, "cancelled")
    assert fleet.jobs.release() == []


def test_the_record_says_parked_and_is_read_again(fleet, job) -> None:
    park(fleet)
    (outcome,) = fleet.jobs.release(job)
    assert outcome["released"]
    park(fleet)
    fleet.jobs.cancel(job)
    path = Path(fleet._access.context.paths.jobs, "00ab12cd.json")
    record = json.loads(Path(fleet._access.context.paths.jobs, f"{job}.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, "job_id": "00ab12cd", "status": "parked"}), encoding="utf-8")
    assert status(fleet, "00ab12cd") == "parked"


def test_the_task_of_a_job_is_released_with_it(fleet) -> None:
    job = fleet.jobs.submit("create it.txt", agent="practice", args=[*FAST, "--trust-dialog"])["job_id"]
    parked = park(fleet)
    assert ([one.id for one in parked.jobs], [one.id for one in parked.messages]) == ([job], [f"m_{job}"])
    name = fleet.jobs.status(job)["agent_session"].removeprefix("tmux:")
    fleet.messages.answer(name, "allow")
    tick(fleet)
    assert fleet.messages.inbox(name)[0]["state"] == "parked"
    assert fleet.jobs.release(job)[0]["released"]
    (ended,) = fleet.jobs.wait([job], timeout=60)
    assert ended["status"] == "completed"


def test_the_command_of_a_parked_job_is_not_stopped(fleet) -> None:
    job = fleet.jobs.submit(None, command=["sleep", "1000"])["job_id"]
    park(fleet)
    context = fleet._access.context
    assert context.registry.peek(lambda transaction: _commands_without_job(context, transaction), None) == []
    assert fleet.jobs.release(job)[0]["released"] is True
    fleet.jobs.cancel(job)


def test_only_a_person_releases(fleet) -> None:
    with pytest.raises(NotAllowed, match="'mam job release'"):
        releasing.release(fleet._access.context, callers.session("s_1f00ab42"))
