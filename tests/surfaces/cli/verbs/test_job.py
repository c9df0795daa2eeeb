"""mam job: what its subcommands print, and their exit codes."""

import io
import json
import subprocess
import sys
from subprocess import PIPE
from types import SimpleNamespace

import pytest
from tests.processes import busy_loops
from tests.surfaces.cli.test_startup import DEAR, HEAVY, beside_a_resident, modules_after

import mam
from mam.app.jobs.find import token_of
from mam.app.jobs.new_job import new_id, record_job
from mam.core import job_event as events
from mam.surfaces.cli import parser
from mam.surfaces.cli.style import Paint
from mam.surfaces.cli.verbs import job as verb
from mam.surfaces.cli.verbs.job import render_jobs


@pytest.fixture
def job(run):
    return run("job", "submit", "--agent", "human", "--prompt", "paint it", "--detach", "--json").json["job"]


@pytest.mark.parametrize("data", ["because", ["because"], 5, True, None, {"reason": ["x"]}])
def test_a_line_of_a_foreign_log_is_shown_whatever_its_data_is(data):
    assert "progress" in render_jobs.line({"event": "progress", "data": data}, Paint(io.StringIO()))


def test_from_submission_to_the_last_line(run, workspace):
    answer = run(
        *("job", "submit", "--agent", "practice", "--prompt", "create proof.txt", "--expect", "proof.txt"),
        *("--", "--speed", "0"),
    )
    lines = answer.out.splitlines()
    assert answer.code == 0, answer
    assert "permissions skip" in lines[0]
    assert [line.split()[3] for line in lines[1:-2]][:2] == ["registered", "agent_launched"]
    job = lines[1].split()[1].removeprefix("job=")
    assert lines[-2] == f"{job} completed: done as asked"
    assert lines[-1] == f"{workspace}/delegate_job_logs/{job}"
    status = run("job", "status", job).out.splitlines()
    assert status[0] == lines[-2]
    assert [line.split() for line in status if "artifacts" in line] == [["expected_artifacts", "proof.txt"]]
    assert [line.split()[1] for line in status if "timeout_sec" in line] == ["3600", "120"]
    assert run("job", "list").out.splitlines()[1].split()[:3] == [job, "completed", "practice"]
    screen = run("ls", "--json").json["sessions"][0]
    assert (screen["job"], screen["job_status"]) == (job, "completed")


def test_a_session_that_runs_keeps_its_permissions(run):
    assert run("create", "--agent", "practice", "--session", "api", "--", "--speed", "0").code == 0
    answer = run("job", "submit", "--session", "api", "--prompt", "describe it", "--detach")
    assert answer.out.splitlines()[0].endswith(": practice in tmux:api, which runs with permissions default")


def test_who_stops_following_is_told_that_the_job_goes_on(run, terminal):
    screen = terminal("job", "submit", "--agent", "practice", "--prompt", "/hang", "--", "--speed", "0")
    job = screen.sees("agent_launched").partition("job=")[2][:8]
    screen.type("\x03")
    assert screen.leave() == 130
    assert (
        f"interrupted while following job {job}; the job continues: mam job wait {job}, or cancel"
        in screen.text()
    )
    assert run("job", "cancel", job, "--stop").code == 0


def test_one_object_a_line(run):
    answer = run(
        *("job", "submit", "--agent", "practice", "--prompt", "please fail", "--json", "--", "--speed", "0")
    )
    objects = [json.loads(line) for line in answer.out.splitlines()]
    assert answer.code == 1
    assert objects[0]["event"] == "registered"
    assert objects[-2]["event"] == "error"
    last = objects[-1]["job"]
    assert (last["status"], last["terminal_detail"]) == ("error", "practice error")


def test_a_person_is_told_what_to_do(run, workspace):
    answer = run("job", "submit", "--agent", "human", "--prompt", "paint\nit \x1b[2J", "--detach")
    assert "\x1b" not in answer.out
    assert "paint\nit" in answer.out
    job = answer.out.split()[1]
    assert f"job event --workspace {workspace} --job {job} --attempt 1 --event completed" in answer.out
    assert answer.out.splitlines()[-1].endswith(f"/delegate_job_logs/{job}")


def test_a_detached_job_says_how_to_follow_it(run):
    arguments = ("job", "submit", "--agent", "human", "--prompt", "paint it", "--detach")
    answer = run(*arguments)
    job = answer.out.split()[1]
    assert answer.err == f"mam: mam job wait {job} follows it\n"
    assert answer.out.splitlines()[-1].endswith(f"/delegate_job_logs/{job}")
    assert run(*arguments, "--json").err == ""


@pytest.fixture
def noted():
    """A call that notes what a person is told, with two sessions of one job, of which one waits."""
    notes: list[str] = []
    asker = {"name": "asker", "delegate_job_id": "1", "status": "running"}
    others = [{**asker, "name": "done", "status": "stopped"}, {**asker, "name": "b", "delegate_job_id": "2"}]
    worker = {**asker, "name": "worker"}
    listing = {True: [asker, *others], False: [asker, worker, *others]}
    sessions = SimpleNamespace(ls=lambda waiting: {"sessions": listing[waiting]})
    return SimpleNamespace(
        notes=notes,
        show_note=notes.append,
        clear_progress=lambda: None,
        fleet=SimpleNamespace(sessions=sessions),
        paint=lambda: Paint(io.StringIO()),
        as_json=False,
    )


def test_a_job_that_waits_for_an_answer_says_once_how_to_give_it(noted, capsys):
    follower = render_jobs.Follower(noted)
    for event in ("started", "permission_required", "permission_required"):
        follower.print_event({"job_id": "1", "event": event, "detail": "Bash: ls"})
    assert capsys.readouterr().out.count("Bash: ls") == 3
    assert noted.notes == ["mam answer asker shows what it asks; mam answer asker allow|deny"]
    noted.as_json = True
    render_jobs.Follower(noted).print_event({"job_id": "1", "event": "permission_required"})
    assert len(noted.notes) == 1


def test_after_a_timeout_the_sessions_that_run_on_are_named(noted):
    job = {"job_id": "1", "status": "error", "reason": "timeout:wall", "command": None}
    assert render_jobs.print_ends(noted, [job]) == 1
    assert noted.notes == [
        f"session {name} still runs: mam attach {name}, or mam stop {name}" for name in ("asker", "worker")
    ]
    render_jobs.print_ends(noted, [{**job, "command": ["true"]}, {**job, "reason": "bootstrap"}])
    assert len(noted.notes) == 2


def test_s002_6_a_job_for_a_person_is_listed_as_one(run):
    answer = run("job", "submit", "--type", "human", "--prompt", "paint it", "--detach", "--json")
    assert answer.json["job"]["agent"] == "human"


def test_s002_44_a_session_that_gets_a_job_names_it(run):
    arguments = ("create", "--agent", "practice", "--session", "api", "--submit-job", "describe it")
    answer = run(*arguments, "--", "--speed", "0")
    (job,) = run("job", "list", "--ids").out.split()
    assert answer.out.splitlines()[-1] == f"job {job}: mam job wait {job} follows it"
    document = run("create", "--agent", "human", "--submit-job", "paint it", "--json").json
    assert document["job_id"] == document["session"]["delegate_job_id"] != job
    assert run("create", "--agent", "human", "--json").json["job_id"] is None


def test_a_dry_run(run, workspace):
    answer = run("job", "submit", "--prompt", "do $(it)", "--dry-run")
    assert answer.code == 0
    assert answer.out.endswith("Task:\ndo $(it)\n")
    assert list(workspace.iterdir()) == []


def test_a_command_as_a_job(run, workspace):
    script = "cat; printf 'colour \\033[31m\\n'; exit 3"
    answer = run("job", "submit", "--exec", "--prompt", "say it ", "--", "sh", "-c", script)
    lines = answer.out.splitlines()
    assert answer.code == 1, answer
    job = lines[1].split()[1].removeprefix("job=")
    assert lines[0] == f"job {job}: sh in tmux:demo-app-{job}-creator-exec"
    assert lines[-2] == f"{job} error: exit 3: say it colour [31m"
    assert lines[-1] == f"{workspace}/delegate_job_logs/{job}"
    assert run("job", "logs", job, "--output").out == "say it colour [31m\n"
    document = run("job", "logs", job, "--output", "--json").json
    assert (document["output"], document["attempt"]) == ("say it colour \x1b[31m\n", 1)
    assert document["file"] == f"{lines[-1]}/output.log"
    status = run("job", "status", job).out
    assert "exec" in status and "sh, -c" in status


def test_a_dry_run_of_a_command(run, workspace):
    answer = run(
        "job", "submit", "--exec", "--prompt", "do it", "--dry-run", "--", "sh", "-c", "echo {workdir}"
    )
    assert answer.out.splitlines()[0].endswith(f"/sh -c 'echo {workspace}'")
    assert answer.out.splitlines()[2:] == ["its stdin would be:", "do it"]
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--exec", "--", "echo", "{promt}"), 64, "there is no placeholder {promt}"),
        (("--exec",), 64, "--exec needs a program"),
        (("--exec", "--", "no-such-program"), 2, "'no-such-program' of the command does not exist"),
        (("--exec", "--agent", "claude", "--", "echo"), 64, "does not go with --agent"),
        (("--exec", "--session", "x", "--", "echo"), 64, "does not go with --session"),
        (("--exec", "--permissions", "ask", "--", "echo"), 64, "does not go with --permissions"),
        (("--exec", "--mcp", "--", "echo"), 64, "does not go with --mcp"),
        (("--agent", "agy"), 1, "mam job submit --exec --prompt TEXT -- agy"),
    ],
)
def test_a_command_that_is_refused(run, workspace, arguments, code, words):
    answer = run("job", "submit", "--prompt", "x", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err
    assert len(answer.err.splitlines()) == 2
    assert list(workspace.iterdir()) == []


def test_a_command_is_submitted_without_a_prompt(run, workspace):
    answer = run("job", "submit", "--exec", "--dry-run", "--", "sh", "-c", "true")
    assert (answer.code, answer.out.splitlines()[2:]) == (0, ["its stdin would be empty"])
    answer = run("job", "submit", "--exec", "--prompt", "", "--", "true")
    assert (answer.code, "the prompt is empty" in answer.err) == (64, True)
    answer = run("job", "submit", "--exec", "--prompt", "x", "--prompt-file", "y", "--", "true")
    assert (answer.code, "--prompt and --prompt-file" in answer.err) == (64, True)
    assert list(workspace.iterdir()) == []


def test_a_job_without_a_command_has_no_output(run, job):
    answer = run("job", "logs", job["job_id"], "--output")
    assert (answer.code, answer.out) == (1, "")
    assert "has no output: it was not submitted with --exec" in answer.err


def test_events_and_the_end(run, job):
    name = job["job_id"]
    assert run("job", "event", "--job", name, "--event", "started").out == (
        f"{name}: started recorded, the job is running\n"
    )
    document = run("job", "event", name, "--event", "progress", "--data", '{"n": 1}', "--json").json
    assert (document["status"], document["event"]["data"]["n"]) == ("running", 1)
    assert run("job", "wait", name, "--timeout", "0.05").code == 2
    assert run("job", "event", name, "--event", "error", "--detail", "no").code == 0
    assert run("job", "wait", name).code == 1
    none = run("job", "wait")
    assert (none.code, none.out) == (0, "no job is open\n")
    refused = run("job", "event", name, "--event", "completed", "--json")
    assert (refused.code, refused.error["code"]) == (1, "event_refused")
    assert "dropped" in run("job", "logs", name).out
    assert name in run("job", "logs", "--list").out


def test_inside_an_agent_its_own_job_is_meant(run, job, monkeypatch):
    monkeypatch.setenv("MAM_JOB_ID", job["job_id"])
    assert run("job", "event", "--event", "completed").code == 0
    assert run("job", "status", "--json").json["job"]["status"] == "completed"


def test_an_event_that_was_signed_elsewhere(run, job, workspace, monkeypatch):
    import mam

    with mam.open(str(workspace)) as fleet:
        token = token_of(fleet._access.context, job["job_id"])
    event = events.make(
        job["job_id"], "completed", seq=1, attempt=1, timestamp="2026-11-15T08:00:00Z", detail="d"
    )
    for text, code, word in (
        (events.write(events.sign(event, "f" * 64)), 1, "refused: "),
        ("{", 1, "refused"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
        answer = run("job", "event", job["job_id"], "--signed", "-")
        assert (answer.code, answer.out.startswith(word)) == (code, True)
    (workspace / "event.json").write_text(events.write(events.sign(event, token)), encoding="utf-8")
    for word in ("applied", "duplicate"):
        answer = run("job", "event", job["job_id"], "--signed", "event.json")
        assert (answer.code, answer.out) == (0, f"{word}\n")
    assert run("job", "status", job["job_id"], "--json").json["job"]["status"] == "completed"


def test_verify_exits_as_the_script_does(run, job, workspace):
    (workspace / "check.sh").write_text('echo "of $JOB_ID"; exit $1\n', encoding="utf-8")
    answer = run("job", "verify", job["job_id"], "--validate", "check.sh")
    assert (answer.code, answer.out) == (0, f"of {job['job_id']}\nvalidation: PASS\n")
    (workspace / "check.sh").write_text("exit 7\n", encoding="utf-8")
    answer = run("job", "verify", "--job", job["job_id"], "--validate", "check.sh")
    assert (answer.code, answer.out) == (7, "validation: FAIL (exit 7)\n")
    assert (
        run("job", "verify", job["job_id"], "--validate", "none.sh", "--json").error["code"] == "invalid_path"
    )


def test_cancel(run, job):
    answer = run("job", "cancel", job["job_id"], "--reason", "no need")
    assert (answer.code, answer.out) == (0, f"{job['job_id']} cancelled: no need\n")
    assert run("job", "cancel", job["job_id"]).out.endswith("the job had already ended\n")
    assert run("job", "wait", job["job_id"]).code == 1


def test_the_folder_of_records(run, workspace, tmp_path, monkeypatch):
    folder = tmp_path / "records"
    arguments = ("job", "submit", "--agent", "human", "--prompt", "x", "--detach", "--json")
    name = run(*arguments, "--registry-dir", "../../records").json["job"]["job_id"]
    assert (folder / f"{name}.json").exists()
    assert [
        job["job_id"] for job in run("job", "list", "--registry-dir", str(folder), "--json").json["jobs"]
    ] == [name]
    own = run(*arguments).json["job"]["job_id"]
    monkeypatch.chdir(tmp_path)
    folder = str(workspace / ".mam" / "jobs")
    assert run("job", "status", own, "--registry-dir", folder, "--json").json["job"]["job_id"] == own
    assert run("job", "event", own, "--event", "completed", "--registry-dir", folder).code == 0
    assert run("job", "status", own, "--json").error["code"] == "job_not_found"


def test_wrong_words(run, job):
    for arguments in (
        ("submit",),
        ("submit", "--prompt", "x", "--prompt-file", "y"),
        ("event",),
        ("event", "--event", "x"),
        ("status", "a", "--job", "b"),
        ("wait", "--", "x"),
        ("verify", job["job_id"]),
        ("event", "--event", "progress", "--data", "[]"),
        ("submit", "--prompt", "x", "--type", "loop"),
    ):
        refused = run("job", *arguments, "--json") if "--" not in arguments else run("job", *arguments)
        assert refused.code == 64, arguments
    assert run("job", "status", "x", "--json").error["code"] == "job_not_found"


@pytest.mark.parametrize(
    "line",
    [
        "event --event started",
        "event --job 1f00ab42 --attempt 2 --event progress --detail text --json",
        "event --workspace /x --job 1f00ab42 --event error --registry /y",
    ],
)
def test_a_quick_event_means_what_the_parser_says(line):
    slow = vars(parser.parse(parser.build("job", verb), line.split()))
    document = verb.parse_fast([], line.split())
    assert {**slow, "rest": []} == vars(document)


@pytest.mark.parametrize(
    "line",
    [
        "event --event dance",
        "event --detail",
        "event --detail -x",
        "event --event=started",
        "status x",
        "event --attempt 0",
        "event x --event started",
        "wait event",
        "event --signed x",
        "event -h",
    ],
)
def test_another_line_goes_to_the_parser(line):
    assert verb.parse_fast([], line.split()) is None


def test_an_event_imports_nothing_heavy(run, job, workspace):
    arguments = ("job", "event", "--job", job["job_id"], "--event", "progress", "--detail", "x")
    with beside_a_resident(workspace):
        loaded = modules_after(workspace, *arguments)
    assert "mam.app.jobs.event" in loaded
    assert not {name for name in loaded if name.split(".")[0] in HEAVY}
    assert not loaded & DEAR


def test_s002_4_the_agent_of_a_job_is_claude_code_by_default(run) -> None:
    for arguments in ((), ("--agent", "claude-code"), ("--agent", "claude")):
        preview = run("job", "submit", "--prompt", "x", "--dry-run", "--json", *arguments).json
        assert preview["agent"] == "claude", arguments
    assert (
        run("job", "submit", "--prompt", "x", "--dry-run", "--agent", "codex", "--json").json["agent"]
        == "codex"
    )


def test_s002_16_an_option_that_was_removed_is_refused(run, workspace) -> None:
    answer = run("job", "submit", "--prompt", "x", "--mode", "print")
    assert (answer.code, answer.out) == (64, "")
    assert "--mode" in answer.err
    assert run("job", "dance").code == 64
    assert list(workspace.iterdir()) == []


def test_d5_settings_that_a_repository_makes_for_the_user_are_ignored_with_one_warning(
    run, workspace
) -> None:
    (workspace / "mam.toml").write_text(
        'job_permissions = "auto"\nnotify_command = ["touch", "ran"]\nready_timeout = 5\n', encoding="utf-8"
    )
    (workspace / ".env").write_text("MAM_BROKER=mqtt://evil.test\n", encoding="utf-8")
    answer = run("job", "submit", "--agent", "practice", "--prompt", "x", "--dry-run", "--json")
    settings, env_file = json.loads(answer.out)["warnings"]
    assert answer.err.count("ignores") == 2
    assert "ignores job_permissions, notify_command in it" in settings
    assert "ignores MAM_BROKER in it" in env_file
    (workspace / "mam.toml").write_text("unknown = 1\n", encoding="utf-8")
    refused = run("job", "submit", "--agent", "practice", "--prompt", "x", "--dry-run", "--json")
    assert refused.error["code"] == "invalid_settings"


# Busy loops make the machine busy, and nothing else needs that.
@pytest.mark.parametrize("loops", [0, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.promise("P34")
@pytest.mark.slow
@pytest.mark.starts
def test_e9_a_hundred_reports_at_once_are_all_recorded_once(home, workspace, loops):
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        job = record_job(fleet._access.context, fleet.caller, new_id(), "do it").id
        command = [sys.executable, "-m", "mam", "job", "event", job, "--event", "progress"]
        with busy_loops(loops):
            started = [
                subprocess.Popen([*command, "--detail", f"report {number}"], cwd=workspace, stderr=PIPE)
                for number in range(100)
            ]
            errors = [process.communicate()[1] for process in started]
        assert [process.returncode for process in started] == [0] * 100, set(errors)
        reports = fleet.jobs.logs(job)["events"][1:]
        assert [entry["seq"] for entry in reports] == list(range(1, 101))
        assert {entry["detail"] for entry in reports} == {f"report {number}" for number in range(100)}
