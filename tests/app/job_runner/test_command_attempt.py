"""A job that a command carries out: how it starts, what it gets, and how its exit status ends the job."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from mam.adapters.store.files import exec_files
from mam.adapters.store.registry import Registry
from mam.adapters.store.tables import jobs
from mam.adapters.system import exec_runner, process
from mam.app.job_runner import command_attempt, resident_task, submit
from mam.app.sessions.death import record_if_dead
from mam.core import caller as callers
from mam.core.errors import (
    AgentMissing,
    EventRefused,
    IllegalTransition,
    InvalidPrompt,
    MamError,
    NotAllowed,
    Refused,
    Usage,
)

SECONDS = 90


@pytest.fixture
def run(fleet):
    """Submit a command as a job, and return the job after its end."""

    def run(*command, prompt="the prompt\n", **options):
        job = fleet.jobs.submit(prompt, command=list(command), timeout=60, **options)
        (ended,) = fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
        return ended

    return run


def events(fleet, job):
    return [entry["event"] for entry in fleet.jobs.logs(job["job_id"])["events"]]


def last(fleet, job):
    return fleet.jobs.logs(job["job_id"])["events"][-1]


def output(fleet, job):
    """Return the output; nothing before the command has started."""
    try:
        return fleet.jobs.output(job["job_id"])["output"].decode()
    except Refused:
        return ""


def record(fleet, job):
    """Return the record of the command's end, as far as there is one."""
    return exec_files.read_record(fleet.jobs.folder, job["job_id"], 1) or b""


def row_of(fleet, job):
    return fleet.sessions.get(job["agent_session"].removeprefix("tmux:")).row


def test_a_command_gets_the_prompt_on_stdin_and_its_exit_status_is_the_end(fleet, run, workspace):
    prompt = "tab\there, \x1b[31mcolour and $(touch harm)\nno line end"
    job = run("sh", "-c", "cat; pwd >&2; echo $MAM_JOB_ID", prompt=prompt)
    assert (job["status"], job["agent"], job["permissions"]) == ("completed", "exec", None)
    assert job["command"] == ["sh", "-c", "cat; pwd >&2; echo $MAM_JOB_ID"]
    assert events(fleet, job) == ["registered", "agent_launched", "started", "completed"]
    assert output(fleet, job) == f"{prompt}{workspace}\n{job['job_id']}\n"
    assert last(fleet, job)["data"]["exit_status"] == 0
    assert job["terminal_detail"] == f"exit 0: {job['job_id']}"
    row = row_of(fleet, job)
    assert (row["agent"], row["resumable"]) == ("exec", False)
    assert not list(workspace.glob("**/harm"))


def test_placeholders_carry_the_prompt_and_stdin_is_empty(fleet, run, workspace):
    script = 'printf "%s|" "$@"; cat "$1"; cat'
    job = run("sh", "-c", script, "sh", "{prompt_file}", "--x={prompt}", "{workdir}", '{"a": 1}', "{{word}}")
    path = exec_files.prompt_file(fleet.jobs.folder, job["job_id"], 1)
    assert output(fleet, job) == (f'{path}|--x=the prompt\n|{workspace}|{{"a": 1}}|{{word}}|the prompt\n')
    assert Path(path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("script", "facts", "detail"),
    [
        ("echo oh no; exit 3", {"exit_status": 3, "reason": "exit status"}, "exit 3: oh no"),
        ("kill -9 $$", {"signal": 9, "reason": "signal"}, "ended by signal 9 (SIGKILL)"),
    ],
)
def test_another_exit_status_is_an_error(fleet, run, hands_on, script, facts, detail):
    job = run("sh", "-c", script)
    assert (job["status"], job["terminal_detail"]) == ("error", detail)
    data = last(fleet, job)["data"]
    assert {key: data.get(key) for key in facts} == facts
    assert ("signal" in data) != ("exit_status" in data)
    fleet.monitor.once()
    row = row_of(fleet, job)
    assert row["exit_status"] == (facts.get("exit_status") or 128 + facts.get("signal", 0))
    assert (row["status"], row["resumable"]) == ("terminated", False)


@pytest.mark.parametrize(
    ("script", "end"),
    [("exit 0", "exit 0"), ("exit 3", "exit 3"), ("kill -9 $$", "ended by signal 9 (SIGKILL)")],
)
def test_a_command_that_ended_by_itself_did_not_die(fleet, run, until, script, end):
    job = run("sh", "-c", script)
    until(lambda: fleet.monitor.once() and row_of(fleet, job)["status"] == "terminated")
    row = row_of(fleet, job)
    mode = "graceful" if script == "exit 0" else "auto-detected"
    assert (row["termination_mode"], row["last_action"]["verb"]) == (mode, "ended")
    entries = [(entry["verb"], entry["reason"]) for entry in fleet.sessions.log(row["name"])]
    assert ("ended", end) in entries
    assert "died" not in dict(entries)


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        ([], {}, Usage),
        ([""], {}, Usage),
        (["echo", "{promt}"], {}, Usage),
        (["{prompt}"], {}, Usage),
        (["echo", "a\0b"], {}, Usage),
        (["echo", "\udcff"], {}, Usage),
        (["no-such-program"], {}, AgentMissing),
        (["./no-such-script"], {}, AgentMissing),
        (["echo", "{prompt}"], {"prompt": "x" * (100 * 1024 + 1)}, InvalidPrompt),
        (["echo", "{prompt}"], {"prompt": "--help"}, InvalidPrompt),
        (["echo"], {"agent": "claude"}, Usage),
        (["echo"], {"session": "mine"}, Usage),
        (["echo"], {"permissions": "skip"}, Usage),
        (["echo"], {"mcp": True}, Usage),
        (["echo"], {"trust": True}, Usage),
        (["echo"], {"args": ["x"]}, Usage),
        (["echo"], {"type": "human"}, Usage),
        (["echo"], {"type": "loop"}, Usage),
        (["echo"], {"type": "loop", "reviewer": "cat"}, Refused),
        (None, {"runner": "exec"}, Usage),
        (None, {"agent": "exec"}, Usage),
    ],
)
def test_bad_input_is_refused_before_anything_is_recorded(fleet, workspace, command, options, error):
    with pytest.raises(error) as refused:
        fleet.jobs.submit(options.pop("prompt", "x"), command=command, **options)
    assert refused.value.hint
    assert fleet.jobs.list() == []
    assert not (workspace / ".mam").exists()


def test_a_relative_program_is_one_of_the_jobs_directory(fleet, run, workspace):
    (workspace / "below").mkdir()
    script = workspace / "below" / "work.sh"
    script.write_text("#!/bin/sh\necho it works\n", encoding="utf-8")
    script.chmod(0o755)
    assert run("./work.sh", workdir="below")["status"] == "completed"
    assert run("{workdir}/work.sh", workdir="below")["terminal_detail"] == "exit 0: it works"


def test_a_dry_run_shows_the_command(fleet, workspace):
    preview = fleet.jobs.preview("do it", command=["cat", "{workdir}"])
    assert (preview["argv"][1:], preview["stdin"]) == ([str(workspace)], True)
    assert (preview["agent"], preview["instructions"]) == ("exec", "do it")
    assert list(workspace.iterdir()) == []


def test_a_session_needs_every_permission_to_run_a_command(fleet, run):
    session = fleet.sessions.create("practice", name="lead", args=["--speed", "0"])
    fleet._access._caller = callers.session(session.id)
    with pytest.raises(NotAllowed, match="skip"):
        fleet.jobs.submit("x", command=["true"])
    assert fleet.jobs.list() == []
    fleet._access._caller = callers.user()
    other = fleet.sessions.create("practice", name="free", permissions="skip", args=["--speed", "0"])
    fleet._access._caller = callers.session(other.id)
    assert run("true")["status"] == "completed"


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "error")])
def test_checks_follow_a_command_that_exits_with_0(fleet, run, workspace, code, status):
    (workspace / "check.sh").write_text(f"exit {code}\n", encoding="utf-8")
    job = run("touch", "proof.txt", expect=["proof.txt"], validate="check.sh")
    assert job["status"] == status
    assert events(fleet, job)[3:5] == ["checking", "validated"]
    assert run("true", expect=["nowhere.txt"])["reason"] == "artifacts"


def test_a_report_does_not_end_the_job_of_a_command(fleet, until):
    job = fleet.jobs.submit("x", command=["sleep", "60"])["job_id"]
    for name in ("completed", "error"):
        with pytest.raises(EventRefused, match="exit status"):
            fleet.jobs.event(job, name)
    assert fleet.jobs.event(job, "progress", detail="half")["status"] == "running"
    fleet.jobs.cancel(job)


TREE = (
    "trap '' INT HUP TERM; sh -c 'trap \"\" INT HUP TERM; sleep 1000' & echo $! >child; echo up; sleep 1000"
)


def tree_of(fleet, workspace, job, until):
    row = row_of(fleet, job)
    until(lambda: "up" in output(fleet, job))
    child = int((workspace / "child").read_text(encoding="utf-8"))
    identities = process.tree(process.identify(row["pane"]["pid"]))
    assert child in {identity.pid for identity in identities}
    return identities


def assert_gone(identities, until):
    until(lambda: not [identity for identity in identities if process.is_alive(identity)])


def test_a_cancel_ends_the_command_and_what_it_started(fleet, workspace, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", TREE])
    identities = tree_of(fleet, workspace, job, until)
    ended = fleet.jobs.cancel(job["job_id"])["job"]
    assert (ended["status"], ended["reason"]) == ("cancelled", "cancelled")
    assert_gone(identities, until)
    assert row_of(fleet, job)["status"] == "stopped"
    assert row_of(fleet, job)["resumable"] is False


@pytest.mark.slow
def test_a_timeout_ends_a_command_that_never_ends(fleet, workspace, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", TREE], timeout=2)
    identities = tree_of(fleet, workspace, job, until)
    (ended,) = fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
    assert (ended["status"], ended["reason"]) == ("error", "timeout:wall")
    assert_gone(identities, until)
    assert row_of(fleet, job)["status"] == "stopped"


def test_a_stop_cancels_the_job(fleet, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", "echo up; sleep 1000"])
    until(lambda: "up" in output(fleet, job))
    fleet.sessions.stop(job["agent_session"].removeprefix("tmux:"), reason="enough")
    ended = fleet.jobs.status(job["job_id"])
    assert (ended["status"], ended["reason"], ended["terminal_detail"]) == (
        "cancelled",
        "stopped",
        "enough",
    )


@pytest.mark.parametrize("dies", [False, True])
def test_a_stop_cancels_the_job_although_others_see_the_end_of_its_command_first(
    fleet, until, monkeypatch, dies
):
    job = fleet.jobs.submit("x", command=["sh", "-c", "echo up; sleep 1000"])
    until(lambda: "up" in output(fleet, job))
    context, row = fleet._access.context, row_of(fleet, job)

    def see_the_end(_registry):
        """Do what a resident does while the stop waits for the end of the agent."""
        until(lambda: not command_attempt.runs_on(row))
        recorded = context.registry.peek(lambda transaction: jobs.find(transaction, job["job_id"]), None)
        assert command_attempt.follow_command(context, recorded, row)
        if dies:
            raise KeyboardInterrupt

    monkeypatch.setattr(Registry, "warm_up", see_the_end)
    if dies:
        with pytest.raises(KeyboardInterrupt):
            fleet.sessions.stop(row["name"], reason="enough")
        assert record_if_dead(context, fleet.caller, row)["status"] == "running"
        fleet.init()
    else:
        fleet.sessions.stop(row["name"], reason="enough")
    ended = fleet.jobs.status(job["job_id"])
    assert (ended["status"], ended["terminal_detail"]) == ("cancelled", "enough")
    assert events(fleet, job)[-2:] == ["progress", "completed"]


def test_a_command_that_ended_before_the_stop_ended_by_itself(fleet, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", "exit 3"])
    name = job["agent_session"].removeprefix("tmux:")
    until(lambda: fleet.sessions.status(name)["activity"] == "exited")
    fleet.sessions.stop(name)
    ended = fleet.jobs.status(job["job_id"])
    assert (ended["status"], ended["terminal_detail"]) == ("error", "exit 3")


@pytest.mark.slow
def test_output_keeps_a_command_from_being_idle(fleet, run):
    talking = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done"
    assert run("sh", "-c", talking, idle_timeout=3)["status"] == "completed"
    silent = run("sh", "-c", "echo up; sleep 1000", idle_timeout=1)
    assert (silent["status"], silent["reason"]) == ("error", "timeout:idle")
    assert fleet.jobs.submit("x", command=["true"])["idle_timeout_sec"] == 0


def test_a_runner_that_is_killed_ends_the_job_with_the_reason_and_leaves_nothing(fleet, workspace, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", TREE])
    identities = tree_of(fleet, workspace, job, until)
    os.kill(row_of(fleet, job)["pane"]["pid"], signal.SIGKILL)
    (ended,) = fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
    assert (ended["status"], ended["reason"]) == ("error", "runner gone")
    assert "nobody knows how the command ended" in ended["terminal_detail"]
    assert_gone(identities, until)
    until(lambda: fleet.monitor.once() and row_of(fleet, job)["status"] == "terminated")
    assert row_of(fleet, job)["termination_mode"] == "auto-detected"


def test_the_end_is_recorded_once_whoever_finds_it(fleet, until):
    job = fleet.jobs.submit("x", command=["true"])
    row = row_of(fleet, job)
    context = fleet._access.context
    until(lambda: b"exit_status" in record(fleet, job))
    recorded = context.registry.peek(lambda transaction: jobs.find(transaction, job["job_id"]), None)
    for found in (row, {**row, "status": "terminated"}, None):
        command_attempt.follow_command(context, recorded, found)
    fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
    fleet.monitor.once()
    assert events(fleet, job) == ["registered", "agent_launched", "started", "completed"]


def test_a_session_that_was_forgotten_leaves_no_open_job(fleet, until):
    job = fleet.jobs.submit("x", command=["true"])
    context = fleet._access.context
    recorded = context.registry.peek(lambda transaction: jobs.find(transaction, job["job_id"]), None)
    until(lambda: b"exit_status" in record(fleet, job))
    Path(exec_files.record_file(fleet.jobs.folder, job["job_id"], 1)).unlink()
    command_attempt.follow_command(context, recorded, None)
    assert fleet.jobs.status(job["job_id"])["reason"] == "runner gone"


@pytest.mark.parametrize("script", ["exit 0", "sleep 1000"])
def test_a_submission_that_died_after_the_start_is_taken_over(fleet, monkeypatch, script, until):
    def die(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(submit, "begin_attempt", die)
    monkeypatch.setattr(
        process,
        "is_alive",
        lambda identity, alive=process.is_alive: alive(identity) and identity != process.me(),
    )
    with pytest.raises(KeyboardInterrupt):
        fleet.jobs.submit("x", command=["sh", "-c", script])
    (job,) = fleet.jobs.list()
    task = resident_task.JobTask(fleet._access.context, fleet.caller)

    def status():
        fleet.monitor.once()
        task.tick()
        return fleet.jobs.status(job["job_id"])["status"]

    until(lambda: status() == ("completed" if script == "exit 0" else "running"))
    if script != "exit 0":
        fleet.jobs.cancel(job["job_id"])


def test_a_prompt_file_that_vanished_is_the_end(fleet, run, monkeypatch):
    write_prompt = exec_files.write_prompt

    def vanish(*arguments):
        path = write_prompt(*arguments)
        Path(path).unlink()
        return path

    monkeypatch.setattr(exec_files, "write_prompt", vanish)
    job = run("cat")
    assert (job["status"], job["reason"]) == ("error", "prompt")
    assert "prompt-1.txt cannot be read: No such file or directory" in job["terminal_detail"]


def test_a_program_that_vanished_is_the_end(fleet, run, workspace, monkeypatch):
    program = workspace / "work.sh"
    program.write_text("#!/no/such/shell\n", encoding="utf-8")
    program.chmod(0o755)
    job = run("./work.sh")
    assert (job["status"], job["reason"]) == ("error", "exec")
    assert job["terminal_detail"].endswith("work.sh cannot be run: No such file or directory")


@pytest.mark.slow
def test_in_a_loop_the_command_runs_anew_each_round(fleet):
    job = fleet.jobs.submit(
        "say the word; pass in round 2",
        command=["sh", "-c", "cat >>said; echo round"],
        type="loop",
        reviewer="practice",
        max_rounds=2,
        timeout=120,
    )
    (ended,) = fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
    said = Path(ended["workdir"], "said").read_text(encoding="utf-8")
    launched = [
        entry["data"]["agent"]
        for entry in fleet.jobs.logs(job["job_id"])["events"]
        if entry["event"] == "agent_launched"
    ]
    assert launched == ["exec", "practice", "exec", "practice"]
    assert (ended["status"], ended["attempt"]) == ("completed", 4)
    assert said.startswith("say the word")
    assert "did not pass" in said and "report again" not in said
    assert fleet.jobs.output(job["job_id"])["attempt"] == 3
    assert fleet.jobs.output(job["job_id"], attempt=1)["output"] == b"round\n"


def test_a_session_of_a_command_starts_only_with_its_job(fleet, run):
    with pytest.raises(Usage, match="no agent"):
        fleet.sessions.create("exec")
    name = run("true")["agent_session"].removeprefix("tmux:")
    fleet.monitor.once()
    for verb in (fleet.sessions.resume, fleet.sessions.restart):
        with pytest.raises(IllegalTransition, match="cannot be resumed"):
            verb(name)
    with pytest.raises(MamError):
        fleet.sessions.create(name=name)
    assert fleet.sessions.resumable(stopped=True) == []
    assert "program exec" not in {finding["check"] for finding in fleet.monitor.doctor()}


def test_a_job_without_a_command_has_no_output(fleet):
    job = fleet.jobs.submit("paint it", type="human")["job_id"]
    with pytest.raises(Refused, match="no output"):
        fleet.jobs.output(job)
    assert json.dumps(fleet.jobs.status(job)["command"]) == "null"


def test_a_command_is_watched_in_its_pane(fleet, until):
    script = "import sys; print('to the pane', flush=True); open('/dev/tty').readline(); print('heard')"
    job = fleet.jobs.submit("x", command=[sys.executable, "-c", script])
    name = job["agent_session"].removeprefix("tmux:")
    until(lambda: "to the pane" in fleet.sessions.read(name))
    status = fleet.sessions.status(name)
    assert (status["agent"], status["activity"]) == ("exec", "working")
    row = row_of(fleet, job)
    fleet._access.context.tmux(row["tmux_server"]).keys(row["pane"]["id"], ["Enter"], mark=row["id"])
    (ended,) = fleet.jobs.wait([job["job_id"]], timeout=SECONDS)
    assert ended["terminal_detail"] == "exit 0: heard"
    assert "heard" in fleet.sessions.read(name)


def test_a_command_that_ended_by_itself_is_not_stopped_while_its_runner_ends(fleet, workspace, until):
    job = fleet.jobs.submit("x", command=["sh", "-c", "until [ -e go ]; do sleep 0.1; done"])
    context, row = fleet._access.context, row_of(fleet, job)
    pid = row["pane"]["pid"]
    until(lambda: b"{}" in record(fleet, job))
    # The runner has recorded the end and still lives, as it does while the pane takes the last output.
    os.kill(pid, signal.SIGSTOP)
    try:
        path = exec_files.record_file(fleet.jobs.folder, job["job_id"], 1)
        exec_runner.record(path, -1, {"exit_status": 0})
        task = resident_task.JobTask(context, fleet.caller)
        task.tick()
        assert fleet.jobs.status(job["job_id"])["status"] == "completed"
        task.tick()
        task.join()
        assert row_of(fleet, job)["status"] == "running"
    finally:
        (workspace / "go").touch()
        os.kill(pid, signal.SIGCONT)
    until(lambda: fleet.monitor.once() and row_of(fleet, job)["status"] == "terminated")


def test_a_stop_that_fails_is_told_with_the_name_of_the_session_once(fleet, monkeypatch):
    job = fleet.jobs.submit("x", command=["sleep", "1000"])
    row = row_of(fleet, job)

    def fail(*_arguments, **_options):
        raise Refused("the pane is in use", hint="wait")

    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    with monkeypatch.context() as patch:
        patch.setattr(resident_task, "stop", fail)
        patch.setattr(resident_task.jobs, "unended_ids", lambda transaction: set())
        task = resident_task.JobTask(fleet._access.context, fleet.caller)
        for _ in range(2):
            task._stop_commands()
            task.join()
        assert [warning for warning in warnings if row["id"] in warning or "advance job" in warning] == []
        assert len([warning for warning in warnings if f"cannot stop '{row['name']}'" in warning]) == 1
        patch.setattr(resident_task, "runs_on", lambda row: False)
        task._stop_commands()
        assert task._stops == {}
    fleet.jobs.cancel(job["job_id"])


def test_a_command_needs_no_prompt(fleet, run):
    job = run("sh", "-c", "cat; echo done", prompt=None)
    assert (job["status"], job["prompt"], output(fleet, job)) == ("completed", "", "done\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": ["echo", "{prompt}"]}, "{prompt} or {prompt_file}"),
        ({"command": ["cat", "{prompt_file}"]}, "{prompt} or {prompt_file}"),
        ({"command": ["true"], "type": "loop", "reviewer": "practice"}, "reviewer"),
        ({"agent": "practice"}, "what the agent should do"),
    ],
)
def test_who_needs_the_prompt_is_refused_without_one(fleet, options, words):
    with pytest.raises(Usage) as refused:
        fleet.jobs.submit(None, **options)
    assert words in refused.value.message
    assert "--prompt" in (refused.value.hint or "")
    assert fleet.jobs.list() == []
