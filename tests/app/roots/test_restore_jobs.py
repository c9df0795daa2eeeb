"""`mam restore` and jobs: what has ended is not done again, a command keeps its end, and files come back."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess

import pytest
from tests.app.roots.test_restore import copy_now, reopened
from tests.app.team_desk import QUICK

import mam
from mam.adapters.store.files import exec_files
from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.context.liveness import identity_of
from mam.app.jobs import write_job_files
from mam.app.jobs.new_job import new_id, record_job
from mam.core.errors import EventRefused, Refused

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


def start_command(fleet, workspace, until, *, code: int, **options) -> str:
    """Start a command that ends with this status once the file `go` is there; return its job."""
    script = f"echo begun; until [ -e go ]; do sleep 0.05; done; echo ended; exit {code}"
    job: str = fleet.jobs.submit("x", command=["sh", "-c", script], **options)["job_id"]
    until(lambda: b"begun" in output(fleet, job))
    return job


def output(fleet, job) -> bytes:
    try:
        return fleet.jobs.output(job)["output"]
    except Refused:
        return b""


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_that_goes_on_ends_its_job_by_its_own_status(
    fleet, workspace, reopened, until, code
) -> None:
    job = start_command(fleet, workspace, until, code=code)
    copy_now(fleet)
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["jobs"]["going_on"] == [job]
    folder = workspace / ".mam" / "jobs" / f"{job}.exec"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (workspace / "go").touch()
    (ended,) = again.jobs.wait([job], timeout=90)
    assert ended["status"] == ("completed" if code == 0 else "error")
    assert ended["terminal_detail"].startswith(f"exit {code}")
    assert exec_files.read_record(str(workspace / ".mam" / "jobs"), job, 1).startswith(b'{"exit_status": ')


def test_a_command_that_goes_on_is_not_idle_while_it_writes(fleet, workspace, reopened, until) -> None:
    job = start_command(fleet, workspace, until, code=0)
    copy_now(fleet)
    lose(fleet, workspace)
    again = reopened()
    again.restore()
    folder = str(workspace / ".mam" / "jobs")
    before = exec_files.last_output_at(folder, job, 1)
    assert before is not None, "the idle time has a beginning"
    (workspace / "go").touch()
    until(lambda: exec_files.last_output_at(folder, job, 1) > before)
    again.jobs.wait([job], timeout=90)


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "error")])
def test_without_any_record_the_status_that_tmux_has_counts(
    fleet, workspace, reopened, until, code, status
) -> None:
    """The command ended between the loss and the restore, or somebody deleted the folder."""
    job = start_command(fleet, workspace, until, code=code)
    shutil.rmtree(workspace / ".mam" / "jobs" / f"{job}.exec")
    (workspace / "go").touch()
    name = fleet.jobs.status(job)["agent_session"].removeprefix("tmux:")
    (ended,) = fleet.jobs.wait([job], timeout=90)
    assert (ended["status"], ended["terminal_detail"]) == (status, f"exit {code}: ended")
    assert fleet.jobs.logs(job)["events"][-1]["data"]["exit_status"] == code
    until(lambda: fleet.monitor.once() and fleet.sessions.get(name).row["status"] != "running")
    assert fleet.sessions.get(name).row["last_action"]["verb"] == "ended"


def test_a_root_that_is_gone_for_good_gets_nothing_from_a_runner(fleet, workspace, reopened, until) -> None:
    job = start_command(fleet, workspace, until, code=0)
    row = fleet.sessions.get(fleet.jobs.status(job)["agent_session"].removeprefix("tmux:")).row
    runner = identity_of(row)
    lose(fleet, workspace)
    (workspace / "go").touch()
    until(lambda: not process.is_alive(runner))
    assert not (workspace / ".mam").exists()


def files_of(workspace, job) -> list[str]:
    """Return the files that show a job, as far as they are there."""
    places = [workspace / ".mam" / "jobs", workspace / "delegate_job_logs" / job]
    names = [f"{job}.json", f"{job}.events.log", "meta.json", "events.ndjson", "status.json"]
    return [name for name in names if any((place / name).exists() for place in places)]


def remove_files(workspace, job) -> None:
    for path in (workspace / ".mam" / "jobs").glob(f"{job}*"):
        path.unlink()
    shutil.rmtree(workspace / "delegate_job_logs" / job)
    assert files_of(workspace, job) == []


@pytest.fixture
def ended(fleet) -> str:
    """Return a job that has ended."""
    job: str = fleet.jobs.submit("look at it", type="human")["job_id"]
    fleet.jobs.event(job, "completed")
    return job


def test_a_restore_writes_the_files_of_ended_jobs_again(fleet, workspace, reopened, ended) -> None:
    copy_now(fleet)
    everything = files_of(workspace, ended)
    assert len(everything) == 5
    fleet.close()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    subprocess.run(["git", "-C", str(workspace), "clean", "-fdxq"], check=True)
    again = reopened()
    copy = again.restore()["file"]
    assert files_of(workspace, ended) == everything
    again.close()
    remove_files(workspace, ended)
    reopened().restore(copy, is_confirmed=True)
    assert files_of(workspace, ended) == everything, "also where a state is replaced"


@pytest.mark.parametrize("look", ["logs", "audits"])
def test_the_lost_files_of_an_ended_job_come_back_when_somebody_looks(fleet, workspace, ended, look) -> None:
    everything = files_of(workspace, ended)
    remove_files(workspace, ended)
    folder = str(workspace / "delegate_job_logs" / ended)
    if look == "logs":
        assert fleet.jobs.logs(ended)["directory"] == folder
    else:
        (listed,) = fleet.jobs.audits()
        assert (listed["job_id"], listed["directory"], listed["status"]) == (ended, folder, "completed")
    assert files_of(workspace, ended) == everything
    (workspace / "delegate_job_logs" / ended / "meta.json").unlink()
    fleet.jobs.logs(ended)
    assert files_of(workspace, ended) == everything, "one file is missed, too"


def test_who_looks_writes_nothing_that_is_there_or_that_is_of_another_root(
    fleet, workspace, ended, monkeypatch
) -> None:
    written = []
    monkeypatch.setattr(write_job_files, "write_files", lambda _context, job_id: written.append(job_id))
    fleet.jobs.logs(ended)
    fleet.jobs.audits()
    assert written == []
    remove_files(workspace, ended)
    monkeypatch.undo()
    monkeypatch.setenv("MAM_STATE_HOME", str(workspace.parent / "another-state"))
    with mam.open(str(workspace)) as stranger:
        assert stranger.jobs.logs(ended)["events"]
        assert stranger.jobs.audits() == []
    assert files_of(workspace, ended) == []


def test_a_job_that_the_copy_does_not_have_ends_with_an_error_and_is_named(
    fleet, workspace, reopened
) -> None:
    """Its files say that it runs, and nobody would ever follow it."""
    fleet.init()
    copy = copy_now(fleet)
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    job = record_job(fleet._access.context, fleet.caller, new_id(), "do it").id
    fleet._access.context.registry.note(lambda it: jobs.update(it, jobs.find(it, job), session_id=session.id))
    done = record_job(fleet._access.context, fleet.caller, new_id(), "do it").id
    fleet.jobs.event(done, "completed", detail="as asked")
    fleet.jobs.event(job, "started")
    fleet.close()
    again = reopened()
    assert again.restore(str(copy), dry_run=True)["jobs_not_in_copy"] == [job]
    assert again.jobs.status(job)["status"] == "running"
    document = again.restore(str(copy), is_confirmed=True)
    assert (document["jobs_not_in_copy"], document["jobs"]) == ([job], {"going_on": [], "parked": []})
    assert {shown["job_id"]: shown["status"] for shown in again.jobs.list()} == {
        job: "error",
        done: "completed",
    }
    (waited,) = again.jobs.wait([job], timeout=60)
    assert (waited["status"], waited["reason"]) == ("error", "restored")
    record = json.loads((workspace / ".mam" / "jobs" / f"{job}.json").read_text(encoding="utf-8"))
    assert record["status"] == "error"
    log = (workspace / "delegate_job_logs" / job / "events.ndjson").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in (log[0], log[-1])] == ["registered", "error"]
    # Its agent runs on as a session of its own, and can report on the job no more.
    assert document["sessions_taken_back"] == ["worker"]
    with pytest.raises(EventRefused):
        again.jobs.event(job, "completed", detail="as asked")
    assert again.restore(str(copy), is_confirmed=True)["jobs_not_in_copy"] == []
