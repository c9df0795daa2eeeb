"""One pass over real tmux: what it writes, what it only reports, and what it does not touch."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.app.environment import use_environment

import mam
from mam.adapters.store.tables import drifts as recorded
from mam.adapters.system import exit_watch, process
from mam.adapters.tmux.client import Tmux
from mam.app.sessions import death
from mam.app.sessions import reconcile as reconciling
from mam.app.sessions.ending_processes import EndingProcesses
from mam.app.sessions.reconcile import reconcile
from mam.core.errors import DiskFull, NoRegistry
from mam.core.stop_escalation import GRACE, HANG_UP

QUICK = ["--speed", "0"]


@pytest.fixture
def later(fleet, monkeypatch):
    """Let the clock be a minute later: a pass leaves a row alone for some seconds after a person's action."""

    def later(seconds=60.0):
        real = time.time
        fleet._access.context = fleet._access.context.replace(clock=lambda: real() + seconds)

    return later


def drifts(report):
    return [(drift["class"], drift["session"], drift["new"], drift["written"]) for drift in report["drifts"]]


def kill(session, until):
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: session.status()["activity"] == "exited")


def test_nothing_differs(fleet, later) -> None:
    fleet.sessions.create("practice", args=QUICK)
    later()
    before = Path(fleet.registry_file).stat()
    report = fleet.monitor.once()
    assert report["drifts"] == report["actions"] == []
    assert report["tmux_confirmed"] is True
    assert report["yaml_path"] == fleet.registry_file
    after = Path(fleet.registry_file).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), "nothing was written"


def test_no_registry(tmp_path, home) -> None:
    with mam.open(str(tmp_path)) as fleet, pytest.raises(NoRegistry):
        fleet.monitor.once()


def test_a_dead_agent_is_recorded_once(fleet, later, until) -> None:
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    kill(session, until)
    assert fleet.monitor.once()["drifts"] == [], "it is younger than five seconds"
    later()
    report = fleet.monitor.once()
    assert drifts(report) == [("A", "one", True, True)]
    assert report["actions"] == [
        {"action": "terminated", "session": "one", "server": session.row["tmux_server"]}
    ]
    row = session.status()
    assert (row["status"], row["termination_mode"], row["exit_status"]) == (
        "terminated",
        "auto-detected",
        137,
    )
    assert fleet.monitor.once()["drifts"] == []
    assert [entry["verb"] for entry in fleet.sessions.log("one")][-1] == "died"


def test_s001_9_a_row_of_the_original_system_is_compared_too(fleet, workspace, tmux_server) -> None:
    """Also before any other command of mam has recorded the file."""
    row = f"""\
- name: lab-landing-page-creator-claude
  pane: {{cmd: claude, cwd: {workspace}, pid: 4201132}}
  status: running
  tmux_server: {tmux_server}
"""
    kept = row.replace("landing-page", "old").replace("running", "stopped")
    file = Path(fleet.registry_file)
    file.parent.mkdir()
    file.write_text(f"tmux_sessions:\n{row}{kept}", encoding="utf-8")
    preview = fleet.monitor.once(dry_run=True)
    assert drifts(preview) == [("A", "lab-landing-page-creator-claude", True, False)]
    assert file.read_text(encoding="utf-8") == f"tmux_sessions:\n{row}{kept}"
    assert not Path(fleet._access.context.paths.state).exists()
    assert drifts(fleet.monitor.once()) == [("A", "lab-landing-page-creator-claude", True, True)]
    session = fleet.sessions.get("lab-landing-page-creator-claude").row
    assert (session["status"], session["termination_mode"]) == ("terminated", "auto-detected")
    assert kept in file.read_text(encoding="utf-8")


def test_a_dry_run_writes_nothing(fleet, later, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello", name="one")
    kill(session, until)
    later()
    state = Path(fleet._access.context.paths.state)

    def content():
        # The -shm file of SQLite changes with each read, and a hook may still be writing to the spool.
        paths = [path for path in state.rglob("*") if path.is_file() and path.suffix != ".db-shm"]
        return {path: path.read_bytes() for path in paths if "spool" not in path.parts}

    # The last hook is a separate process: it may rename its payload during this test.
    before, waiting = content(), set((state / "spool").glob("*.json"))
    report = fleet.monitor.once(dry_run=True)
    assert drifts(report) == [("A", "one", True, False)]
    assert report["actions"][0]["action"] == "terminated"
    assert content() == before
    assert waiting <= set((state / "spool").glob("*.json")), "hook payloads stay in the spool"
    assert session.status()["status"] == "running"


def test_another_process_in_the_pane(fleet, later, tmux_server) -> None:
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    pane = session.row["pane"]["id"]
    Tmux(tmux_server)._call(["respawn-pane", "-k", "-t", pane, "sleep", "4321"])
    later()
    assert drifts(fleet.monitor.once()) == [("A", "one", True, True)]
    assert Tmux(tmux_server).pane(pane) is not None, "the other process keeps running"


def test_a_server_that_does_not_answer_terminates_nobody(fleet, later, tmux_server) -> None:
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    later()
    server = Tmux(tmux_server).server_pid()
    tmux = fleet._access.context.tmux(tmux_server)
    os.kill(server, signal.SIGSTOP)
    try:
        tmux.timeout = 0.3
        report = fleet.monitor.once()
    finally:
        os.kill(server, signal.SIGCONT)
        tmux.timeout = 5.0
    assert report["tmux_confirmed"] is False
    assert report["servers"][tmux_server]["confirmed"] is False
    assert report["drifts"] == []
    assert session.status()["status"] == "running"


def test_a_server_that_is_gone_terminates_its_rows_and_no_others(fleet, later, tmux_server, until) -> None:
    other = f"{tmux_server}-2"
    try:
        gone = fleet.sessions.create("sleep", args=["1000"], name="gone")
        kept = fleet.sessions.create("sleep", args=["1000"], name="kept", tmux_server=other)
        pid = gone.row["pane"]["pid"]
        Tmux(tmux_server).kill_server()
        until(lambda: not Path(f"/proc/{pid}").exists())
        later()
        assert drifts(fleet.monitor.once()) == [("A", "gone", True, True)]
        assert kept.status()["tmux_alive"] is True
    finally:
        Tmux(other).kill_server()


@pytest.fixture
def hung_up(fleet, later, tmux_server, tmp_path, until):
    """A session whose tmux session was killed, and whose process needs a moment to end; ends it."""
    script = (
        f"trap 'while [ ! -e {tmp_path}/end ]; do sleep 0.01; done; exit 0' HUP; while :; do sleep 0.01; done"
    )
    session = fleet.sessions.create("sh", args=["-c", script], name="one")
    pid = session.row["pane"]["pid"]
    # The trap of a shell counts from the moment in which the shell has it.
    until(lambda: caught(pid, signal.SIGHUP))
    tmux = Tmux(tmux_server)
    # With its last session the server would end, and would not answer for a moment.
    tmux._call(["new-session", "-d", "-s", "other", "--", "sleep", "1000"])
    tmux._call(["kill-session", "-t", "=one"])
    until(lambda: not tmux.panes().marked(session.id))
    later()

    def end():
        (tmp_path / "end").touch()
        until(lambda: process.runs(pid) is not True)

    yield end
    end()


def caught(pid, number):
    """Tell whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("SigCgt")), 16) >> (number - 1) & 1


def test_s001_41_a_process_that_is_ending_is_not_loose(fleet, hung_up, monkeypatch) -> None:
    """A pass waits for the end of a process that has lost its pane."""
    waits = []

    def wait_gone(identities, timeout):
        waits.append(timeout)
        hung_up()
        return exit_watch.wait_gone(identities, timeout)

    monkeypatch.setattr(reconciling, "wait_gone", wait_gone)
    report = fleet.monitor.once()
    assert drifts(report) == [("A", "one", True, True)]
    assert "is gone" in report["drifts"][0]["message"]
    assert waits == [GRACE[HANG_UP]]


def test_s001_41_a_process_that_does_not_end_is_loose(fleet, hung_up, monkeypatch) -> None:
    waits = []
    monkeypatch.setattr(reconciling, "wait_gone", lambda identities, timeout: waits.append(timeout))
    assert drifts(fleet.monitor.once(dry_run=True)) == [("A", "one", True, False)]
    assert drifts(fleet.monitor.once()) == [("A", "one", True, False)]
    assert "runs without its pane" in fleet.monitor.once()["drifts"][0]["message"]
    assert len(waits) == 2, "once it is recorded nobody waits for it"
    hung_up()
    assert drifts(fleet.monitor.once()) == [("A", "one", True, True)]


def test_s001_41_a_resident_goes_on_while_a_process_is_ending(fleet, hung_up, monkeypatch) -> None:
    monkeypatch.setattr(reconciling, "wait_gone", lambda *_: pytest.fail("it must not stand still"))
    context, ending = fleet._access.context, EndingProcesses()
    first = reconcile(context, fleet.caller, ending=ending)
    assert (first.drifts, fleet.sessions.get("one").row["status"]) == ([], "running")
    assert first.next_look_in is not None
    monkeypatch.setitem(GRACE, HANG_UP, 0.0)
    second = reconcile(context, fleet.caller, ending=ending)
    assert [drift["message"].endswith("mam stop one ends it") for drift in second.drifts] == [True]
    hung_up()
    third = reconcile(context, fleet.caller, ending=ending)
    assert [(drift["session"], drift["written"]) for drift in third.drifts] == [("one", True)]
    assert third.next_look_in is None


def test_a_session_of_the_pattern_is_registered(fleet, later, tmux_server, workspace, tmp_path) -> None:
    fleet.init()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    marked = "set-option -p -t =other-creator-claude: @mam_session s_0000ffff"
    script = [
        f"new-session -d -s demo-app-creator-bash -c {workspace} -- sleep 1000",
        f"new-session -d -s plain -c {workspace} -- sleep 1000",
        f"new-session -d -s far-creator-bash -c {elsewhere} -- sleep 1000",
        f"new-session -d -s other-creator-claude -c {workspace} -- sleep 1000",
        marked,
    ]
    for line in script:
        Tmux(tmux_server)._call(line.split())
    later()
    assert drifts(fleet.monitor.once(dry_run=True)) == [("B", "demo-app-creator-bash", True, False)]
    assert fleet.sessions.names() == []
    assert drifts(fleet.monitor.once()) == [("B", "demo-app-creator-bash", True, True)]
    row = fleet.sessions.get("demo-app-creator-bash").row
    assert (row["status"], row["last_visible_status"], row["agent"]) == ("running", "auto-registered", "bash")
    assert row["workspace"] == str(workspace)
    assert fleet.sessions.names() == ["demo-app-creator-bash"]
    assert fleet.monitor.once()["drifts"] == []
    assert fleet.sessions.status("demo-app-creator-bash")["tmux_alive"] is True


def test_a_conversation_appears_and_vanishes(fleet, later, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK, name="one")
    later()
    assert fleet.monitor.once()["drifts"] == []
    tmux = fleet._access.context.tmux(session.row["tmux_server"])
    tmux.paste(session.row["pane"]["id"], "hello", mark=session.id, enter=True)
    until(lambda: session.status()["resume"]["on_disk"])
    assert session.status()["drift"] == "C"
    report = fleet.monitor.once()
    assert drifts(report) == [("C", "one", True, True)]
    own = session.status()["practice_session_id_own"]
    assert own == report["drifts"][0]["after"]
    (transcript,) = Path(os.environ["XDG_DATA_HOME"]).rglob(f"{own}.jsonl")
    away = transcript.rename(transcript.with_suffix(".away"))
    later(120.0)
    assert drifts(fleet.monitor.once()) == [("D", "one", True, False)]
    assert drifts(fleet.monitor.once()) == [("D", "one", False, False)], "it lasts, and is not new"
    assert session.status()["practice_session_id_own"] == own
    away.rename(transcript)
    assert fleet.monitor.once()["drifts"] == []
    transcript.rename(away)
    assert drifts(fleet.monitor.once()) == [("D", "one", True, False)], "another episode"


def test_an_unprinted_drift_is_printed_once(fleet, later, until) -> None:
    sessions = [fleet.sessions.create("sleep", args=["1000"], name=name) for name in ("one", "two")]
    kill(sessions[0], until)
    later()
    assert drifts(fleet.monitor.once(emit_diff=True)) == [("A", "one", True, True)]
    kill(sessions[1], until)
    assert drifts(fleet.monitor.once()) == [("A", "two", True, True)]
    assert fleet.monitor.once(dry_run=True, emit_diff=True)["drifts"] == []
    assert drifts(fleet.monitor.once(emit_diff=True)) == [("A", "two", True, True)], (
        "recorded, and not printed yet"
    )
    assert fleet.monitor.once(emit_diff=True)["drifts"] == []


def test_a_drift_is_new_again_once_it_could_be_written(fleet, later, until, monkeypatch) -> None:
    kill(fleet.sessions.create("sleep", args=["1000"], name="one"), until)
    later()

    def fail(*_arguments):
        raise DiskFull("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(death, "record_death", fail)
        assert drifts(fleet.monitor.once(emit_diff=True)) == [("A", "one", True, False)]
        assert drifts(fleet.monitor.once(emit_diff=True)) == [("A", "one", False, False)]
    assert drifts(fleet.monitor.once()) == [("A", "one", True, True)]
    assert drifts(fleet.monitor.once(emit_diff=True)) == [("A", "one", True, True)], (
        "recorded, and not printed yet"
    )
    assert fleet._access.context.registry.peek(recorded.open_drifts, None) == []


@pytest.fixture
def ended(fleet, later, until):
    """A session that has ended with a conversation on disk; returns it and the transcript."""

    def ended(how="stop"):
        session = fleet.sessions.create("practice", args=QUICK, prompt="hello", name="one")
        if how == "stop":
            session.stop()
            later()
        else:
            until(lambda: session.status()["resume"]["on_disk"])
            later()
            fleet.monitor.once()
            kill(session, until)
            assert ("A", "one", True, True) in drifts(fleet.monitor.once())
            later(120.0)
        own = session.status()["practice_session_id_own"]
        (transcript,) = Path(os.environ["XDG_DATA_HOME"]).rglob(f"{own}.jsonl")
        return session, transcript

    return ended


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_s001_13_the_conversation_of_an_ended_row_is_gone(fleet, ended, how) -> None:
    session, transcript = ended(how)
    fleet.monitor.once(emit_diff=True)
    assert fleet.monitor.once(emit_diff=True)["drifts"] == []
    own = session.status()["practice_session_id_own"]
    away = transcript.rename(transcript.with_suffix(".away"))
    (drift,) = fleet.monitor.once(emit_diff=True)["drifts"]
    assert (drift["class"], drift["session"], drift["before"], drift["new"]) == ("D", "one", own, True)
    assert drifts(fleet.monitor.once(emit_diff=True)) == [("D", "one", False, False)]
    assert session.status()["practice_session_id_own"] == own, "the id is kept"
    away.rename(transcript)
    assert fleet.monitor.once()["drifts"] == []
    transcript.unlink()
    assert drifts(fleet.monitor.once()) == [("D", "one", True, False)], "another episode"


def test_s001_13_an_ended_row_of_the_original_system_is_reported_once(fleet, home, workspace) -> None:
    registry = workspace / ".hermes" / "agent-sessions.yaml"
    registry.parent.mkdir()
    registry.write_text(
        "tmux_sessions:\n- name: demo-creator-claude\n  status: stopped\n"
        "  claude_session_id_own: 87dc548e-1111-4222-8333-444455556666\n"
        f"  pane: {{pid: 4, cmd: claude, cwd: {workspace}}}\n",
        encoding="utf-8",
    )
    assert drifts(fleet.monitor.once()) == [("D", "demo-creator-claude", True, False)]
    assert drifts(fleet.monitor.once()) == [("D", "demo-creator-claude", False, False)]


def test_s001_13_a_pass_over_some_sessions_ends_no_drift_of_others(fleet, ended) -> None:
    session, transcript = ended()
    transcript.unlink()
    assert drifts(fleet.monitor.once()) == [("D", "one", True, False)]
    context = fleet._access.context
    reconcile(context, fleet.caller, {"s_00000000"})
    reconcile(context, fleet.caller, with_ended=False)
    assert drifts(fleet.monitor.once()) == [("D", "one", False, False)], "it is no new one"
    assert session.status()["drift"] == "D"


def test_s001_13_a_drift_that_lasts_writes_nothing(fleet, ended, monkeypatch) -> None:
    _, transcript = ended()
    transcript.unlink()
    fleet.monitor.once()
    registry = fleet._access.context.registry
    before = registry.commit_number()
    monkeypatch.setattr(registry, "note", lambda work: pytest.fail("an unchanged pass takes no write lock"))
    assert drifts(fleet.monitor.once()) == [("D", "one", False, False)]
    assert registry.commit_number() == before


@pytest.mark.parametrize("verb", ["archive", "purge", "forget"])
def test_s001_13_an_archived_or_purged_row_says_nothing(fleet, ended, verb) -> None:
    session, transcript = ended()
    fleet.sessions.create("sleep", args=["1000"], name="other")
    if verb == "purge":
        session.stop(purge_conversation=True)
    else:
        transcript.unlink()
        assert drifts(fleet.monitor.once()) == [("D", "one", True, False)]
        getattr(fleet.sessions, verb)("one")
    report = fleet.monitor.once()
    assert [drift for drift in drifts(report) if drift[1] == "one"] == []
    if verb != "forget":
        assert session.status()["status"] in ("archived", "terminated")


def write_identities(fleet, identities):
    """Let the identity cache hold this, as a file of the original system brings it."""
    fleet.init()
    fleet._access.context.registry.note(lambda transaction: transaction.set_meta("identities", identities))


@pytest.mark.parametrize(
    ("kind", "key"), [("claude", "session_id"), ("agy", "conversation_id"), ("codex", "session_id")]
)
def test_s001_14_a_cached_conversation_is_gone(fleet, home, workspace, kind, key) -> None:
    conversation = "87dc548e-1111-4222-8333-444455556666"
    write_identities(fleet, {kind: {key: conversation, "project_cwd": str(workspace)}})
    (drift,) = fleet.monitor.once(emit_diff=True)["drifts"]
    assert (drift["class"], drift["session"], drift["new"], drift["written"]) == ("D", None, True, False)
    assert drift["field"] == f"agent_identities.{kind}.{key}"
    assert drift["before"] == conversation
    assert drift["message"].startswith(f"the identity cache of {kind}: conversation {conversation}")
    assert [again["new"] for again in fleet.monitor.once(emit_diff=True)["drifts"]] == [False]
    assert fleet._access.context.registry.view().identities[kind][key] == conversation, "it is kept"


def test_s001_14_a_cached_conversation_of_a_file_of_the_original_system(fleet, home, workspace) -> None:
    registry = workspace / ".hermes" / "agent-sessions.yaml"
    registry.parent.mkdir()
    registry.write_text(
        "agent_identities:\n  claude:\n    session_id: 87dc548e-1111-4222-8333-444455556666\n"
        "tmux_sessions: []\n",
        encoding="utf-8",
    )
    report = fleet.monitor.once(dry_run=True)
    assert [drift["field"] for drift in report["drifts"]] == ["agent_identities.claude.session_id"]


def test_s001_14_the_cache_and_the_row_of_one_conversation_are_one_drift(fleet, ended) -> None:
    session, transcript = ended()
    assert fleet._access.context.registry.view().identities["practice"]["session_id"] == transcript.stem
    away = transcript.rename(transcript.with_suffix(".away"))
    assert drifts(fleet.monitor.once()) == [("D", "one", True, False)]
    session.archive()
    assert drifts(fleet.monitor.once()) == [("D", None, True, False)], "a resume could still take it up"
    away.rename(transcript)
    assert fleet.monitor.once()["drifts"] == []
    transcript.unlink()
    assert drifts(fleet.monitor.once()) == [("D", None, True, False)], "another episode"


def test_s001_14_a_conversation_in_the_store_of_a_session_is_there(fleet, ended, home, monkeypatch) -> None:
    """The store of a session need not be that of whoever makes the pass."""
    session, _ = ended()
    session.archive()
    use_environment(fleet, {**os.environ, "XDG_DATA_HOME": str(home / "elsewhere")})
    assert fleet.monitor.once()["drifts"] == []


def test_ended_rows_are_left_alone(fleet, later) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello", name="one")
    session.stop()
    later()
    before = Path(fleet.registry_file).read_bytes()
    assert fleet.monitor.once()["drifts"] == []
    assert Path(fleet.registry_file).read_bytes() == before


def test_s001_5_a_pass_reads_the_sessions_of_tmux(fleet, tmux_server) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    report = fleet.monitor.once()
    assert report["tmux_sessions_alive"] == ["one"]
    assert report["servers"][tmux_server] == {"confirmed": True, "error": None}


def test_s001_40_a_pass_changes_neither_conversations_nor_panes(fleet, later, until, tmux_server) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello", name="one")
    session.wait("idle", timeout=30)
    kill(session, until)
    later()
    folder = Path(os.environ["XDG_DATA_HOME"]) / "mam-practice"
    before = {path: path.read_bytes() for path in folder.glob("*.jsonl")}
    panes = [pane.id for pane in Tmux(tmux_server).panes().panes]
    assert drifts(fleet.monitor.once()) == [("A", "one", True, True)]
    assert {path: path.read_bytes() for path in folder.glob("*.jsonl")} == before
    assert before
    assert [pane.id for pane in Tmux(tmux_server).panes().panes] == panes
