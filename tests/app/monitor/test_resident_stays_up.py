"""A resident stays up, and where it does not, the next verb starts one, and mam says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.app.watching import ended, is_listening_to, run_apart
from tests.processes import is_running
from tests.waiting import wait_for, wait_until

import mam
from mam.adapters.store.newest_mam import ThisMam
from mam.adapters.system import process
from mam.app.context import context as contexts
from mam.app.context import resident_start_and_lock
from mam.app.monitor import resident as residents
from mam.app.monitor import supervised_task, take_over_from_older_mam
from mam.core.errors import ReadOnly, Unavailable

QUICK = ["--speed", "0"]


def holder(fleet):
    return resident_start_and_lock.lock(fleet._access.context).holder()


def log_of(fleet) -> str:
    path = Path(resident_start_and_lock.resident_log(fleet._access.context).path)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def state_of(fleet) -> dict:
    return fleet.sessions.ls()["resident"]


def check_of(fleet) -> dict | None:
    return next((check for check in fleet.monitor.doctor() if check["check"] == "resident"), None)


def use_residents(workspace: Path) -> None:
    (workspace / "mam.toml").write_text('resident = "auto"\n', encoding="utf-8")


def shown_by_ls(workspace: Path) -> str:
    return subprocess.run(
        [sys.executable, "-m", "mam", "ls"], cwd=workspace, capture_output=True, text=True, check=True
    ).stdout


@contextmanager
def resident_in_a_thread(workspace, *tasks):
    """A resident in a thread of this process, with more tasks; yields it and what it told."""
    told: list[dict] = []
    with mam.open(str(workspace)) as own:
        watching = residents.Resident(own._access.context, own.caller, told.append, tasks)
        read, write = os.pipe()
        thread = threading.Thread(target=run_apart, args=(watching, read))
        thread.start()
        try:
            yield watching, told
        finally:
            os.write(write, b"!")
            wait_until(lambda: not thread.is_alive(), "the end of the resident")
            for handle in (read, write):
                os.close(handle)


class BadTask:
    """A task with one bad record."""

    def due(self) -> float:
        return 0.0

    def handles(self) -> tuple[int, ...]:
        return ()

    def is_needed(self) -> bool:
        return False

    def tick(self) -> str:
        raise TypeError("timeout_sec: '1h'")


@pytest.mark.promise("P24")
def test_e4_any_changing_verb_replaces_a_killed_resident(fleet, workspace, until) -> None:
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        session = own.sessions.create("practice", args=["--speed", "20"], name="busy")
        wait_for(session, "idle")
        assert own.messages.send("busy", "work for long", timeout=20)["state"] == "submitted"
        wait_for(session, "working")
        receipt = own.messages.send("busy", "the held one", when="idle")
        assert receipt["state"] == "held"
        first = until(lambda: holder(own))
        os.kill(first["pid"], signal.SIGKILL)
        until(lambda: holder(own) is None)
        assert state_of(own)["state"] == "down"

        def successor() -> dict | None:
            # A verb that has nothing to do with messages. A start in the same second would wait.
            own.tasks.add("something else", role="developer")
            return holder(own)

        own.tasks.add("something", role="developer")
        second = until(successor)
        assert second["pid"] != first["pid"]
        own.messages.interrupt("busy")
        states = until(
            lambda: [
                message["state"]
                for message in own.messages.inbox("busy")
                if message["message_id"] == receipt["message_id"] and message["state"] != "held"
            ]
        )
        assert states == ["submitted"]
        os.kill(second["pid"], signal.SIGTERM)


def test_a_resident_that_is_stopped_is_shown_and_others_do_its_work(fleet, workspace, until) -> None:
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        session = own.sessions.create("practice", args=QUICK, name="one")
        wait_for(session, "idle")
        pid = until(lambda: (holder(own) or {}).get("pid"))
        until(lambda: state_of(own)["state"] == "running")
        os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: state_of(own)["state"] == "hung")
            assert f"kill -CONT {pid}" in state_of(own)["reason"]
            check = check_of(own)
            assert (check["ok"], check["message"]) == (False, f"it hangs: process {pid} is stopped")
            assert check["mend"].startswith(f"kill -CONT {pid} lets it go on, kill -KILL {pid} ends it; ")
            assert f"the resident hangs: process {pid} is stopped; kill -CONT" in shown_by_ls(workspace)
            job = own.jobs.submit("x", command=["true"])["job_id"]
            (ended,) = own.jobs.wait([job], timeout=90)
            assert ended["status"] == "completed"
            keys = ["tmux", "-L", session.row["tmux_server"], "send-keys", "-t", session.row["pane"]["id"]]
            subprocess.run([*keys, "-l", "half a thought"], check=True)
            until(lambda: "half a thought" in own.sessions.read("one"))
            held = own.messages.send("one", "the held one")
            assert held["state"] == "held"
            subprocess.run([*keys, "C-u"], check=True)

            def is_typed() -> bool:
                own.init()
                (message,) = [
                    one for one in own.messages.inbox("one") if one["message_id"] == held["message_id"]
                ]
                return message["state"] == "submitted"

            until(is_typed)
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: state_of(own)["state"] == "running")
        os.kill(pid, signal.SIGTERM)


def test_a_resident_without_a_sign_of_life_hangs(fleet, workspace, monkeypatch) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    lock = resident_start_and_lock.lock(fleet._access.context)
    assert lock.take({**process.me().as_json(), "version": mam.__version__})
    assert state_of(fleet)["state"] == "running", "it has yet to show life, or is of an older mam"
    lock.beat()
    assert state_of(fleet)["state"] == "running"
    monkeypatch.setattr(resident_start_and_lock, "_SILENT_SECONDS", 0.0)
    shown = state_of(fleet)
    assert (shown["state"], "has shown no life for 0 minutes" in shown["reason"]) == ("hung", True)
    assert resident_start_and_lock.working_holder(fleet._access.context) is None
    assert resident_start_and_lock.has_resident(fleet._access.context), "nobody can start another one"
    lock.release()


def test_a_resident_shows_life(fleet, workspace, monkeypatch, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    monkeypatch.setattr(residents, "_BEAT_SECONDS", 0.01)
    lock = resident_start_and_lock.lock(fleet._access.context)
    with resident_in_a_thread(workspace):
        before = until(lambda: lock.seconds_since_beat() is not None and Path(lock.path).stat().st_mtime)
        until(lambda: Path(lock.path).stat().st_mtime > before)


def test_e4_a_root_without_work_and_one_that_wants_none_get_no_resident(fleet, workspace, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    fleet.tasks.add("something", role="developer")
    assert fleet._access.context.user_state.resident_starts(root_id(fleet)) is None, "the setting is off"
    assert state_of(fleet)["state"] == "off"
    fleet.sessions.get("one").stop(force=True)
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        own.tasks.add("something else", role="developer")
        assert own._access.context.user_state.resident_starts(root_id(own)) is None
        assert state_of(own)["state"] == "not_needed"
        assert check_of(own) is None


def root_id(fleet) -> str:
    return fleet._access.context.root.verdict().id


def test_a_user_state_that_cannot_be_written_is_a_warning_and_fails_no_verb(
    fleet, workspace, monkeypatch
) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    warnings: list[str] = []
    with mam.open(str(workspace)) as own:
        own.on_warning(warnings.append)

        def refuse(*_arguments):
            raise ReadOnly("user.db cannot be written or read")

        # As in the sandbox of an agent, which may write in its workspace alone.
        monkeypatch.setattr(own._access.context.user_state, "begin_resident_start", refuse)
        resident_start_and_lock.ensure(own._access.context)
    assert warnings == ["no resident is started: user.db cannot be written or read"]


def test_e2_residents_that_die_at_once_are_started_less_and_less_often(
    fleet, workspace, monkeypatch, until
) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    monkeypatch.setattr(
        resident_start_and_lock, "command", lambda _context: [sys.executable, "-c", "raise ValueError('bad')"]
    )
    with mam.open(str(workspace)) as own:
        context, now = own._access.context, [1_900_000_000.0]
        context.user_state.clock = lambda: now[0]
        starts = context.user_state.resident_starts
        own.tasks.add("first", role="developer")
        for count in (1, 2, 3):
            assert starts(root_id(own)).count == count
            own.tasks.add("too early", role="developer")
            assert starts(root_id(own)).count == count
            now[0] = starts(root_id(own)).next_at
            own.tasks.add("in time", role="developer")
        # Each one writes its last words when it gets to it.
        until(lambda: log_of(own).count("ValueError: bad") == 4)
        context.user_state.clock = context.clock
        assert state_of(own)["next_start_at"] is None, "by this clock the next start is far in the future"
        shown = shown_by_ls(workspace)
        assert "no resident runs: 4 in a row did not run for a minute: ValueError: bad; the next" in shown
        check = check_of(own)
        assert (check["ok"], check["message"]) == (
            False,
            "none runs: 4 in a row did not run for a minute: ValueError: bad",
        )
        assert "residents/" in check["mend"]
        context.user_state.note_good_resident(root_id(own))
        assert starts(root_id(own)) is None


class Log:
    """Writes into the log of the resident of a root as processes do."""

    def __init__(self, fleet) -> None:
        self.path = Path(resident_start_and_lock.resident_log(fleet._access.context).path)

    def write(self, *lines: str) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("".join(f"2026-11-19T10:00:00Z {line}\n" for line in lines), encoding="utf-8")


@pytest.mark.starts
def test_what_ls_says_of_a_resident_that_does_not_run_is_true(fleet, workspace) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        assert state_of(own)["reason"] == "none has been started yet"
        log, killed = Log(own), "the last one ended without a word, as when it is killed"
        log.write("[7] the resident has started: mam 1", "[7] the resident has ended: nothing runs any more")
        assert state_of(own)["reason"] == "the last one has ended: nothing runs any more"
        log.write("[7] the resident has started: mam 1")
        assert state_of(own)["reason"] == killed
        replaced = "[7] the resident has ended: another resident watches this root"
        log.write("[7] the resident has started: mam 1", "[8] the resident has started: mam 1", replaced)
        assert state_of(own)["reason"] == killed
        log.write("[7] the resident has started: mam 1", replaced)
        assert state_of(own)["reason"] == killed
        # A start that is under way has written nothing yet.
        context = own._access.context
        os.utime(log.path, (1, 1))
        context.user_state.clock = lambda: context.now() - 30.0
        assert context.user_state.begin_resident_start(root_id(own))
        assert state_of(own)["reason"] == killed
        context.user_state.clock = context.now
        assert context.user_state.begin_resident_start(root_id(own))
        assert (state_of(own)["state"], state_of(own)["reason"]) == ("down", None)
        os.utime(log.path)
        assert state_of(own)["reason"] == f"2 in a row did not run for a minute: {killed}"


def test_nothing_is_said_of_a_resident_where_no_change_could_start_one(fleet, workspace, tmp_path) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    shutil.copytree(workspace, tmp_path / "copy", symlinks=True)
    with mam.open(str(tmp_path / "copy")) as copied:
        assert copied.sessions.ls()["root_state"] == "copy"
        assert state_of(copied) == {**state_of(copied), "state": "not_needed", "reason": None}
        assert check_of(copied) is None


def test_e2_a_task_with_a_bad_record_ends_neither_the_resident_nor_the_others(
    fleet, workspace, until, monkeypatch, hands_on
) -> None:
    fleet.init()
    monkeypatch.setattr(supervised_task, "pause_after", lambda failures: 0.01 * failures)
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    with resident_in_a_thread(workspace, BadTask()):
        until(lambda: "BadTask has failed 3 in a row, the next try is in 0.03 s" in log_of(fleet))
        os.kill(session.row["pane"]["pid"], signal.SIGKILL)
        until(lambda: fleet.sessions.names(status=["terminated"]) == ["one"], timeout=60)
        state = state_of(fleet)
        assert (state["state"], state["reason"]) == ("running", "BadTask: TypeError: timeout_sec: '1h'")
        assert check_of(fleet)["ok"] is None
        assert 'raise TypeError("timeout_sec' in log_of(fleet), "the traceback is there"


def test_long_failures_are_shown_once_also_on_a_full_disk(fleet, workspace, monkeypatch) -> None:
    fleet.init()
    watching = residents.Resident(fleet._access.context, fleet.caller, [].append, (BadTask(), BadTask()))
    written: list[dict] = []

    def full(holder) -> None:
        written.append(holder)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(watching.lock), "rewrite", lambda _lock, holder: full(holder))
    for task in watching._supervised:
        task.state.reason = "x" * 300
    for _ in range(3):
        # Each write would wake the resident, and the next pass would write again.
        watching._show_failures()
    assert [len(holder["failing"]) for holder in written] == [500]
    watching.close()


def test_e2_a_pass_that_fails_unexpectedly_is_repeated(fleet, workspace, until, monkeypatch) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    monkeypatch.setattr(supervised_task, "pause_after", lambda _failures: 0.05)
    real, failures = residents.reconcile.reconcile, [KeyError("who"), KeyError("who")]

    def sometimes(*arguments, **options):
        if failures:
            raise failures.pop()
        return real(*arguments, **options)

    monkeypatch.setattr(residents.reconcile, "reconcile", sometimes)
    with resident_in_a_thread(workspace) as (watching, _):
        until(lambda: watching._has_looked)
        assert "pass has failed 2 in a row" in log_of(fleet)
        until(lambda: state_of(fleet)["reason"] is None)
        assert list(watching._watched) == [fleet.sessions.get("one").id]


def test_e2_the_log_says_when_a_resident_began_and_why_it_ended(fleet, workspace) -> None:
    fleet.init()
    with mam.open(str(workspace)) as own:
        assert own.monitor.run(lambda _report: None, while_any=True) == "nothing runs any more"
    lines = [line.split("] ", 1)[1] for line in log_of(fleet).splitlines()]
    assert lines == [
        f"the resident has started: mam {mam.__version__}",
        "the resident has ended: nothing runs any more",
    ]


def test_e2_a_resident_that_ends_by_an_error_leaves_it_as_its_last_words(fleet, workspace) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    program = (
        "from mam.app.monitor import resident\n"
        "from mam.surfaces.cli.main import main\n"
        "resident.Resident._loop = lambda *_: 1 / 0\n"
        "main()\n"
    )
    with mam.open(str(workspace)) as own:
        log = resident_start_and_lock.resident_log(own._access.context)
        assert log.prepare()
        with Path(log.path).open("a", encoding="utf-8") as output:
            done = subprocess.run(
                [sys.executable, "-c", program, "monitor", "--resident"],
                cwd=workspace,
                stdout=output,
                stderr=output,
                check=False,
                timeout=60,
            )
        assert done.returncode == 70
        assert state_of(own)["reason"] == "mam: a bug in mam: ZeroDivisionError: division by zero"
        assert "Traceback (most recent call last):" in log_of(own)
        heads = [line.split(" [", 1)[0] for line in log_of(own).splitlines()]
        assert all(head.endswith("Z") for head in heads), "all of it went through the log"


@pytest.mark.promise("P24")
def test_e11_a_deleted_lock_file_makes_no_second_resident(fleet, workspace, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        own.tasks.add("something", role="developer")
        first = until(lambda: holder(own))
        lock = resident_start_and_lock.lock(own._access.context)
        for _ in range(3):
            # While it sleeps it cannot notice that the file is gone, and nobody seems to run.
            os.kill(first["pid"], signal.SIGSTOP)
            try:
                Path(lock.path).unlink()
                command = resident_start_and_lock.command(own._access.context)
                subprocess.run(command, check=True, timeout=60)
            finally:
                os.kill(first["pid"], signal.SIGCONT)
            assert until(lambda: holder(own))["pid"] == first["pid"]
        os.kill(first["pid"], signal.SIGTERM)
        until(lambda: not is_running(first["pid"]))


OLDER = """
import fcntl, json, os, signal, sys, time
from mam.adapters.system import process
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[2] == "deaf" else lambda *_: sys.exit(0))
os.write(handle, json.dumps({**process.me().as_json(), **json.loads(sys.argv[3])}).encode())
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def older(fleet):
    """Start a process that holds the lock as the resident of another version does."""
    started = []

    def start(how: str = "polite", **more) -> subprocess.Popen:
        path = resident_start_and_lock.lock(fleet._access.context).path
        running = subprocess.Popen(
            [sys.executable, "-c", OLDER, path, how, json.dumps(more)], stdout=subprocess.PIPE, text=True
        )
        started.append(running)
        assert running.stdout.readline() == "ready\n"
        return running

    yield start
    for running in started:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("version", [{}, {"version": "0.1.5"}], ids=["0.1.0", "0.1.5"])
def test_e3_the_resident_of_an_older_mam_leaves_and_a_new_one_takes_over(
    fleet, workspace, until, older, version
) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    former = older(**version)
    assert state_of(fleet)["reason"] == (
        "it is of an older mam; the next changing command has a new one take its place"
    )
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        own.tasks.add("something", role="developer")
        new = until(lambda: former.poll() is not None and holder(own))
        assert (new["version"], former.returncode) == (mam.__version__, 0)
        os.kill(new["pid"], signal.SIGTERM)


def test_e3_an_older_resident_that_does_not_leave_is_named(fleet, older, monkeypatch) -> None:
    fleet.init()
    former = older("deaf", version="0.1.5")
    monkeypatch.setattr(take_over_from_older_mam, "_END_SECONDS", 0.2)
    with pytest.raises(Unavailable, match=rf"mam 0\.1\.5, process {former.pid}, does not leave"):
        fleet.monitor.run(lambda _report: None, while_any=True)
    assert f"process {former.pid}, does not leave" in log_of(fleet)


def test_e3_a_resident_that_waits_for_an_older_one_can_be_told_to_stop(fleet, monitor, until, older) -> None:
    fleet.init()
    former = older("deaf", version="0.1.5")
    running = monitor()
    until(lambda: is_listening_to(running.pid, signal.SIGTERM))
    running.send_signal(signal.SIGTERM)
    _, said = ended(running)
    assert (running.returncode, said) == (0, "mam: the monitor has ended: the monitor was told to stop\n")
    assert holder(fleet)["pid"] == former.pid


def test_e3_residents_of_the_same_or_a_newer_version_are_left_alone(fleet, workspace, older) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        for version in (mam.__version__, "99.0.0"):
            running = older(version=version)
            own.tasks.add("something", role="developer")
            assert own._access.context.user_state.resident_starts(root_id(own)) is None
            assert running.poll() is None
            running.kill()
            running.wait()


def test_e3_an_older_mam_starts_no_resident_where_a_newer_one_was(
    fleet, workspace, tmp_path, monkeypatch
) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    newer = ThisMam("99.0.0", str(tmp_path))
    fleet._access.context.registry.note(newer.note)
    use_residents(workspace)
    warnings: list[str] = []
    with mam.open(str(workspace)) as own:
        own.on_warning(warnings.append)
        own.tasks.add("something", role="developer")
        assert own._access.context.user_state.resident_starts(root_id(own)) is None
        assert "mam 99.0.0 changed the root" in warnings[0]
        assert "only that mam starts one" in state_of(own)["reason"]
        # Somebody goes back: the newer mam is not installed any more.
        monkeypatch.setattr(contexts, "THIS_MAM", ThisMam(mam.__version__, newer.package))
        assert resident_start_and_lock.newer_mam(own._access.context) is None


@pytest.mark.parametrize("way", ["new", "trust"])
def test_a_root_that_is_taken_in_or_begun_anew_has_a_resident_for_its_live_agents(
    fleet, workspace, tmp_path, monkeypatch, until, way
) -> None:
    fleet.sessions.create("practice", name="one", args=QUICK)
    fleet.close()
    if way == "new":
        shutil.rmtree(workspace / ".mam")
    else:
        monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "other"))
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        assert (own.init_new() if way == "new" else own.init_trust())["changed"]
        until(lambda: state_of(own)["state"] == "running")
        assert check_of(own)["ok"] is True
        own.sessions.stop("one", force=True)


def test_the_first_resident_of_a_root_that_is_being_started_was_not_killed(fleet, workspace) -> None:
    """Also after `mam init --new`, which gives the root another id and so an empty log."""
    fleet.sessions.create("practice", name="one", args=QUICK)
    use_residents(workspace)
    with mam.open(str(workspace)) as own:
        context, now = own._access.context, own._access.context.now()
        resources = contexts.Resources(context.paths, context.environ, lambda: now)
        assert resources.user_state.begin_resident_start(context.root_id)
        resources.close()
        # The pause after a first start is shorter than this one takes to begin.
        own._access.context = context = context.replace(clock=lambda: now + 2)
        resident_start_and_lock.resident_log(context).prepare()
        state = state_of(own)
        assert (state["state"], state["reason"]) == ("down", None)
        assert check_of(own)["message"] == "one is being started"
