"""Calls from inside a session, below its process and detached from it, with and without its variables."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import mam
from mam.adapters.store.launch_secret import VARIABLE
from mam.adapters.system import process
from mam.core.errors import NameTaken, NotAllowed

QUICK = ["--speed", "0"]
MAM = shlex.join([sys.executable, "-P", "-m", "mam"])
SCRUBBED = "env -u MAM_SESSION -u MAM_LAUNCH -u MAM_ROOT -u TMUX -u TMUX_PANE"
# Runs each order that appears in its folder, below its own process.
SHELL = """\
n=1
while :; do
  [ -e order.$n ] && { sh order.$n >out.$n 2>&1; echo $? >code.$n; n=$((n + 1)); }
  sleep 0.02
done
"""


class Shell:
    """A session that runs what it is told."""

    def __init__(self, fleet, folder, until, name="lead", **options):
        folder.mkdir()
        self.folder, self.until, self.count = folder, until, 0
        (folder / "shell.sh").write_text(f"cd {folder}\n{SHELL}", encoding="utf-8")
        self.session = fleet.sessions.create(
            "sh", name=name, args=[str(folder / "shell.sh")], wait=False, **options
        )

    def run(self, line):
        """Run a line; return its exit code and what it printed."""
        self.count += 1
        order = self.folder / f"order.{self.count}"
        order.with_suffix(".new").write_text(line, encoding="utf-8")
        order.with_suffix(".new").rename(order)
        code = self.folder / f"code.{self.count}"
        self.until(lambda: code.exists() and code.read_text(encoding="utf-8").strip(), 60)
        output = (self.folder / f"out.{self.count}").read_text(encoding="utf-8")
        return int(code.read_text(encoding="utf-8")), output

    def detached(self, line, *, prefix=""):
        """Detach a line; return its exit code and its answer in JSON."""
        mark = f"detached.{self.count}"
        inner = f"{line} >{mark}.out 2>{mark}.err; echo $? >{mark}.part; mv {mark}.part {mark}.code"
        assert self.run(f"{prefix} setsid -f sh -c {shlex.quote(inner)}")[0] == 0
        code = self.folder / f"{mark}.code"
        self.until(code.exists, 60)
        out, error = ((self.folder / f"{mark}.{end}").read_text(encoding="utf-8") for end in ("out", "err"))
        return int(code.read_text(encoding="utf-8")), json.loads(out or error)


@pytest.fixture
def lead(fleet, tmp_path, until):
    return Shell(fleet, tmp_path / "lead", until)


@pytest.fixture
def worker(fleet):
    """A session that asks for a permission."""
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    fleet.messages.send(session.id, "/ask touch foo", command=True, timeout=10)
    session.wait("waiting", timeout=10)
    return session


@pytest.mark.promise("P41")
@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        pytest.param("", "the setting 'answers' does not let 'lead'", id="with its variables"),
        pytest.param("env -u MAM_LAUNCH", "MAM_SESSION names a session", id="without its secret"),
        pytest.param(
            "env -u MAM_LAUNCH -u MAM_SESSION", "TMUX_PANE names the pane of 'lead'", id="with its pane alone"
        ),
        pytest.param(SCRUBBED, "a session may have started it in the background", id="without any of them"),
    ],
)
def test_d8_a_session_does_not_become_the_user_by_detaching(fleet, lead, worker, workspace, prefix, reason):
    command = f"{MAM} --workspace {workspace} answer worker allow --json"
    code, answer = lead.detached(command, prefix=prefix)
    assert (code, answer["error"]["code"]) == (1, "not_allowed")
    assert reason in answer["error"]["message"]
    assert answer["error"]["hint"]
    assert fleet.messages.dialog("worker")["dialog"] == "permission"
    assert fleet.sessions.log("worker")[-1]["verb"] != "answer"


@pytest.mark.promise("P41")
def test_d8_a_session_without_its_variables_is_still_that_session(fleet, lead, worker, workspace) -> None:
    code, output = lead.run(f"{SCRUBBED} {MAM} --workspace {workspace} answer worker allow --json")
    assert (code, "does not let 'lead'" in output) == (1, True)
    code, output = lead.run(
        f"{SCRUBBED} {MAM} --workspace {workspace} create --agent sleep --session child --json -- 1000"
    )
    assert code == 0, output
    assert fleet.sessions.get("child").row["parent"] == lead.session.id


@pytest.mark.parametrize("ends", [False, True], ids=["running", "ended"])
def test_a_script_acts_for_the_session_that_submitted_its_job(fleet, lead, workspace, tmp_path, ends) -> None:
    """Whoever waits for a job runs its script, and so does a resident that is older than the session."""
    line = f"{MAM} --workspace {workspace}"
    answers = tmp_path / "answers"
    (workspace / "check.sh").write_text(
        f"{SCRUBBED} {line} backup {tmp_path}/taken.db >{answers} 2>&1\n"
        f"{SCRUBBED} {line} job cancel $JOB_ID >/dev/null 2>&1\n"
        f"{SCRUBBED} {line} restore {tmp_path}/any.db --yes >>{answers} 2>&1\n",
        encoding="utf-8",
    )
    code, output = lead.run(f"{line} job submit --agent human --prompt x --validate check.sh --detach")
    assert code == 0, output
    (job,) = fleet.jobs.list()
    if ends:
        lead.session.stop(force=True)
    fleet.jobs.event(job["job_id"], "completed")
    fleet.jobs.wait([job["job_id"]], timeout=60)
    said = answers.read_text(encoding="utf-8")
    running, ended = "a session may not use 'mam backup", "in the script of a job that a session submitted"
    assert (ended if ends else running) in said
    assert not (tmp_path / "taken.db").exists()


def test_a_script_of_a_persons_job_acts_for_that_person(fleet, workspace, tmp_path) -> None:
    (workspace / "check.sh").write_text(
        f"{MAM} --workspace {workspace} backup {tmp_path}/copy.db", encoding="utf-8"
    )
    job = fleet.jobs.submit("x", agent="human", validate="check.sh")["job_id"]
    fleet.jobs.event(job, "completed")
    (result,) = fleet.jobs.wait([job], timeout=60)
    assert result["validation"]["passed"] is True
    assert (tmp_path / "copy.db").exists()


def test_d8_what_is_detached_reads_and_reports_with_a_token(fleet, lead, workspace) -> None:
    job = fleet.jobs.submit(None, command=["sleep", "1000"], agent_session="busy")["job_id"]
    code, answer = lead.detached(f"{MAM} --workspace {workspace} ls --json", prefix=SCRUBBED)
    assert (code, sorted(row["name"] for row in answer["sessions"])) == (0, ["busy", "lead"])
    event = f"{MAM} --workspace {workspace} job event {job} --event progress --detail half --json"
    code, answer = lead.detached(event, prefix=SCRUBBED)
    assert code == 0, answer
    assert answer["event"]["data"]["by"] == "unknown"
    code, answer = lead.detached(f"{MAM} --workspace {workspace} job cancel {job} --json", prefix=SCRUBBED)
    assert (code, answer["error"]["code"]) == (1, "not_allowed")


def test_d8_the_setting_lets_what_is_detached_act(fleet, lead, worker, workspace, home) -> None:
    with (home / ".config/mam/config.toml").open("a", encoding="utf-8") as file:
        file.write('detached = "user"\n')
    code, answer = lead.detached(f"{MAM} --workspace {workspace} answer worker deny --json", prefix=SCRUBBED)
    assert code == 0, answer


def test_a_session_cannot_stop_itself_from_the_outside(lead, fleet) -> None:
    code, answer = lead.detached(f"{MAM} stop lead --json")
    assert (code, "runs inside 'lead'" in answer["error"]["message"]) == (1, True)
    assert fleet.sessions.get("lead").row["status"] == "running"


class TestSecretOfALaunch:
    """The file that MAM_LAUNCH names."""

    @staticmethod
    def environ(session):
        return process.environment(session.row["pane"]["pid"])

    def test_proves_the_session_in_another_pid_namespace(self, fleet, lead, worker, workspace) -> None:
        """Codex runs its tools in one of their own."""
        apart = "unshare --pid --fork --mount-proc"
        if subprocess.run([*apart.split(), "true"], capture_output=True, check=False).returncode:
            pytest.skip("this user may not make PID namespaces")
        code, output = lead.run(f"{apart} {MAM} answer worker allow --json")
        assert (code, "does not let 'lead'" in output) == (1, True)
        code, output = lead.run(f"{apart} {MAM} task add --role dev 'a task' --json")
        assert code == 0, output
        code, output = lead.run(f"{apart} env -u MAM_LAUNCH {MAM} task add --role dev other --json")
        assert (code, json.loads(output)["error"]["code"]) == (1, "not_allowed")
        code, output = lead.run(f"{SCRUBBED} {apart} {MAM} --workspace {workspace} stop worker --json")
        assert (code, json.loads(output)["error"]["code"]) == (1, "root_elsewhere")

    @pytest.mark.promise("P43")
    def test_is_nowhere_but_in_its_file(self, fleet, lead, workspace) -> None:
        assert lead.run("true") == (0, "")
        file = self.environ(lead.session)[VARIABLE]
        secret = Path(file).read_text(encoding="utf-8")
        shown = [json.dumps(fleet.sessions.status("lead")), json.dumps(fleet.sessions.log())]
        shown.append(repr(process.command_line(lead.session.row["pane"]["pid"])))
        shown += [repr(path.read_bytes()) for path in workspace.rglob("*") if path.is_file()]
        assert not any(secret in text for text in shown)
        assert Path(file).stat().st_mode & 0o777 == 0o600
        assert not file.startswith(str(workspace))

    def test_ends_with_the_launch(self, fleet, home, until) -> None:
        folder = home / ".local/state/mam/launches"
        session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
        session.wait("idle", timeout=10)
        (first,) = folder.iterdir()
        assert self.environ(session)[VARIABLE] == str(first)
        session.stop()
        assert list(folder.iterdir()) == []
        again = fleet.sessions.resume("one").session
        (second,) = folder.iterdir()
        assert second != first and self.environ(again)[VARIABLE] == str(second)
        os.kill(again.row["pane"]["pid"], 9)
        until(lambda: fleet.monitor.once() and fleet.sessions.get("one").row["status"] == "terminated")
        assert list(folder.iterdir()) == []
        fleet.sessions.create("practice", name="one", args=QUICK)
        assert len(list(folder.iterdir())) == 1
        fleet.sessions.stop("one", purge_conversation=True)
        assert list(folder.iterdir()) == []

    def test_is_not_left_by_a_start_that_fails(self, fleet, home, tmux_server) -> None:
        keeper = fleet.sessions.create("sleep", name="keeper", args=["1000"])
        fleet._access.context.tmux(tmux_server).rename_session("$0", "taken")
        with pytest.raises(NameTaken):
            fleet.sessions.create("sleep", name="taken", args=["1000"])
        folder = home / ".local/state/mam/launches"
        assert [str(path) for path in folder.iterdir()] == [self.environ(keeper)[VARIABLE]]

    def test_of_a_session_that_ended_unnoticed_ends_with_the_next_start(self, fleet, home) -> None:
        session = fleet.sessions.create("sleep", name="one", args=["1000"])
        state, root = fleet._access.context.user_state, fleet._access.context.root_id
        session.stop()
        state.begin_secret(root, session.id, state.new_secret_file())
        other = fleet.sessions.create("sleep", name="other", args=["1000"])
        assert list(state.secret_files(root)) == [other.id]
        assert len(list((home / ".local/state/mam/launches").iterdir())) == 1


def test_a_refusal_of_a_verb_leaves_reading_alone(fleet, workspace) -> None:
    fleet.sessions.create("sleep", name="one", args=["1000"])
    with mam.open(str(workspace), environ={**os.environ, "MAM_SESSION": "s_00000000"}) as other:
        assert other.sessions.names() == ["one"]
        for change in (
            other.init,
            lambda: other.messages.send("one", "x"),
            lambda: other.sessions.stop("one"),
        ):
            with pytest.raises(NotAllowed, match="MAM_SESSION"):
                change()
