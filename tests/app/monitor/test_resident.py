"""The resident: what happens is in the registry at once, whatever happens to the resident itself."""

import json
import os
import select
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.app.watching import classes, ended, is_listening_to

import mam
from mam.adapters.store.tables import drifts
from mam.adapters.tmux.client import Tmux
from mam.app.context import resident_start_and_lock
from mam.app.monitor import resident as residents
from mam.core import drift_detection as rules
from mam.core.errors import NotAllowed, ResidentRuns, TerminalsDown

QUICK = ["--speed", "0"]


def holder(fleet):
    return resident_start_and_lock.lock(fleet._access.context).holder()


@pytest.mark.promise("P22")
def test_a_death_is_recorded_at_once(fleet, watched, until) -> None:
    sessions = [fleet.sessions.create("sleep", args=["1000"], name=f"s{number}") for number in range(3)]
    until(lambda: len(fleet.sessions.names(status=["running"])) == 3)
    os.kill(sessions[1].row["pane"]["pid"], signal.SIGKILL)
    until(lambda: fleet.sessions.names(status=["terminated"]) == ["s1"])
    until(lambda: classes(watched) == [("A", "s1")])
    assert fleet.sessions.names(status=["running"]) == ["s0", "s2"]


def test_the_lock_says_which_version_holds_it(fleet, monitor, until) -> None:
    fleet.sessions.create("sleep", args=["1000"])
    monitor()
    assert until(lambda: holder(fleet))["version"] == mam.__version__


def test_the_resident_acts_for_the_user_whoever_started_it(fleet, workspace) -> None:
    fleet.init()
    environ = {**os.environ, "MAM_SESSION": "s_00000000"}
    with mam.open(str(workspace), environ=environ) as other:
        with pytest.raises(NotAllowed, match="MAM_SESSION"):
            other.monitor.attend(lambda _report: None)
        assert other.monitor.run(lambda _report: None, while_any=True) == "nothing runs any more"
        assert other.caller.is_user


def test_a_session_that_a_verb_ends_is_not_reported(fleet, watched, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    session.stop()
    other_fleet = fleet.sessions.create("sleep", args=["1000"], name="other")
    os.kill(other_fleet.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: ("A", "other") in classes(watched))
    assert classes(watched) == [("A", "other")]
    assert session.status()["status"] == "stopped"


def test_a_conversation_that_appears_is_filled_in(fleet, watched, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK, name="one")
    tmux = fleet._access.context.tmux(session.row["tmux_server"])
    tmux.paste(session.row["pane"]["id"], "hello", mark=session.id, enter=True)
    until(lambda: fleet.sessions.get("one").row["practice_session_id_own"])
    until(lambda: classes(watched) == [("C", "one")])


def test_an_edit_is_taken_in(fleet, watched, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    path = Path(fleet.registry_file)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("name: one", "colour: blue\n  name: one"), encoding="utf-8")
    until(lambda: not fleet._access.context.registry.is_edited())
    assert fleet.sessions.get("one").row["colour"] == "blue"


def test_one_at_a_time_and_the_other_follows(fleet, monitor, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    first = monitor("--json")
    until(lambda: holder(fleet))
    with pytest.raises(ResidentRuns):
        residents.Resident(fleet._access.context, fleet.caller, print).run()
    second = monitor()
    output = follows(fleet, second, until)
    pid = fleet.sessions.get("one").row["pane"]["pid"]
    time.sleep(max(0.0, rules.hands_off_until(fleet.sessions.get("one").row) - time.time()))
    os.kill(pid, signal.SIGKILL)
    report = json.loads(first.stdout.readline())
    assert [drift["class"] for drift in report["drifts"]] == ["A"]
    until(lambda: any(line.startswith("A  one: process ") for line in list(output)))
    first.send_signal(signal.SIGTERM)
    ended(first)
    assert first.returncode == 0
    assert holder(fleet) is None


def test_killed_it_leaves_nothing_and_another_takes_over(fleet, monitor, until) -> None:
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    first = monitor()
    until(lambda: holder(fleet))
    first.kill()
    first.wait()
    until(lambda: holder(fleet) is None)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    second = monitor()
    until(lambda: fleet.sessions.names(status=["terminated"]) == ["one"], timeout=30)
    second.send_signal(signal.SIGTERM)
    ended(second)
    assert [check for check in fleet.monitor.doctor() if check["ok"] is False] == []


def test_it_ends_when_its_time_is_over(fleet, monitor) -> None:
    fleet.init()
    for command in (("--timeout", "0.2"), ("--idle-timeout", "0.2")):
        result = monitor(*command)
        ended(result)
        assert result.returncode == 0


def test_no_registry(monitor) -> None:
    result = monitor()
    _, error = ended(result)
    assert (result.returncode, error[:30]) == (1, "mam: there is no registry in /")


def test_a_server_that_dies_and_one_that_appears(fleet, watched, tmux_server, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    Tmux(tmux_server).kill_server()
    until(lambda: fleet.sessions.names(status=["terminated"]) == ["one"])
    session = fleet.sessions.create("sleep", args=["1000"], name="two")
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: "two" in fleet.sessions.names(status=["terminated"]))


def test_it_is_started_on_demand_and_ends_with_the_last_session(home, tmux_server, workspace, until) -> None:
    (workspace / "mam.toml").write_text('resident = "auto"\n', encoding="utf-8")
    with mam.open(str(workspace)) as fleet:
        session = fleet.sessions.create("sleep", args=["1000"], name="one")
        first = until(lambda: holder(fleet))
        assert "MAM_SESSION" not in process_environment(first["pid"])
        os.kill(first["pid"], signal.SIGKILL)
        until(lambda: holder(fleet) is None)
        until(lambda: may_be_started(fleet))
        other_session = fleet.sessions.create("sleep", args=["1000"], name="two")
        second = until(lambda: holder(fleet))
        assert second["pid"] != first["pid"]
        session.stop()
        other_session.stop()
        until(lambda: holder(fleet) is None)


def may_be_started(fleet) -> bool:
    """Tell whether the pause after the last start is over."""
    context = fleet._access.context
    starts = context.user_state.resident_starts(context.root_id)
    return starts is None or not starts.is_resting(context.now())


def test_it_ends_with_its_root(fleet, monitor, workspace, until, tmp_path) -> None:
    fleet.init()
    running = monitor()
    until(lambda: holder(fleet))
    fleet.close()
    workspace.rename(tmp_path / "moved")
    # At the latest its next full pass finds nothing.
    _, said = ended(running, 90)
    assert (running.returncode, "the state of this root is gone" in said) == (1, True)


def process_environment(pid):
    return dict(
        item.split("=", 1) for item in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0") if item
    )


def test_a_root_that_has_only_the_file(home, tmux_server, workspace, monitor) -> None:
    """As the original system leaves it: no folder of ours is there yet."""
    (workspace / ".hermes").mkdir()
    (workspace / ".hermes/agent-sessions.yaml").write_text("tmux_sessions: []\n", encoding="utf-8")
    running = monitor("--timeout", "0.2")
    _, said = ended(running)
    assert (said, running.returncode) == ("mam: the monitor has ended: the timeout was reached\n", 0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_who_follows_takes_over(fleet, monitor, until, end) -> None:
    fleet.init()
    first = monitor()
    until(lambda: holder(fleet))
    second = monitor("--json")
    follows(fleet, second, until)
    first.send_signal(end)
    ended(first)
    until(lambda: (holder(fleet) or {}).get("pid") == second.pid)


def test_told_again_and_again_it_ends_no_later(fleet, monitor, tmux_server, until) -> None:
    """Also while a tmux server does not answer: who presses Ctrl-C repeatedly must not keep it alive."""
    fleet.sessions.create("sleep", args=["1000"], name="one")
    server = Tmux(tmux_server).panes().server_pid
    os.kill(server, signal.SIGSTOP)
    try:
        running = monitor()
        until(lambda: is_listening_to(running.pid, signal.SIGTERM))

        def is_told_and_gone() -> bool:
            running.send_signal(signal.SIGTERM)
            return running.poll() is not None

        until(is_told_and_gone)
        # The last one may come when nobody listens any more.
        assert running.returncode in (0, -signal.SIGTERM)
    finally:
        os.kill(server, signal.SIGCONT)


def test_who_follows_is_told_who_needs_a_person(fleet, monitor, until) -> None:
    fleet.init()
    monitor()
    until(lambda: holder(fleet))
    second = monitor("--json")
    output = follows(fleet, second, until)
    session = fleet.sessions.create("practice", args=QUICK, name="one")
    tmux = fleet._access.context.tmux(session.row["tmux_server"])
    tmux.paste(session.row["pane"]["id"], "/limit", mark=session.id, enter=True)
    notice = until(lambda: attention(output), timeout=60)
    assert (notice["session"], notice["kind"]) == ("one", "limit")


def follows(fleet, running, until):
    """Wait until a monitor shows what another one records; return its lines, as they come."""
    drift = {"id": "A:x", "class": "A", "session": "x", "message": "as a resident records it"}

    def is_shown():
        fleet._access.context.registry.note(
            lambda transaction: drifts.record(transaction, drift, is_written=True)
        )
        return select.select([running.stdout], [], [], 0.2)[0]

    until(is_shown)
    output = lines_of(running)
    assert drift["message"] in until(lambda: output and output[0])
    return output


def lines_of(running) -> list[str]:
    """Return a list that gets each line that a process prints, as it comes."""
    output: list[str] = []
    threading.Thread(target=lambda: output.extend(iter(running.stdout.readline, "")), daemon=True).start()
    return output


def attention(output: list[str]):
    """Return the first notice among the lines of a monitor, if there is one by now."""
    documents = (json.loads(line).get("attention") for line in list(output))
    return next((document for document in documents if document), None)


def test_a_pass_that_learned_nothing_is_repeated_soon(fleet, tmux_server, monkeypatch) -> None:
    """A server that ends does not answer. A process that ended meanwhile is not reported a second time."""
    fleet.sessions.create("sleep", args=["1000"], name="one")
    watching = residents.Resident(fleet._access.context, fleet.caller, lambda _report: None)
    retries: list[float] = []
    real = watching._seconds_until_retry
    monkeypatch.setattr(watching, "_seconds_until_retry", lambda: retries.append(real()) or retries[-1])
    tmux = fleet._access.context.tmux(tmux_server)
    tmux.timeout = 0.2
    server = Tmux(tmux_server).panes().server_pid
    os.kill(server, signal.SIGSTOP)
    try:
        watching._pass()
        watching._pass(only={fleet.sessions.get("one").id})
    finally:
        os.kill(server, signal.SIGCONT)
    with monkeypatch.context() as patch:
        patch.setattr(residents.reconcile, "reconcile", fail)
        for _ in range(8):
            watching._pass()
    assert retries[:4] == [0.25, 0.5, 1.0, 2.0]
    assert retries[-1] == 30.0
    watching._pass()
    assert len(retries) == 10, "this pass was answered"
    watching.close()


def test_s001_41_the_resident_looks_again_at_a_process_that_is_ending(fleet, monkeypatch) -> None:
    fleet.init()
    watching = residents.Resident(fleet._access.context, fleet.caller, [].append)
    reconcile = residents.reconcile.reconcile

    def ending(*args, **options):
        result = reconcile(*args, **options)
        result.next_look_in = 4.0
        return result

    monkeypatch.setattr(residents.reconcile, "reconcile", ending)
    watching._pass()
    assert watching._due <= time.monotonic() + 1.0
    watching.close()


def test_hooks_and_edits_do_not_look_at_ended_sessions(fleet, monkeypatch) -> None:
    """There may be many of them, and a pass follows each hook."""
    fleet.init()
    watching = residents.Resident(fleet._access.context, fleet.caller, [].append)
    looks, reconcile = [], residents.reconcile.reconcile
    monkeypatch.setattr(
        residents.reconcile,
        "reconcile",
        lambda *args, **options: looks.append(options["with_ended"]) or reconcile(*args, **options),
    )
    for only in ({"s_00000000"}, None, None, {"s_00000000"}):
        watching._pass(only)
    watching._ended_due = 0.0
    watching._pass()
    watching.close()
    assert looks == [False, True, False, False, True]


def fail(*_arguments, **_options) -> None:
    raise TerminalsDown("no answer")


def test_a_silent_server_is_not_waited_for_again_and_again(fleet, tmux_server) -> None:
    """A death on another server is noticed meanwhile; a server that answers again gets its full timeout."""
    fleet.sessions.create("sleep", args=["1000"], name="one")
    watching = residents.Resident(fleet._access.context, fleet.caller, lambda _report: None)
    tmux = fleet._access.context.tmux(tmux_server)
    whole, tmux.timeout = tmux.timeout, 0.2
    server = Tmux(tmux_server).panes().server_pid
    os.kill(server, signal.SIGSTOP)
    try:
        watching._pass()
        assert tmux.timeout < whole / 5
    finally:
        os.kill(server, signal.SIGCONT)
    watching._pass()
    assert tmux.timeout == whole
    watching.close()


@pytest.mark.parametrize(("sessions", "seconds"), [(0, 30.0), (4, 30.0), (5, 60.0)])
def test_s001_4_a_full_pass_every_30_s_and_every_60_s_from_five_sessions_on(fleet, sessions, seconds) -> None:
    watching = residents.Resident(fleet._access.context, fleet.caller, lambda _report: None)
    watching._rows = [{"id": f"s_{number}", "name": "x", "status": "running"} for number in range(sessions)]
    assert watching._interval() == seconds
    watching.close()
