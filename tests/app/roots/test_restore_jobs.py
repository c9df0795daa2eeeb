"""`mam restore` and jobs: what has ended is not done again, a command keeps its end, and files come back."""

from __future__ import annotations

import shutil

import pytest
from tests.app.roots.test_restore import copy_now, reopened
from tests.app.team_desk import QUICK

from mam.adapters.store.tables import jobs
from mam.app.jobs.new_job import new_id, record_job

# They start agents and commands.
pytestmark = pytest.mark.starts

__all__ = ["reopened"]


def lose(fleet, workspace) -> None:
    fleet.close()
    shutil.rmtree(workspace / ".mam")


@pytest.fixture
def carried(fleet) -> str:
    """Return a job that the agent in a live pane works on, and that a person reports on."""
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    job = record_job(fleet._access.context, fleet.caller, new_id(), "do it").id
    fleet._access.context.registry.note(
        lambda it: jobs.update(it, jobs.find(it, job), session_id=session.id, status="running")
    )
    return job


def reason_of(fleet, job_id):
    parked = [entry for entry in fleet.jobs.logs(job_id)["events"] if entry["event"] == "parked"]
    return parked[-1]["detail"]


@pytest.mark.parametrize("end", ["completed", "error"])
@pytest.mark.parametrize("has_audit", [False, True], ids=["state", "state and audit log"])
def test_a_job_that_ended_in_the_state_that_is_replaced_does_not_go_on(
    fleet, workspace, reopened, carried, end, has_audit
) -> None:
    copy = copy_now(fleet)
    fleet.jobs.event(carried, end, detail="as asked")
    fleet.close()
    if not has_audit:
        shutil.rmtree(workspace / "delegate_job_logs")
    again = reopened()
    assert again.restore(str(copy), is_confirmed=True)["jobs"] == {"going_on": [], "parked": [carried]}
    assert reason_of(again, carried) == (
        f"mam restore parked it: it has ended since the copy was made ({end}: as asked)"
    )
    again.jobs.release(carried)
    assert again.jobs.status(carried)["status"] == "running", "a person decides"
    again.sessions.stop("worker", force=True)


def test_a_job_whose_audit_log_has_its_end_does_not_go_on(fleet, workspace, reopened, carried) -> None:
    """Nobody has lost the audit folder."""
    copy_now(fleet)
    fleet.jobs.event(carried, "progress", detail="half")
    fleet.jobs.event(carried, "completed", detail="as asked")
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["jobs"] == {"going_on": [], "parked": [carried]}
    assert "ended since the copy was made (completed: as asked)" in reason_of(again, carried)
    again.sessions.stop("worker", force=True)


def test_an_end_that_the_copy_knows_to_be_over_does_not_count(fleet, workspace, reopened, carried) -> None:
    """A person released the job after an earlier restore, and the audit log still has the former end."""
    copy = copy_now(fleet)
    fleet.jobs.event(carried, "completed", detail="as asked")
    fleet.close()
    again = reopened()
    again.restore(str(copy), is_confirmed=True)
    again.jobs.release(carried)
    copy_now(again)
    again.jobs.event(carried, "progress", detail="on it again")
    lose(again, workspace)
    last = reopened()
    assert last.restore()["jobs"] == {"going_on": [carried], "parked": []}
    last.sessions.stop("worker", force=True)


def test_a_late_report_of_an_earlier_attempt_is_no_end(fleet, workspace, reopened, carried) -> None:
    registry = fleet._access.context.registry
    registry.note(lambda it: jobs.update(it, jobs.find(it, carried), attempt=2))
    copy_now(fleet)
    audit = workspace / "delegate_job_logs" / carried / "events.ndjson"
    audit.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        '{"event": "completed", "number": 901, "data": {"attempt": 1}, "detail": "of before"}',
        '{"event": "completed", "number": "902"}',
        '{"event": "completed", "number": 903, "data": [], "detail": 5}',
        '{"event": "progress", "number": 904, "data": {"attempt": 2}}',
    ]
    with audit.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\nno JSON\n")
    lose(fleet, workspace)
    again = reopened()
    assert again.restore(dry_run=True)["jobs"]["going_on"] == [carried]
    again.restore()
    again.sessions.stop("worker", force=True)
