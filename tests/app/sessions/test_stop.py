"""Stop: it saves first, then asks the agent to exit, and proves the end. It types into no dialog or draft."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mam
from mam.adapters.agents.practice import Practice
from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.app.context import claims
from mam.app.messages import send as senders
from mam.app.sessions import stop as stops
from mam.core import activity, stop_escalation
from mam.core.errors import NotAllowed, SessionNotFound, TerminalsDown

QUICK = ["--speed", "0"]


def exists(pid: int) -> bool:
    return process.identify(pid) is not None


def test_a_graceful_stop(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    outcome = session.stop(reason="api_error")
    row = outcome.row
    assert (row["status"], row["resumable"], row["stop_reason"]) == ("stopped", True, "api_error")
    assert (row["termination_mode"], row["exit_status"]) == ("graceful", 0)
    assert row["practice_session_id_own"] == row["conversations"][0]["id"]
    assert "❯ hello" in row["last_visible_note"]
    assert row["pane"]["pid"] == session.row["pane"]["pid"]
    assert not exists(row["pane"]["pid"])
    assert Tmux(tmux_server).panes().panes == []
    assert "status: stopped" in Path(fleet.registry_file).read_text(encoding="utf-8")


def test_an_agent_that_draws_the_end_of_its_turn_late_is_asked_to_exit(
    fleet, monkeypatch, until_reported
) -> None:
    """Its hook says that it is idle, while its screen still shows the turn. Seen with Claude Code 2.1.325."""
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    # The screen may show it before the hook, which is a process of its own, has reported it.
    until_reported(session, "Stop")
    read_screen, looks = Practice.read_screen, []

    def draw_late(kind, screen):
        looks.append(read_screen(kind, screen))
        if len(looks) < 3:
            looks[-1].state = activity.WORKING
        return looks[-1]

    monkeypatch.setattr(Practice, "read_screen", draw_late)
    assert session.stop().row["termination_mode"] == "graceful"


def test_stopping_again_says_so(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    session.stop()
    again = fleet.sessions.stop(session.name)
    assert again.changed is False
    assert (again.note or "").startswith("already stopped (")


def test_an_unregistered_name_is_refused(fleet) -> None:
    fleet.sessions.create("practice", args=QUICK)
    with pytest.raises(SessionNotFound) as caught:
        fleet.sessions.stop("demo-app-creator-practise")
    assert caught.value.exit_code == 1
    assert "demo-app-creator-practice" in (caught.value.hint or "")


def test_an_unregistered_tmux_session_by_force(fleet, tmux_server) -> None:
    kept = fleet.sessions.create("sleep", name="bill", args=["1000"])
    other = fleet.sessions.create("sleep", name="billing", args=["1000"])
    fleet._access.context.registry.change(lambda transaction: transaction.remove(kept.id))
    document = fleet.sessions.stop_unregistered("bill")
    assert document["stopped"] == "bill"
    assert not exists(kept.row["pane"]["pid"])
    assert exists(other.row["pane"]["pid"])
    assert fleet.sessions.log()[-1]["detail"]["name"] == "bill"


@pytest.mark.promise("P29")
def test_a_tool_never_runs_because_of_a_stop(fleet, workspace) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    Tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], "/ask touch pwned", mark=session.id, enter=True
    )
    session.wait("waiting", timeout=10)
    row = session.stop().row
    assert row["status"] == "stopped"
    assert "Do you want to proceed?" in row["last_visible_note"]
    assert not (workspace / "pwned").exists()


@pytest.mark.promise("P31")
def test_a_draft_is_not_submitted(fleet, home) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    Tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], "my half-typed", mark=session.id, enter=False
    )
    fleet.sessions.wait(session.name, "text:my half-typed", timeout=10)
    row = session.stop().row
    assert row["status"] == "stopped"
    transcript = home / ".local/share/mam-practice" / f"{row['practice_session_id_own']}.jsonl"
    assert "half-typed" not in transcript.read_text(encoding="utf-8")


@pytest.mark.promise("P17")
def test_an_agent_that_ignores_everything_is_killed_with_its_tree(fleet) -> None:
    session = fleet.sessions.create("practice", args=["--ignore-sigterm", *QUICK])
    row = session.stop(force=True).row
    assert (row["status"], row["termination_mode"], row["exit_status"]) == ("stopped", "forced", 137)
    assert not exists(row["pane"]["pid"])


@pytest.mark.promise("P17")
def test_children_of_the_agent_end_with_it_and_other_processes_do_not(fleet, workspace, until) -> None:
    script = workspace / "family.sh"
    script.write_text("sleep 1001 & setsid sleep 1002 & echo $! > setsid.pid; wait\n", encoding="utf-8")
    session = fleet.sessions.create("sh", args=[str(script)])
    other = fleet.sessions.create("sleep", args=["1003"])
    root = session.row["pane"]["pid"]
    until(lambda: len(process.tree(root)) == 3)
    family = {identity.pid for identity in process.tree(root)}
    session.stop()
    assert not any(exists(pid) for pid in family)
    assert exists(other.row["pane"]["pid"])


@pytest.mark.promise("P17")
@pytest.mark.parametrize(
    ("trap", "mode", "leaves"),
    [("echo bye > bye; exit", "graceful", ["bye", "ready"]), ("", "forced", ["ready"])],
    ids=["ends when asked", "ignores it"],
)
def test_a_child_that_outlives_the_agent_is_asked_to_end_then_killed(
    fleet, workspace, until, trap, mode, leaves
) -> None:
    """A process in a session of its own gets no signal when the agent and its terminal end."""
    (workspace / "marks").mkdir()
    child = workspace / "child.sh"
    child.write_text(
        f"cd marks; trap '{trap}' TERM; touch ready; while :; do sleep 0.05; done\n", encoding="utf-8"
    )
    session = fleet.sessions.create("sh", args=["-c", f"setsid sh {child} & exec sleep 1000"])
    until((workspace / "marks/ready").exists)
    family = {identity.pid for identity in process.tree(session.row["pane"]["pid"])}
    row = session.stop().row
    assert (row["status"], row["termination_mode"]) == ("stopped", mode)
    assert sorted(path.name for path in (workspace / "marks").iterdir()) == leaves
    assert not any(exists(pid) for pid in family)


def test_a_pane_that_is_gone_already_only_changes_the_record(fleet, tmux_server, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: not exists(session.row["pane"]["pid"]))
    row = session.stop().row
    assert (row["status"], row["exit_status"]) == ("stopped", 137)
    assert Tmux(tmux_server).panes().panes == []


def test_the_whole_server_is_gone(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    Tmux(tmux_server).kill_server()
    assert session.stop().row["status"] == "stopped"


@pytest.mark.promise("P3")
def test_a_server_that_does_not_answer_leaves_everything(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    fleet._access.context.tmux(tmux_server).timeout = 0.5
    before = Path(fleet.registry_file).read_bytes()
    os.kill(session.row["pane"]["server_pid"], signal.SIGSTOP)
    try:
        with pytest.raises(TerminalsDown) as caught:
            session.stop()
        assert caught.value.exit_code == 2
        assert fleet.sessions.status(session.id)["tmux_alive"] is None
    finally:
        os.kill(session.row["pane"]["server_pid"], signal.SIGCONT)
    assert Path(fleet.registry_file).read_bytes() == before
    assert exists(session.row["pane"]["pid"])


@pytest.mark.promise("P21")
def test_purge_deletes_one_conversation_and_only_that(fleet, home) -> None:
    first = fleet.sessions.create("practice", args=QUICK, prompt="first")
    second = fleet.sessions.create("practice", args=QUICK, prompt="second")
    folder = home / ".local/share/mam-practice"
    row = first.stop(purge_conversation=True).row
    assert (row["status"], row["resumable"], row["termination_mode"]) == ("terminated", False, "purge")
    assert row["practice_session_id_own"] is None
    assert [path.stem for path in folder.glob("*-*.jsonl")] == [second.row["practice_session_id_own"]]


@pytest.mark.promise("P21")
def test_purge_never_follows_a_link(fleet, home, tmp_path) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    transcript = home / ".local/share/mam-practice" / f"{session.row['practice_session_id_own']}.jsonl"
    elsewhere = tmp_path / "precious"
    transcript.rename(elsewhere)
    transcript.symlink_to(elsewhere)
    with pytest.raises(NotAllowed, match="link"):
        session.stop(purge_conversation=True)
    assert elsewhere.exists()
    row = fleet.sessions.get(session.id).row
    assert (row["status"], row["resumable"]) == ("stopped", True)


def test_an_ended_session_can_still_be_purged(fleet, home) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.stop()
    assert session.stop(purge_conversation=True).row["status"] == "terminated"
    assert not list((home / ".local/share/mam-practice").glob("*-*.jsonl"))


def test_s000_24_a_purge_keeps_the_reason_of_the_stop(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    stopped = session.stop(reason="api_error").row
    purged = session.stop(purge_conversation=True).row
    assert (purged["status"], purged["termination_mode"]) == ("terminated", "purge")
    assert (purged["stop_reason"], purged["stopped_at"]) == ("api_error", stopped["stopped_at"])
    again = fleet.sessions.stop(session.name)
    assert again.note == f"already terminated ({purged['terminated_at']}, api_error)"
    assert session.stop(purge_conversation=True, reason="enough").row["stop_reason"] == "enough"


def test_s000_24_a_purge_of_a_running_session_is_a_stop(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    assert session.stop(purge_conversation=True).row["stop_reason"] == "manual_stop"


@pytest.fixture
def died(fleet, tmux_server, until, hands_on):
    """Return a session whose death is recorded, with its dead pane."""
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: [pane.dead for pane in Tmux(tmux_server).panes().panes] == [True])
    fleet.monitor.once()
    assert session.status()["status"] == "terminated"
    return session


@pytest.mark.parametrize("force", [False, True])
def test_s000_33_a_stop_of_an_ended_session_removes_its_dead_pane(died, fleet, tmux_server, force) -> None:
    before = fleet.sessions.get("worker").row
    outcome = fleet.sessions.stop("worker", force=force)
    assert (outcome.note or "").startswith(f"already terminated ({before['terminated_at']}, auto-detected)")
    assert Tmux(tmux_server).panes().panes == []
    assert fleet.sessions.get("worker").row == before, "the row stays as it is"
    assert fleet._access.context.registry.view().intents == []
    assert (
        fleet.sessions.stop("worker").note == f"already terminated ({before['terminated_at']}, auto-detected)"
    )


def test_s000_33_only_its_own_dead_pane_is_removed(died, fleet, tmux_server) -> None:
    tmux = Tmux(tmux_server)
    context = fleet._access.context
    pane = died.row["pane"]["id"]
    tmux.unmark(pane, died.id)
    assert fleet.sessions.stop("worker").changed is False
    assert [(one.id, one.dead) for one in tmux.panes().panes] == [(pane, True)]
    tmux.mark(pane, died.id, context.paths.root)
    subprocess.run(["tmux", "-L", tmux_server, "respawn-pane", "-t", pane, "sleep 1000"], check=True)
    assert (fleet.sessions.stop("worker", force=True).note or "").startswith("already terminated")
    assert [(one.id, one.dead) for one in tmux.panes().panes] == [(pane, False)]


def test_s000_33_a_pane_that_lives_again_is_not_removed(died, fleet, tmux_server, monkeypatch) -> None:
    """Somebody starts a program in the pane after mam has looked."""
    pane = died.row["pane"]["id"]
    real = Tmux.kill_pane

    def kill_late(self, *arguments, **options):
        subprocess.run(["tmux", "-L", tmux_server, "respawn-pane", "-t", pane, "sleep 1000"], check=True)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Tmux, "kill_pane", kill_late)
    fleet.sessions.stop("worker")
    assert [one.dead for one in Tmux(tmux_server).panes().panes] == [False]


def test_s000_33_a_server_that_does_not_answer_changes_nothing(died, fleet, tmux_server) -> None:
    fleet._access.context.tmux(tmux_server).timeout = 0.5
    server = died.row["pane"]["server_pid"]
    os.kill(server, signal.SIGSTOP)
    try:
        assert (fleet.sessions.stop("worker").note or "").startswith("already terminated")
    finally:
        os.kill(server, signal.SIGCONT)


@pytest.mark.parametrize(
    ("script", "options", "mode"),
    [
        ("exec sleep 1000", {}, "graceful"),
        ("trap '' INT; while :; do sleep 0.1; done", {}, "pane-closed"),
        ("exec sleep 1000", {"force": True}, "forced"),
    ],
)
def test_s000_9_the_row_says_how_a_program_without_an_exit_word_ended(
    fleet, monkeypatch, until, script, options, mode
) -> None:
    monkeypatch.setitem(stop_escalation.GRACE, stop_escalation.ASK, 0.5)
    session = fleet.sessions.create("sh", args=["-c", f"echo ready; {script}"])
    until(lambda: "ready" in session.read())
    row = session.stop(**options).row
    assert (row["status"], row["termination_mode"]) == ("stopped", mode)
    assert fleet.sessions.log(session.name)[-1]["detail"]["mode"] == mode


def test_s000_9_a_pane_that_was_closed_is_not_a_graceful_end(fleet) -> None:
    """mam types no exit word over a draft, so it closes the pane."""
    session = fleet.sessions.create("practice", args=QUICK)
    Tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], "my half-typed", mark=session.id, enter=False
    )
    fleet.sessions.wait(session.name, "text:my half-typed", timeout=10)
    assert session.stop().row["termination_mode"] == "pane-closed"


def test_s000_32_an_end_that_mam_only_found_is_not_called_graceful(fleet, until) -> None:
    # No agent: its hook might outlive it, and the stop would end that.
    session = fleet.sessions.create("sleep", args=["1000"])
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: not exists(session.row["pane"]["pid"]))
    row = session.stop().row
    assert (row["status"], row["termination_mode"], row["exit_status"]) == ("stopped", "auto-detected", 137)


@pytest.mark.parametrize(("force", "mode"), [(False, "graceful"), (True, "forced")])
def test_s000_9_a_stop_that_recovery_finishes_says_how_it_ended(
    fleet, monkeypatch, until, force, mode
) -> None:
    session = fleet.sessions.create("practice", args=QUICK)

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stops.Stop, "_end", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.stop(force=force)

    def is_recovered() -> bool:
        # The tmux server ends with its last pane. While it does, it gives no answer, and recovery waits.
        fleet.sessions.resumable()
        return fleet.sessions.get(session.id).row["status"] == "stopped"

    until(is_recovered)
    assert fleet.sessions.get(session.id).row["termination_mode"] == mode


def test_two_stops_at_once_are_one(fleet) -> None:
    from concurrent.futures import ThreadPoolExecutor

    session = fleet.sessions.create("practice", args=QUICK)
    fleets = [fleet.for_thread() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda other: other.sessions.stop(session.name), fleets))
    assert sorted(outcome.changed for outcome in outcomes) == [False, False, False, True]
    for other in fleets:
        other.close()
    assert [entry["verb"] for entry in fleet.sessions.log(session.name)].count("stop") == 1


@pytest.fixture
def fake_box(fleet, monkeypatch, until):
    """Return a function that opens a dialog, paints an empty input box over it, and lists what mam types."""
    typed = []

    def paint():
        session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
        tmux = fleet._access.context.tmux(session.row["tmux_server"])
        tmux.paste(session.row["pane"]["id"], "run ls", mark=session.id, enter=True)
        until(lambda: "Do you want to proceed" in session.read())
        rule = "─" * 60
        fake = f"\x1b[2J\x1b[H{rule}\r\n❯ \r\n{rule}\r\n  ? for help\x1b[2;3H"
        with Path(tmux.pane(session.row["pane"]["id"]).tty).open("w", encoding="utf-8") as tty:
            tty.write(fake)
        until(lambda: "Do you want to proceed" not in session.read())
        monkeypatch.setattr(Tmux, "paste", lambda self, pane, text, **more: typed.append(text))
        return session, typed

    return paint


def test_mam_types_nothing_into_an_input_box_that_covers_a_dialog(fake_box, until_reported) -> None:
    """The output of a tool can look like an empty input box, while the agent reports that it is waiting."""
    session, typed = fake_box()
    until_reported(session, "PermissionRequest")
    assert session.send("words")["state"] == "held"
    assert session.stop().row["status"] == "stopped"
    assert typed == []


def test_mam_types_nothing_while_the_hook_of_the_dialog_is_late(fake_box, monkeypatch) -> None:
    """The title of the terminal arrives before the hook."""
    real = Practice.read_hook

    def read_hook(self, payload):
        event = real(self, payload)
        return None if event and event.state == "waiting" else event

    monkeypatch.setattr(Practice, "read_hook", read_hook)
    monkeypatch.setattr(activity, "FRESH_SECONDS", 1000.0)
    session, typed = fake_box()
    assert session.send("words")["state"] == "held"
    assert session.stop().row["status"] == "stopped"
    assert typed == []


def test_the_exit_word_is_not_appended_to_a_message_that_is_being_typed(fleet, monkeypatch) -> None:
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
    typist = subprocess.Popen(["sleep", "1000"])
    typed: list[str] = []
    monkeypatch.setattr(stops, "type_text", lambda context, row, word: typed.append(word))
    monkeypatch.setattr(stops, "_TYPING_SECONDS", 0.1)
    monkeypatch.setattr(senders, "deliver", lambda *_arguments: None)
    monkeypatch.setattr(senders, "_PATIENCE", 0.0)
    try:
        fleet.messages.send("one", "hello", message_id="m_00000001")
        owner = process.identify(typist.pid).as_json()
        fleet._access.context.registry.note(
            lambda transaction: messages.update(transaction, "m_00000001", state="typing", owner=owner)
        )
        assert session.stop().row["status"] == "stopped"
    finally:
        typist.kill()
        typist.wait(10)
    assert typed == []


def test_no_message_is_typed_into_a_session_that_is_being_stopped(fleet) -> None:
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
    with claims.claim_session(fleet._access.context, "stop", "one", lambda _transaction, _row: {}):
        receipt = session.send("hello")
    assert (receipt["state"], receipt["reason"]) == ("held", "it is being stopped")
    assert session.send("and this", timeout=10)["state"] in ("submitted", "queued")
    assert [message["state"] for message in fleet.messages.inbox("one")] == ["submitted"] * 2


def test_a_late_interrupted_stop_ends_its_job_as_any_stop_does(fleet, monkeypatch) -> None:
    job = fleet.jobs.submit("please never report", agent="practice", agent_session="poet", args=QUICK)

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stops.Stop, "_end", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fleet.sessions.stop("poet", reason="enough")
    (row,) = fleet._access.context.registry.view().rows
    assert row["status"] == "running", "nothing is recorded yet"
    fleet.sessions.resumable()
    assert fleet.sessions.get("poet").row["status"] == "stopped"
    ended = fleet.jobs.status(job["job_id"])
    assert (ended["status"], ended["terminal_event"], ended["terminal_detail"]) == (
        "cancelled",
        "completed",
        "enough",
    )


def test_a_stop_that_is_cut_off_early_says_once_that_it_terminates(fleet, monkeypatch) -> None:
    job = fleet.jobs.submit("please never report", agent="practice", agent_session="poet", args=QUICK)

    def cut_off(*_given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stops.Stop, "_escalate", cut_off)
        with pytest.raises(KeyboardInterrupt):
            fleet.sessions.stop("poet")
    fleet.sessions.resumable()
    details = [one["detail"] for one in fleet.jobs.logs(job["job_id"])["events"]]
    assert details.count("terminating") == 1
    assert fleet.sessions.log("poet")[-1]["detail"]["recovered"] is True


@pytest.mark.parametrize("verb", ["stop", "resume", "archive", "forget"])
def test_a_verb_for_an_unknown_name_makes_no_root(home, tmp_path, verb) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with mam.open(str(folder)) as fleet, pytest.raises(SessionNotFound, match="nobody"):
        getattr(fleet.sessions, verb)("nobody")
    assert list(folder.iterdir()) == []


def test_s000_3_the_server_of_the_row_is_used(fleet, tmux_server, workspace, monkeypatch) -> None:
    other = f"{tmux_server}-2"
    try:
        session = fleet.sessions.create("sleep", args=["1000"], name="one", tmux_server=other)
        monkeypatch.delenv("TMUX_SERVER_NAME")
        with mam.open(str(workspace)) as later:
            row = later.sessions.stop("one").session.row
        assert (row["status"], row["tmux_server"]) == ("stopped", other)
        assert not exists(session.row["pane"]["pid"])
        assert Tmux(other).panes().panes == []
    finally:
        Tmux(other).kill_server()


def test_s000_12_what_ignores_every_request_is_killed(fleet, workspace, until, monkeypatch) -> None:
    for method in (stop_escalation.ASK, stop_escalation.HANG_UP):
        monkeypatch.setitem(stop_escalation.GRACE, method, 0.1)
    script = workspace / "stubborn.sh"
    script.write_text("trap '' HUP TERM INT; touch ready; while :; do sleep 1; done\n", encoding="utf-8")
    session = fleet.sessions.create("sh", args=[str(script)])
    until((workspace / "ready").exists)
    row = session.stop().row
    assert (row["status"], row["termination_mode"]) == ("stopped", "forced")
    assert not exists(row["pane"]["pid"])


SNIPPETS = """
# the pre-flight of the document
python3 -c "
import yaml
d = yaml.safe_load(open('$AGENT_SESSIONS_YAML'))
names = [s['name'] for s in d.get('tmux_sessions', [])]
if '$SESSION_NAME' not in names:
    raise SystemExit(1)
"
python3 -c "
import yaml
d = yaml.safe_load(open('$AGENT_SESSIONS_YAML'))
s = [x for x in d['tmux_sessions'] if x['name']=='$SESSION_NAME'][0]
print(s.get('status', 'unknown'))
"
# its verification
tmux -L "$SERVER" has-session -t "$SESSION_NAME" 2>/dev/null && echo "STILL ALIVE" || echo "OK: tmux gone"
python3 -c "
import yaml
d = yaml.safe_load(open('$AGENT_SESSIONS_YAML'))
s = [x for x in d['tmux_sessions'] if x['name']=='$SESSION_NAME'][0]
assert s['status'] == 'stopped', s['status']
assert s.get('stopped_at'), 'missing stopped_at'
print(s['pane']['pid'], s['pane']['cmd'], s['pane']['cwd'])
"
"""


def test_s000_16_the_snippets_of_the_document_read_the_registry(fleet, tmux_server, workspace) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    session.stop()
    values = {"SESSION_NAME": session.name, "AGENT_SESSIONS_YAML": fleet.registry_file, "SERVER": tmux_server}
    script = SNIPPETS.replace("python3", sys.executable)
    result = subprocess.run(
        ["bash", "-e", "-c", script], env={**os.environ, **values}, capture_output=True, text=True, check=True
    )
    pane = session.row["pane"]
    assert result.stdout.splitlines() == [
        "stopped",
        "OK: tmux gone",
        f"{pane['pid']} {pane['cmd']} {workspace}",
    ]
