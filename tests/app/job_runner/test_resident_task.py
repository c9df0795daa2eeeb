"""A job on which mam fails is set aside with its reason; the others go on, and it can be cancelled."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

import mam
from mam.adapters.store.tables import jobs, set_aside
from mam.app.job_runner import resident_task
from mam.app.job_runner.resident_task import JobTask
from mam.app.jobs.new_job import new_id, record_job
from mam.app.monitor.doctor import _set_aside as findings
from mam.core.errors import DiskFull, EventRefused

BROKEN = {
    "a timeout that is a text": (
        "data=json_set(data, '$.timeout_sec', '1h')",
        "its timeout_sec cannot be '1h'",
    ),
    "a time that is a list": ("data=json_set(data, '$.began', json('[]'))", "its began cannot be []"),
    "a record that was cut off": ("data=substr(data, 1, 40)", "its record is not readable"),
    "a record that is a list": ("data='[]'", "its record is not readable"),
    "a number that is a text": ("attempt='first'", "its attempt cannot be 'first'"),
    "a date that is a text": ("created_at='yesterday'", "its created_at cannot be 'yesterday'"),
}


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def told(fleet):
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    return warnings


def submit(fleet, **facts):
    """Record a job for a person, so that nothing runs."""
    return record_job(fleet._access.context, fleet.caller, new_id(), "do it", type="human", **facts).id


def overdue(fleet):
    """Record a job whose time is over."""
    job_id = submit(fleet, timeout_sec=10.0)
    write(fleet, "UPDATE jobs SET data=json_set(data, '$.began', 1.0) WHERE id=?", job_id)
    return job_id


def write(fleet, statement, *values):
    with closing(sqlite3.connect(fleet._access.context.paths.db)) as connection, connection:
        connection.execute(statement, values)


def aside(fleet):
    items = fleet._access.context.registry.peek(set_aside.listed, [])
    return [(item.kind, item.key, item.reason) for item in items]


def doctor(fleet):
    return [check["message"] for check in findings(fleet._access.context)]


@pytest.mark.promise("P23")
@pytest.mark.parametrize(("change", "reason"), BROKEN.values(), ids=BROKEN)
def test_e2_a_broken_job_stops_no_other(fleet, told, change, reason) -> None:
    broken, other = submit(fleet), overdue(fleet)
    write(fleet, f"UPDATE jobs SET {change} WHERE id=?", broken)
    assert any(reason in line and broken in line for line in doctor(fleet)), "before anybody tried"
    task = JobTask(fleet._access.context, fleet.caller)
    task.tick()
    task.tick()
    assert fleet.jobs.status(other)["reason"] == "timeout:wall"
    assert aside(fleet) == [("job", broken, reason)]
    assert [text for text in told if broken in text] == [
        f"mam cannot work on job {broken}: {reason}; it is set aside, see mam doctor"
    ]
    assert not task.is_needed(), "no resident stays for it"
    (listed,) = [job for job in fleet.jobs.list() if job["job_id"] == broken]
    assert (listed["status"], listed["set_aside"]) == ("pending", reason)
    assert fleet.jobs.status(broken)["set_aside"] == reason
    assert "set_aside" not in fleet.jobs.status(other)
    assert fleet.sessions.ls()["sessions"] == []
    assert len(doctor(fleet)) == 1
    assert fleet.jobs.cancel(broken)["changed"]
    assert fleet.jobs.status(broken)["status"] == "cancelled"
    assert (aside(fleet), doctor(fleet)) == ([], [])


def test_e2_a_job_of_unknown_status_can_be_cancelled(fleet) -> None:
    broken = submit(fleet)
    write(fleet, "UPDATE jobs SET status='banana' WHERE id=?", broken)
    assert fleet.jobs.status(broken)["set_aside"] == "its status cannot be 'banana'"
    assert fleet.jobs.cancel(broken)["changed"]
    assert fleet.jobs.status(broken)["status"] == "cancelled"


def test_e2_an_unreadable_job_is_not_ended_by_a_report_and_stays_as_recorded(fleet) -> None:
    broken = submit(fleet, expected_artifacts=["report.md"])
    write(fleet, "UPDATE jobs SET data='{cut off' WHERE id=?", broken)
    with pytest.raises(EventRefused, match="not readable") as refused:
        fleet.jobs.event(broken, "completed")
    assert refused.value.hint == f"mam job cancel {broken} ends it"
    fleet.jobs.cancel(broken)
    with closing(sqlite3.connect(fleet._access.context.paths.db)) as connection:
        assert connection.execute("SELECT data FROM jobs").fetchall() == [("{cut off",)]


def test_e2_an_unreadable_entry_hides_no_other(fleet) -> None:
    job_id = submit(fleet)
    fleet.jobs.event(job_id, "progress", detail="one")
    write(fleet, "UPDATE job_events SET payload='{' WHERE name='registered'")
    fleet.jobs.event(job_id, "completed", detail="two")
    details = [entry["detail"] for entry in fleet.jobs.logs(job_id)["events"]]
    assert details == ["this entry is not readable", "one", "two"]
    assert fleet.jobs.wait([job_id])[0]["status"] == "completed"


@pytest.fixture
def failing(fleet, monkeypatch):
    """Make mam fail on one job; count how often it tries."""
    case = SimpleNamespace(job=submit(fleet), tries=[], error=KeyError("what nobody foresaw"))
    real = resident_task.advance_job

    def advance(context, caller, job, sessions):
        if job.id != case.job:
            real(context, caller, job, sessions)
            return
        case.tries.append(job.id)
        raise case.error

    monkeypatch.setattr(resident_task, "advance_job", advance)
    return case


def failing_again(fleet):
    task = JobTask(fleet._access.context, fleet.caller)
    task.tick()
    task.tick()


def test_e2_a_job_is_tried_again_when_it_changes(fleet, failing, told) -> None:
    failing_again(fleet)
    assert len(failing.tries) == 1
    assert fleet.jobs.status(failing.job)["set_aside"] == "KeyError: 'what nobody foresaw'"
    fleet._access.context.registry.note(
        lambda transaction: jobs.update(transaction, jobs.find(transaction, failing.job), data={"round": 2})
    )
    failing_again(fleet)
    assert len(failing.tries) == 2
    assert len(told) == 1, "it is told once"


def test_e2_a_job_is_tried_again_by_a_newer_mam(fleet, failing, monkeypatch) -> None:
    failing_again(fleet)
    monkeypatch.setattr(mam, "__version__", "99.0.0")
    failing_again(fleet)
    assert len(failing.tries) == 2
    monkeypatch.setattr(mam, "__version__", "1.0.0")
    failing_again(fleet)
    assert len(failing.tries) == 2, "an older mam leaves it"
    monkeypatch.undo()
    write(fleet, "UPDATE set_aside SET version='0.0.1'")
    failing_again(fleet)
    assert aside(fleet) == [], "it could be advanced"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), DiskFull("full")])
def test_e2_an_error_of_the_machine_sets_no_job_aside(fleet, failing, told, error) -> None:
    failing.error = error
    other = overdue(fleet)
    failing_again(fleet)
    assert aside(fleet) == []
    assert len(failing.tries) == 2
    assert fleet.jobs.status(other)["reason"] == "timeout:wall"
    assert len([text for text in told if failing.job in text]) == 1


def test_e2_a_check_that_fails_sets_only_its_job_aside(fleet, monkeypatch) -> None:
    checked, other = submit(fleet, expected_artifacts=["report.md"]), overdue(fleet)
    fleet.jobs.event(checked, "completed", detail="done")

    def fail(*_arguments):
        raise TypeError("no")

    monkeypatch.setattr(resident_task, "check", fail)
    task = JobTask(fleet._access.context, fleet.caller)
    task.tick()
    task._threads[checked].join()
    assert aside(fleet) == [("job", checked, "TypeError: no")]
    assert fleet.jobs.status(other)["reason"] == "timeout:wall"
