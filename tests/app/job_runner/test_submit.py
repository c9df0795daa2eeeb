"""A job from its submission to its end, with the practice agent in a pane of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mam.adapters.store.tables import jobs, messages
from mam.adapters.system import process
from mam.app.job_runner import begin_attempt, check, resident_task
from mam.app.jobs import clock_jump
from mam.app.jobs.find import token_of
from mam.core import caller as callers
from mam.core.errors import (
    AgentMissing,
    IllegalTransition,
    InvalidPath,
    InvalidPrompt,
    MamError,
    NameTaken,
    NotAllowed,
    Refused,
    TimedOut,
    Usage,
)

FAST = ["--speed", "0"]


def names(fleet, job):
    return [entry["event"] for entry in fleet.jobs.logs(job)["events"]]


def details(fleet, job, name):
    return [entry["detail"] for entry in fleet.jobs.logs(job)["events"] if entry["event"] == name]


@pytest.fixture
def submit(fleet):
    def submit(prompt="write it down", **options):
        all_options = {"agent": "practice", "args": FAST, "timeout": 120, **options}
        return fleet.jobs.submit(prompt, **all_options)

    return submit


def test_from_submission_to_the_end(fleet, submit, workspace):
    job = submit("create proof.txt", expect=["proof.txt"])
    events = []
    (result,) = fleet.jobs.wait([job["job_id"]], lambda entry: events.append(entry["event"]), from_start=True)
    assert (result["status"], result["terminal_detail"]) == ("completed", "done as asked")
    assert events[:2] == ["registered", "agent_launched"]
    assert "started" in events
    assert events[-2:] == ["checking", "completed"]
    assert (workspace / "proof.txt").exists()
    row = fleet.sessions.get(result["agent_session"].removeprefix("tmux:")).row
    assert (row["delegate_job_id"], row["permissions"], row["status"]) == (job["job_id"], "skip", "running")
    assert row["name"] == f"demo-app-{job['job_id']}-creator-practice"
    session = fleet.sessions.ls()["sessions"][0]
    assert (session["job"], session["job_status"]) == (job["job_id"], "completed")
    environ = Path(f"/proc/{row['pane']['pid']}/environ").read_bytes().split(b"\0")
    assert f"MAM_JOB_ID={job['job_id']}".encode() in environ


@pytest.mark.parametrize(
    "prompt",
    [
        "say \"hello\" and 'bye'",
        "do $(touch harm) and `touch harm` and $HOME; touch harm #{x} & done\\",
        "several\nlines\n\nof it",
        "tab\there and \x1b[31mcolour",
        "/exit",
        "\n".join(f"line {number} of a long task" for number in range(36000)),
    ],
    ids=["quotes", "shell", "lines", "controls", "command", "1 MB"],
)
def test_a_prompt_arrives_as_it_was_written(fleet, submit, workspace, prompt):
    job = submit(prompt)
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert result["status"] == "completed"
    assert result["prompt"] == prompt
    session = result["agent_session"].removeprefix("tmux:")
    message = next(
        turn["text"] for turn in fleet.sessions.transcript(session)["turns"] if turn["role"] == "user"
    )
    if message.startswith("Read the file "):
        message = (workspace / message.split()[3].rstrip(":")).read_text(encoding="utf-8")
    assert message.endswith(f"\nTask:\n{prompt}")
    assert not list(workspace.glob("**/harm"))


def test_what_is_refused_leaves_nothing(fleet, workspace):
    for prompt, options, error in (
        ("", {}, InvalidPrompt),
        (" \n", {}, InvalidPrompt),
        ("x" * (1024 * 1024), {}, InvalidPrompt),
        ("a\0b", {}, InvalidPrompt),
        ("\udcff", {}, InvalidPrompt),
        ("x", {"workdir": "nowhere"}, InvalidPath),
        ("x", {"validate": "nowhere.sh"}, InvalidPath),
        ("x", {"type": "dance"}, Usage),
        ("x", {"type": "loop"}, Usage),
        ("x", {"reviewer": "practice"}, Usage),
        ("x", {"permissions": "all"}, Usage),
        ("x", {"session": "a", "agent_session": "tmux:b"}, Usage),
        ("x", {"agent": "human", "session": "a"}, Usage),
        ("x", {"timeout": -1}, Usage),
    ):
        with pytest.raises(error):
            fleet.jobs.submit(prompt, **{"agent": "practice", **options})
    assert fleet.jobs.list() == []
    assert not (workspace / ".mam").exists()


def test_a_dry_run_writes_nothing(fleet, workspace):
    preview = fleet.jobs.preview("do it", agent="practice", validate=None)
    assert "Task:\ndo it" in preview["instructions"]
    assert f"--job {preview['job_id']} --attempt 1 --event completed" in preview["instructions"]
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("agent", ["cat", "agy"])
def test_s002_5_a_program_that_nobody_can_speak_to_is_refused_before_it_starts(fleet, submit, agent):
    with pytest.raises(Refused, match=agent) as refused:
        submit(agent=agent, args=[])
    assert f"--exec --prompt TEXT -- {agent}" in refused.value.hint
    with pytest.raises(Refused, match=agent):
        submit(type="loop", reviewer=agent)
    with pytest.raises(Refused, match=agent):
        fleet.jobs.preview("x", agent=agent)
    assert fleet.jobs.list() == []
    assert fleet.sessions.ls()["sessions"] == []


def test_s002_5_a_program_that_is_nowhere_is_refused_with_similar_names(fleet, submit):
    with pytest.raises(AgentMissing) as refused:
        submit(agent="practise", args=[])
    assert "practice" in refused.value.hint
    assert fleet.jobs.list() == []


def test_s002_5_a_session_that_nobody_can_speak_to_gets_no_job(fleet, submit):
    fleet.sessions.create("cat", name="mine")
    with pytest.raises(Refused, match="cat"):
        submit(session="mine", args=[])
    assert fleet.sessions.get("mine").row["delegate_job_id"] is None


@pytest.mark.parametrize("agent", ["cat", "agy"])
def test_s002_45_a_session_with_a_job_is_refused_before_it_starts(fleet, agent):
    with pytest.raises(Refused, match=agent) as refused:
        fleet.sessions.create(agent, submit_job="do it")
    assert f"--exec --prompt TEXT -- {agent}" in refused.value.hint
    assert fleet.jobs.list() == []
    assert fleet.sessions.ls()["sessions"] == []


def test_s002_6_a_job_for_a_person_is_listed_as_one(fleet):
    assert fleet.jobs.submit("paint it", type="human")["agent"] == "human"
    with pytest.raises(Usage, match="person"):
        fleet.jobs.submit("paint it", type="human", agent="codex")
    with pytest.raises(Usage, match="person"):
        fleet.jobs.submit("paint it", type="once", agent="human")


@pytest.mark.promise("P43")
def test_the_token_stays_where_it_is(fleet, submit):
    contents: list[bytes] = []
    stop = threading.Event()

    earlier_pids = {entry.name for entry in Path("/proc").glob("[0-9]*")}

    def watch():
        while not stop.is_set():
            # Only processes that started since: reading all may be too slow to catch a short command.
            for entry in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ") if entry.name not in earlier_pids else ():
                    with suppress(OSError):
                        contents.append((entry / name).read_bytes())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        for _ in range(5):
            job = submit("create proof.txt", expect=["proof.txt"])["job_id"]
            fleet.jobs.wait([job], timeout=60)
            if is_seen := any(b"--event\0completed" in content for content in contents):
                break
    finally:
        stop.set()
        watching.join()
    token = token_of(fleet._access.context, job).encode()
    assert is_seen, "the command was seen"
    assert not any(token in content for content in contents)
    session = fleet.jobs.status(job)["agent_session"].removeprefix("tmux:")
    assert token.decode() not in fleet.sessions.read(session, scrollback=True)
    files = [path for path in Path(fleet.root).rglob("*") if path.is_file() and path.suffix != ".token"]
    assert Path(fleet.registry_file) in files
    assert [path for path in files if token in path.read_bytes()] == []


def test_a_taken_name_is_refused_with_who_watches_it(fleet, submit):
    fleet.sessions.create("human", name="mine")
    for options in (
        {"agent_session": "tmux:mine"},
        {"type": "loop", "reviewer": "practice", "reviewer_session": "tmux:mine"},
        {"agent": None, "args": [], "command": ["true"], "agent_session": "tmux:mine"},
    ):
        with pytest.raises(NameTaken, match="0 clients are attached") as refused:
            submit(**options)
        assert ("--session mine" in (refused.value.hint or "")) == (list(options) == ["agent_session"])
    with pytest.raises(NameTaken):
        fleet.sessions.create("practice", name="mine", submit_job="write it")
    assert fleet.jobs.list() == []
    assert fleet.sessions.get("mine").row["delegate_job_id"] is None


def test_a_program_that_ends_at_once_is_a_failed_start(fleet, submit):
    warnings = []
    fleet.on_warning(warnings.append)
    with pytest.raises(MamError):
        submit(args=["--no-such-option"])
    (job,) = fleet.jobs.list()
    assert warnings == [f"job {job['job_id']} has ended with an error: mam job logs {job['job_id']}"]
    assert (job["status"], job["reason"]) == ("error", "bootstrap")
    assert job["terminal_detail"].startswith("agent bootstrap failed (exit 2)")
    assert names(fleet, job["job_id"])[-1] == "error"


@pytest.mark.slow
def test_an_agent_that_dies_ends_its_job(fleet, submit, until):
    job = submit("please do not answer", args=["--speed", "1"])
    row = fleet.sessions.get(job["agent_session"].removeprefix("tmux:")).row
    os.kill(row["pane"]["pid"], 9)
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert (result["status"], result["reason"]) == ("error", "agent exited")
    assert result["terminal_detail"] == "the agent ended without a report (exit 137)"


def test_a_stop_ends_the_job_and_a_new_start_knows_nothing_of_it(fleet, submit):
    job = submit("please do not answer", args=["--speed", "1"])
    name = job["agent_session"].removeprefix("tmux:")
    fleet.sessions.stop(name, reason="enough")
    result = fleet.jobs.status(job["job_id"])
    assert (result["status"], result["terminal_event"], result["reason"]) == (
        "cancelled",
        "completed",
        "stopped",
    )
    assert details(fleet, job["job_id"], "progress")[-1] == "terminating"
    row = fleet.sessions.resume(name).session.row
    assert row["delegate_job_id"] == job["job_id"]
    environ = Path(f"/proc/{row['pane']['pid']}/environ").read_bytes()
    assert b"MAM_JOB_ID" not in environ
    assert fleet.sessions.create(name=fleet.sessions.stop(name).session.name).row["delegate_job_id"] is None


def test_a_session_that_runs_takes_a_job(fleet, submit):
    fleet.sessions.create("practice", name="mine", permissions="skip", args=FAST)
    job = submit(session="mine", args=[])
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert (result["status"], result["agent_session"]) == ("completed", "tmux:mine")
    assert fleet.sessions.get("mine").row["delegate_job_id"] == job["job_id"]
    again = submit("forget to report", session="mine", args=[])
    with pytest.raises(IllegalTransition, match=again["job_id"]):
        submit(session="mine", args=[])
    fleet.sessions.stop("mine")
    with pytest.raises(IllegalTransition, match="does not run"):
        submit(session="mine", args=[])
    assert [job["job_id"] for job in fleet.jobs.list()] == [job["job_id"], again["job_id"]]


def test_the_agent_of_a_job_is_started_by_the_settings_that_hold_for_its_caller(
    fleet, submit, monkeypatch, home
):
    """The environment of a client must not decide which settings apply."""
    settings_environ = {"HOME": str(home)}
    fleet._access.context = fleet._access.context.replace(settings_environ=settings_environ)
    calls = []

    def create(context, caller, *_arguments, **_options):
        calls.append((context.settings_environ, caller.pid, context.workspace))
        raise NotAllowed("enough")

    monkeypatch.setattr(begin_attempt, "create", create)
    fleet._access._caller = callers.user(1)
    (Path(fleet._access.context.workspace) / "below").mkdir()
    with pytest.raises(NotAllowed, match="enough"):
        submit(workdir="below")
    assert calls == [(settings_environ, 1, f"{fleet._access.context.workspace}/below")]


def test_a_session_that_may_not_be_written_to_is_given_no_job(fleet):
    session = fleet.sessions.create("practice", name="mine", args=FAST)
    fleet._access._caller = callers.session(session.id)
    with pytest.raises(NotAllowed, match="itself"):
        fleet.jobs.submit("x", session="mine")
    assert fleet.sessions.get("mine").row["delegate_job_id"] is None
    assert fleet.jobs.list() == []


@pytest.mark.slow
def test_who_forgets_to_report_is_nudged_once(fleet, submit):
    job = submit("forget to report")
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert result["status"] == "completed"
    assert "the agent ended its turn" in details(fleet, job["job_id"], "progress"), fleet.jobs.logs(
        job["job_id"]
    )
    sent = [
        message["message_id"]
        for message in fleet.messages.inbox(result["agent_session"].removeprefix("tmux:"))
    ]
    assert sent == [f"m_{job['job_id']}", f"m_{job['job_id']}-1-nudge"]


@pytest.mark.slow
def test_who_never_reports_is_shown_to_the_operator(fleet, submit, until):
    job = submit("never report", idle_timeout=8)
    name = job["agent_session"].removeprefix("tmux:")

    def attention():
        with suppress(TimedOut):
            fleet.jobs.wait([job["job_id"]], timeout=0.3)
        return fleet.sessions.status(name)["attention"]

    assert until(attention, 60) == "it was reminded of its job, and is idle without a report"
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert (result["status"], result["reason"]) == ("error", "timeout:idle")
    assert fleet.sessions.status(name)["attention"] is None
    assert len(fleet.messages.inbox(name)) == 2, "it was reminded once"


def test_a_permission_is_waited_for(fleet, submit, until_reported):
    job = submit(permissions="ask", idle_timeout=0)
    name = job["agent_session"].removeprefix("tmux:")
    # If the hook of the prompt came after the dialog was seen, the dialog would be reported twice.
    until_reported(fleet.sessions.get(name), "PermissionRequest")
    with pytest.raises(Exception, match="did not end"):
        fleet.jobs.wait([job["job_id"]], timeout=3)
    (asked,) = details(fleet, job["job_id"], "permission_required")
    assert asked.startswith("Bash:")
    assert fleet.sessions.status(name)["waiting_for"] == "permission"
    fleet.jobs.cancel(job["job_id"], stop=True)
    assert fleet.sessions.get(name).row["status"] == "stopped"
    assert fleet.jobs.status(job["job_id"])["reason"] == "cancelled"


def test_time_ends_a_job(fleet, submit):
    slow = submit("please do not answer", args=["--speed", "1"], timeout=1)
    (result,) = fleet.jobs.wait([slow["job_id"]], timeout=60)
    assert (result["status"], result["reason"]) == ("error", "timeout:wall")
    assert names(fleet, slow["job_id"])[-2:] == ["timeout", "error"]
    quiet = fleet.jobs.submit("wait", agent="human", idle_timeout=0.2)
    (result,) = fleet.jobs.wait([quiet["job_id"]], timeout=60)
    assert result["reason"] == "timeout:idle"


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_ends_no_job_and_keeps_none(fleet, monkeypatch, jump):
    job = fleet.jobs.submit("x", agent="human", timeout=600, idle_timeout=300)["job_id"]
    ahead, later = jump, 0.0
    fleet._access.context = fleet._access.context.replace(clock=lambda: time.time() + ahead + later)
    task = resident_task.JobTask(fleet._access.context, fleet.caller)
    boot_seconds = clock_jump.boot_seconds
    monkeypatch.setattr(clock_jump, "boot_seconds", lambda: boot_seconds() + later)
    for _ in range(2):
        task.tick()
        assert fleet.jobs.status(job)["status"] == "pending"
    later = 301.0
    task.tick()
    assert fleet.jobs.status(job)["reason"] == "timeout:idle"


def test_a_clock_that_was_set_while_no_job_was_open_moves_none(fleet, monkeypatch):
    earlier = fleet.jobs.submit("x", agent="human")["job_id"]
    resident_task.JobTask(fleet._access.context, fleet.caller).tick()
    fleet.jobs.cancel(earlier)
    fleet._access.context = fleet._access.context.replace(clock=lambda: time.time() + 86_400)
    job = fleet.jobs.submit("x", agent="human", timeout=600)["job_id"]
    resident_task.JobTask(fleet._access.context, fleet.caller).tick()
    assert "began" not in read(fleet, job).data


def test_a_job_for_a_person(fleet):
    job = fleet.jobs.submit("paint the fence", agent="human")
    instructions = fleet.jobs.instructions(job["job_id"])
    assert "paint the fence" in instructions
    assert fleet.sessions.list() == []
    fleet.jobs.event(job["job_id"], "completed", detail="painted")
    (result,) = fleet.jobs.wait([job["job_id"]])
    assert (result["status"], result["type"], result["idle_timeout_sec"]) == ("completed", "human", 0.0)


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "error")])
def test_a_script_decides(fleet, workspace, code, status):
    script = workspace / "check.sh"
    script.write_text(f'echo "$JOB_ID in $REGISTRY_DIR"; pwd; exit {code}\n', encoding="utf-8")
    job = fleet.jobs.submit("x", agent="human", validate="check.sh")["job_id"]
    assert fleet.jobs.event(job, "completed", detail="mine")["status"] == "checking"
    (result,) = fleet.jobs.wait([job], timeout=60)
    assert result["status"] == status
    assert result["validation"]["rc"] == code
    assert names(fleet, job)[-3:] == ["checking", "validated", "completed" if code == 0 else "error"]
    output = fleet.jobs.verify(job, "check.sh")
    assert (output["passed"], output["exit_code"]) == (code == 0, code)
    assert output["output"] == f"{job} in {fleet._access.context.paths.jobs}\n{workspace}"
    assert result["reason"] == (None if code == 0 else "validation")


def test_the_settings_say_how_long_a_script_may_take(fleet, workspace, home):
    with (home / ".config" / "mam" / "config.toml").open("a", encoding="utf-8") as file:
        file.write("validation_timeout = 0.2\n")
    (workspace / "slow.sh").write_text("sleep 5\n", encoding="utf-8")
    job = fleet.jobs.submit("x", agent="human", validate="slow.sh")["job_id"]
    output = fleet.jobs.verify(job, "slow.sh")
    assert (output["passed"], output["exit_code"]) == (False, 124)
    fleet.jobs.event(job, "completed")
    (result,) = fleet.jobs.wait([job], timeout=60)
    assert (result["reason"], result["validation"]["rc"]) == ("validation", 124)


def test_missing_artifacts_are_not_believed(fleet, workspace):
    (workspace / "there.txt").touch()
    job = fleet.jobs.submit("x", agent="human", expect=["there.txt", "not there.txt"])["job_id"]
    fleet.jobs.event(job, "completed")
    (result,) = fleet.jobs.wait([job], timeout=60)
    assert (result["status"], result["reason"]) == ("error", "artifacts")
    assert result["terminal_detail"] == "expected artifacts are missing: not there.txt"


def test_while_it_is_checked_it_has_not_ended(fleet, workspace, until):
    script = workspace / "slow.sh"
    script.write_text("until test -e go; do sleep 0.05; done\n", encoding="utf-8")
    job = fleet.jobs.submit("x", agent="human", validate="slow.sh")["job_id"]
    result = fleet.jobs.event(job, "completed", detail="mine")
    assert (result["status"], result["event"]["event"], result["event"]["data"]["checking"]) == (
        "checking",
        "progress",
        True,
    )
    with pytest.raises(Exception, match="reported completed already"):
        fleet.jobs.event(job, "error")
    (workspace / "go").touch()
    (ended,) = fleet.jobs.wait([job], timeout=60)
    assert (ended["status"], ended["terminal_detail"]) == ("completed", "mine")


@pytest.mark.slow
def test_a_loop_until_it_passes(fleet, submit):
    job = submit("write it; pass in round 2", type="loop", reviewer="practice")
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=90)
    assert (result["status"], result["round"], result["attempt"]) == ("completed", 2, 4)
    assert result["terminal_detail"].startswith("PASS")
    assert names(fleet, job["job_id"]).count("agent_launched") == 4
    assert {row.name for row in fleet.sessions.list()} == {
        f"demo-app-{job['job_id']}-creator-practice",
        f"demo-app-{job['job_id']}-review-creator-practice",
    }


def test_a_loop_gives_up(fleet, submit):
    job = submit("write it; pass in round 9", type="loop", reviewer="practice", max_rounds=1)
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert (result["status"], result["reason"]) == ("error", "rounds")


def test_who_may_cancel(fleet, submit):
    job = fleet.jobs.submit("x", agent="human")["job_id"]
    fleet._access._caller = callers.session("s_00000000")
    with pytest.raises(NotAllowed, match="submitted by somebody else"):
        fleet.jobs.cancel(job)
    with pytest.raises(NotAllowed, match="belongs to another session"):
        fleet.jobs.event(job, "completed")
    own = fleet.jobs.submit("x", agent="human")["job_id"]
    assert fleet.jobs.cancel(own)["changed"] is True
    fleet._access._caller = callers.user()
    assert fleet.jobs.cancel(job, reason="no need")["changed"] is True
    result = fleet.jobs.cancel(job)
    assert (result["changed"], result["job"]["status"]) == (False, "cancelled")
    assert names(fleet, job)[-2:] == ["cancelled", "error"]


@pytest.mark.parametrize("spoil", [lambda token: token.chmod(0o644), lambda token: token.unlink()])
def test_a_job_whose_token_is_spoiled_ends_in_time_or_is_cancelled(fleet, spoil):
    timed, cancelled = (fleet.jobs.submit("x", agent="human", idle_timeout=1)["job_id"] for _ in range(2))
    for job in (timed, cancelled):
        spoil(Path(fleet._access.context.paths.jobs, f"{job}.token"))
    assert fleet.jobs.cancel(cancelled)["job"]["status"] == "cancelled"
    (result,) = fleet.jobs.wait([timed], timeout=60)
    assert result["reason"] == "timeout:idle"


def test_a_job_that_cannot_be_seen_to_holds_up_no_other(fleet, monkeypatch):
    failing_job = fleet.jobs.submit("x", agent="human", idle_timeout=0.2)["job_id"]
    other_job = fleet.jobs.submit("y", agent="human", idle_timeout=0.2)["job_id"]
    finish = resident_task.finish

    def refuse(context, job_id, *arguments, **options):
        if job_id == failing_job:
            raise NotAllowed("not now")
        return finish(context, job_id, *arguments, **options)

    monkeypatch.setattr(resident_task, "finish", refuse)
    warnings = []
    fleet.on_warning(warnings.append)
    (result,) = fleet.jobs.wait([other_job], timeout=60)
    assert result["reason"] == "timeout:idle"
    assert [text for text in warnings if failing_job in text] == [warnings[0]]


def test_a_submission_that_was_killed_is_taken_over(fleet, workspace):
    code = (
        "import os, mam\n"
        "from mam.app.job_runner import submit\n"
        "submit.begin_attempt = lambda *_a, **_k: os.kill(os.getpid(), 9)\n"
        "mam.open('.').jobs.submit('write it', agent='practice', args=['--speed', '0'])\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=workspace, check=False, timeout=60)
    code = code.replace("submit.begin_attempt", "submit.resident_start_and_lock.ensure")
    subprocess.run([sys.executable, "-c", code], cwd=workspace, check=False, timeout=60)
    result = fleet.jobs.wait(timeout=60)
    assert sorted(job["status"] for job in result) == ["completed", "error"]
    assert {job["reason"] for job in result} == {None, "submission"}


def test_a_session_reports_only_on_its_own_job(fleet, submit, workspace):
    other_job = fleet.jobs.submit("x", agent="human")["job_id"]
    command = f"{sys.executable} -m mam job event --workspace {workspace} --job {other_job} --attempt 1"
    job = submit("run `" + f"{command} --event completed" + "`", permissions="skip")
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert result["status"] == "completed"
    assert fleet.jobs.status(other_job)["status"] == "pending"
    assert details(fleet, other_job, "dropped") == [f"job {other_job} belongs to another session"]


def test_a_report_gets_through_where_the_registry_file_is_broken(fleet, submit, until):
    job = submit("please do not answer; create proof.txt", args=["--speed", "40"])
    Path(fleet.registry_file).write_text("tmux_sessions: [\n", encoding="utf-8")
    warnings = []
    fleet.on_warning(warnings.append)
    (result,) = fleet.jobs.wait([job["job_id"]], timeout=60)
    assert (result["status"], result["terminal_detail"]) == ("completed", "done as asked")
    assert len(warnings) <= 1
    own = [
        entry
        for entry in fleet.jobs.logs(job["job_id"])["events"]
        if entry["data"].get("by") == result["session_id"]
    ]
    assert own[-1]["event"] == "completed"


def test_a_resident_sees_to_it(fleet, submit, home, until):
    (home / ".config" / "mam" / "config.toml").write_text("", encoding="utf-8")
    job = submit("forget to report")
    until(lambda: fleet.jobs.status(job["job_id"])["status"] == "completed", 60)
    assert fleet._access.context.registry.peek(
        lambda transaction: jobs.find(transaction, job["job_id"]).data["nudged_at"], None
    )


@pytest.mark.slow
def test_many_events_at_once(fleet, workspace):
    job = fleet.jobs.submit("x", agent="human")["job_id"]
    command = [sys.executable, "-m", "mam", "job", "event", "--job", job, "--event", "progress", "--detail"]
    running = [
        subprocess.Popen([*command, str(number)], cwd=workspace, stdout=subprocess.DEVNULL)
        for number in range(100)
    ]
    assert {process.wait(120) for process in running} == {0}
    entries = [entry for entry in fleet.jobs.logs(job)["events"] if entry["event"] == "progress"]
    assert sorted(entry["seq"] for entry in entries) == list(range(1, 101))
    assert {entry["detail"] for entry in entries} == {str(number) for number in range(100)}
    log = Path(fleet._access.context.paths.jobs, f"{job}.events.log").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["number"] for line in log] == sorted(json.loads(line)["number"] for line in log)
    assert len(log) == 101


def test_create_with_a_job(fleet):
    session = fleet.sessions.create(
        "practice", role="builder", permissions="skip", args=FAST, submit_job="write it"
    )
    job = session.row["delegate_job_id"]
    (result,) = fleet.jobs.wait([job], timeout=60)
    assert (result["status"], result["agent_session"]) == ("completed", f"tmux:{session.name}")
    person = fleet.sessions.create("human", name="me", submit_job="paint it")
    job = fleet.jobs.status(person.row["delegate_job_id"])
    assert (job["type"], job["status"], job["session_id"]) == ("human", "pending", person.id)
    assert "paint it" in person.read()
    fleet.sessions.stop("me")
    assert fleet.jobs.status(job["job_id"])["status"] == "cancelled"
    for options in ({"prompt": "x"}, {"wait": False}):
        with pytest.raises(Usage):
            fleet.sessions.create("practice", submit_job="y", **options)
    assert len(fleet.jobs.list()) == 2


def read(fleet, job):
    return fleet._access.context.registry.peek(lambda transaction: jobs.find(transaction, job), None)


def test_who_reported_and_left_is_not_failed_by_an_older_look(fleet, submit, workspace):
    """The job is read, then its agent reports and exits, and then its session is observed."""
    job = submit("never report it", expect=["there.txt"])["job_id"]
    before = read(fleet, job)
    fleet.jobs.event(job, "completed", detail="done")
    row = {
        **fleet._access.context.registry.view().find(before.session_id),
        "status": "exited",
        "exit_status": 0,
    }
    resident_task.advance_job(fleet._access.context, fleet.caller, before, {before.session_id: row})
    resident_task.advance_job(fleet._access.context, fleet.caller, before, {})
    resident_task._time_out(fleet._access.context, before, "timeout:idle")
    assert read(fleet, job).status == "checking"


def test_a_submission_that_was_handed_over_is_not_cut_off(fleet):
    """The job is read during its submission; the submitting process finishes and ends afterwards."""
    job = fleet.jobs.submit("x", agent="human")["job_id"]
    before = read(fleet, job)
    before.data["owner"] = {"pid": 2**22 - 1, "start": 1, "boot": "another"}
    resident_task.advance_job(fleet._access.context, fleet.caller, before, {})
    assert read(fleet, job).status == "pending"


def test_a_check_that_failed_is_begun_again(fleet, workspace, monkeypatch):
    """A check that an error interrupted runs again, also in the same process."""
    (workspace / "check.sh").write_text("exit 0\n", encoding="utf-8")
    job = fleet.jobs.submit("x", agent="human", validate="check.sh")["job_id"]
    fleet.jobs.event(job, "completed")

    def refuse(*_arguments, **_options):
        raise NotAllowed("not now")

    with monkeypatch.context() as patch, pytest.raises(NotAllowed, match="not now"):
        patch.setattr(check, "finish", refuse)
        check.check(fleet._access.context, fleet.caller, job)
    check.check(fleet._access.context, fleet.caller, job)
    assert fleet.jobs.status(job)["status"] == "completed"


def test_a_task_that_was_held_is_given_once_however_many_messages_follow(fleet, submit):
    job = submit("never report it")["job_id"]
    before = read(fleet, job)

    def forget_when(transaction):
        jobs.update(transaction, before, data={"prompted_at": None})

    fleet._access.context.registry.note(forget_when)
    sessions = {
        before.session_id: fleet._access.context.registry.view().find(before.session_id)
        | {"activity": "working"}
    }
    resident_task.advance_job(fleet._access.context, fleet.caller, read(fleet, job), sessions)
    assert read(fleet, job).data["prompted_at"] is not None


def test_a_job_is_shown_with_the_session_that_has_it(fleet):
    """The record shows the session's own agent, permissions and current name, not those of the options."""
    session = fleet.sessions.create("practice", name="mine", permissions="auto", args=FAST)
    job = fleet.jobs.submit("never report it", session=session.id)["job_id"]
    record = fleet.jobs.status(job)
    assert (record["agent"], record["permissions"], record["agent_session"]) == (
        "practice",
        "auto",
        "tmux:mine",
    )
    fleet.sessions.rename("mine", "yours")
    assert fleet.jobs.status(job)["agent_session"] == "tmux:yours"
    record = Path(fleet._access.context.paths.jobs, f"{job}.json")
    assert json.loads(record.read_text(encoding="utf-8"))["agent_session"] == "tmux:yours"


def _pid(path):
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    return int(text) if text else None


def test_a_script_ends_with_its_job_and_with_who_ran_it(fleet, workspace, until):
    """No two scripts of one job run at once, and none runs for a job that has ended."""
    (workspace / "slow.sh").write_text("echo $$ >pid.new; mv pid.new pid; sleep 60\n", encoding="utf-8")
    job = fleet.jobs.submit("x", agent="human", validate="slow.sh")["job_id"]
    fleet.jobs.event(job, "completed")
    code = (
        "import mam\nfrom mam.app.job_runner.check import check\nfleet = mam.open('.')\n"
        f"check(fleet._access.context, fleet.caller, '{job}')\n"
    )
    checker = subprocess.Popen([sys.executable, "-c", code], cwd=workspace)
    try:
        until(lambda: _pid(workspace / "pid") and read(fleet, job).data.get("script"))
    finally:
        checker.kill()
        checker.wait()
    first = process.identify(_pid(workspace / "pid"))
    thread = threading.Thread(
        target=check.check, args=(fleet._access.context.for_thread(), fleet.caller, job)
    )
    thread.start()
    until(lambda: _pid(workspace / "pid") != first.pid)
    until(lambda: not process.is_alive(first))
    second = process.identify(_pid(workspace / "pid"))
    fleet.jobs.cancel(job)
    until(lambda: not process.is_alive(second))
    thread.join(30)
    assert not thread.is_alive()
    assert names(fleet, job)[-2:] == ["cancelled", "error"]


def test_a_script_that_cannot_be_started(fleet, tmp_path, workspace):
    (workspace / "check.sh").write_text("exit 0\n", encoding="utf-8")
    (tmp_path / "gone").mkdir()
    job = fleet.jobs.submit("x", agent="human", validate="check.sh", workdir=str(tmp_path / "gone"))["job_id"]
    (tmp_path / "gone").rmdir()
    result = fleet.jobs.verify(job, "check.sh")
    assert (result["passed"], result["exit_code"], result["output"]) == (
        False,
        126,
        "No such file or directory",
    )


def test_a_held_task_that_fails_ends_its_job_with_the_reason(fleet, submit):
    job = submit("never report it")["job_id"]

    def work(transaction):
        jobs.update(transaction, jobs.find(transaction, job), data={"prompted_at": None})
        messages.update(transaction, f"m_{job}", state="failed", reason="nobody took it")

    fleet._access.context.registry.note(work)
    before = read(fleet, job)
    row = fleet._access.context.registry.view().find(before.session_id) | {"activity": "idle"}
    resident_task.advance_job(fleet._access.context, fleet.caller, before, {before.session_id: row})
    result = fleet.jobs.status(job)
    assert (result["reason"], result["terminal_detail"]) == (
        "undelivered",
        "the task could not be given: nobody took it",
    )


def test_an_option_that_nobody_knows_is_refused_before_anything_is_recorded(fleet):
    with pytest.raises(TypeError, match="agnet"):
        fleet.jobs.submit("x", agnet="practice")
    with pytest.raises(TypeError, match="agnet"):
        fleet.sessions.create("practice", agnet="practice")
    with pytest.raises(TypeError, match="agnet"):
        fleet.teams.spawn("dev", agnet="practice")
    assert fleet.jobs.list() == [] and fleet.sessions.list() == []


@pytest.mark.parametrize("options", [{"runner": "magic"}, {"place": "elsewhere"}])
def test_a_job_is_carried_out_by_an_agent_on_this_machine(fleet, options):
    with pytest.raises(Usage):
        fleet.jobs.submit("x", agent="practice", **options)
    assert fleet.jobs.list() == []
