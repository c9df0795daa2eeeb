"""`mam restore`: a state that is gone, a damaged one, and an older one; and nothing is done twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said
from tests.waiting import wait_until

import mam
from mam.adapters.store import backup_file, checked_copy, disk_reserve, incarnation, state_replacement
from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs, messages, outbox
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.app.context.resident_start_and_lock import lock
from mam.app.jobs.new_job import new_id, record_job
from mam.app.messages import send
from mam.app.monitor import backup
from mam.app.roots import restore as restoring
from mam.core import caller as callers
from mam.core.backup_rotation import CHANGE, RESTORED
from mam.core.errors import (
    Conflict,
    DiskFull,
    InvalidPath,
    NameTaken,
    NeedsConfirmation,
    NotAllowed,
    Refused,
    RegistryBusy,
    RegistryCorrupt,
    RootForeign,
    RootMissing,
    SchemaTooNew,
)
from mam.core.message_rules import MessageState, state_after_restore
from mam.core.session_row import current_conversation

# They ask tmux for the panes of the root.
pytestmark = pytest.mark.starts

ENDED = {
    "id": "s_1f00ab42",
    "name": "one",
    "agent": "practice",
    "status": "stopped",
    "tmux_server": "mam-none",
    "conversations": [{"id": "c0ffee", "source": "create"}],
    "resumable": True,
}
UNKNOWN = {"id": "s_2f00ab42", "name": "two"}


@pytest.fixture
def reopened(workspace):
    """Return a function that opens the root again, as the next command does."""
    opened = []

    def reopen(path=None):
        fleet = mam.open(str(path or workspace))
        opened.append(fleet)
        return fleet

    yield reopen
    for fleet in opened:
        fleet.close()


def copy_now(fleet, *, at=None, tokens=True) -> Path:
    """Make a copy as the resident does; return it."""
    context = fleet._access.context
    now = context.now() if at is None else at
    folder = backup_file.folder_of(context.user_state.folder, context.root_id, context.paths.state)
    path = backup_file.new_path(folder, CHANGE, now)
    facts = backup_file.facts_of(context.paths, context.root_id, now, CHANGE, with_tokens=tokens)
    backup_file.write(context.registry.writer(), path, facts)
    return Path(path)


def restored(copy) -> str:
    """Return the path of a copy after a root was restored from it."""
    (found,) = Path(copy).parent.glob(f"{Path(copy).name.partition('-')[0]}-restored-at-*.db*")
    return str(found)


def lose(workspace) -> None:
    """Do what `git clean -fdx` does to a repository that holds nothing else."""
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    subprocess.run(["git", "-C", str(workspace), "clean", "-fdxq"], check=True)
    assert not (workspace / ".mam").exists()


def a_message(message_id: str, **facts):
    return {
        "id": message_id,
        "session_id": ENDED["id"],
        "sender": "user",
        "text": f"the text of {message_id}",
        "is_command": False,
        "wanted": "ready",
        "state": "held",
        "reason": "it has ended",
        "conversation": None,
        **facts,
    }


@pytest.fixture
def root(home, tmux_server, workspace):
    """Make a root with an ended session, a held message and an open job; return the job."""
    with mam.open(str(workspace)) as fleet:
        fleet.init()

        def work(transaction):
            transaction.add({**ENDED, "workspace": str(workspace)})
            messages.add(transaction, a_message("m_held"))

        job: str = fleet.jobs.submit("look at it", type="human")["job_id"]
        fleet._access.context.registry.change(work)
    return job


@pytest.mark.parametrize("verb", ["ls", "doctor", "send", "job event"])
def test_d3_every_verb_says_first_that_the_state_is_gone(root, workspace, verb) -> None:
    lose(workspace)
    words = {
        "ls": ["ls"],
        "doctor": ["doctor"],
        "send": ["send", "one", "hello"],
        "job event": ["job", "event", root, "--event", "progress"],
    }
    done = subprocess.run(
        [sys.executable, "-m", "mam", *words[verb]],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    first = (done.stdout + done.stderr if verb == "doctor" else done.stderr).strip()
    assert "the state of this root is gone" in first, (done.stdout, done.stderr)
    assert "mam restore" in first
    assert not (workspace / ".mam").exists()


def test_d3_below_a_lost_root_the_loss_is_said_and_a_root_is_made_only_on_purpose(root, workspace) -> None:
    below = workspace / "below" / "deeper"
    lose(workspace)
    below.mkdir(parents=True)
    with mam.open(str(below)) as fleet:
        assert fleet.root == str(workspace)
        with pytest.raises(RootMissing, match="the state of this root is gone"):
            fleet.sessions.create("practice", wait=False)
        assert not (below / ".mam").exists()
        fleet.init()
    assert (below / ".mam").is_dir()
    with mam.open(str(below)) as fleet:
        assert fleet.root == str(below)


def states(fleet, *message_ids):
    context = fleet._access.context
    found = [context.registry.peek(lambda it, m=m: messages.find(it, m), None) for m in message_ids]
    return [message and (message.state, message.reason_code) for message in found]


def damage(workspace, number: int, at: int = 0) -> None:
    """Flip a byte on a page of the database, into which nobody has written since it was closed."""
    assert not (workspace / ".mam" / "state.db-wal").exists()
    path = workspace / ".mam" / "state.db"
    content = bytearray(path.read_bytes())
    content[(number - 1) * 4096 + at] ^= 0x5A
    path.write_bytes(content)


def page_of(workspace, table: str) -> int:
    connection = sqlite3.connect(workspace / ".mam" / "state.db")
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (table,)).fetchone()
    connection.close()
    return int(page)


class Draft:
    """What a person types into the input box of a session, and deletes again."""

    def __init__(self, fleet, name) -> None:
        row = fleet.sessions.get(name).row
        self.tmux, self.pane = fleet._access.context.tmux(row["tmux_server"]), row["pane"]["id"]
        self.name = ["tmux", "-L", row["tmux_server"], "send-keys", "-t", self.pane]

    def type(self) -> None:
        subprocess.run([*self.name, "-l", "half a thought"], check=True)

    def delete(self) -> None:
        subprocess.run([*self.name, "C-u"], check=True)


def send_and_wait(fleet, name, text) -> None:
    """Send a text, and wait until the agent has taken it. With its id it is the same message each time."""
    message_id = fleet.messages.send(name, text)["message_id"]
    wait_until(
        lambda: fleet.messages.send(name, text, message_id=message_id)["state"] == "submitted",
        f"the message {text} to {name}",
    )


@pytest.mark.promise("P10")
@pytest.mark.slow
def test_d3_a_cleaned_repository_has_the_same_agents_and_messages_again(
    fleet, workspace, reopened, until
) -> None:
    """`git clean -fdx` with four live agents, three held messages, and one that was taken since the copy."""
    sessions = {name: fleet.sessions.create("practice", name=name, args=QUICK) for name in "abcd"}
    before = {name: (session.id, session.row["pane"]["pid"]) for name, session in sessions.items()}
    drafts = {name: Draft(fleet, name) for name in "abc"}
    for name, draft in drafts.items():
        fleet.messages.send(name, "the first words", timeout=20)
        draft.type()
        until(lambda name=name: "half a thought" in fleet.sessions.read(name))
    held = [fleet.messages.send(name, text) for name, text in (("a", "A1"), ("a", "A2"), ("b", "B1"))]
    taken = fleet.messages.send("c", "C1")
    assert {receipt["state"] for receipt in (*held, taken)} == {"held"}
    copy_now(fleet)
    drafts["c"].delete()
    send_and_wait(fleet, "c", "C2")
    assert said(fleet, "c") == ["the first words", "C1", "C2"]
    fleet.close()
    lose(workspace)

    again = reopened()
    with pytest.raises(RootMissing, match="the state of this root is gone") as refused:
        again.sessions.create("practice", name="e")
    assert "mam restore" in refused.value.hint and "mam init --new" in refused.value.hint
    document = again.restore()
    assert document["messages"]["held"] == [receipt["message_id"] for receipt in held]
    assert document["messages"]["submitted"] == [taken["message_id"]]
    assert document["sessions_taken_back"] == [], "the copy knows all four"
    assert sorted(document["sessions_still_running"]) == ["a", "b", "c", "d"]
    rows = {row["name"]: row for row in again.sessions.ls()["sessions"]}
    assert {name: (row["id"], row["pane"]["pid"]) for name, row in rows.items()} == before
    assert all(row["tmux_alive"] for row in rows.values())
    assert [said(again, name) for name in "ab"] == [["the first words"]] * 2, "nothing was typed"

    drafts["a"].delete()
    drafts["b"].delete()
    for name, words in (("a", ["A1", "A2"]), ("b", ["B1"])):
        send_and_wait(again, name, "last")
        assert said(again, name) == ["the first words", *words, "last"], "each of them once"
    assert said(again, "c") == ["the first words", "C1", "C2"]
    for name in "abcd":
        assert again.sessions.stop(name, force=True).session.row["status"] == "stopped"


def conversation_of(fleet, name):
    return current_conversation(fleet.sessions.get(name).row)


def test_d3_panes_are_taken_back_that_the_copy_does_not_have(
    fleet, workspace, reopened, hands_on, until
) -> None:
    """Since the copy was made, one session was resumed, one began, and one was stopped."""
    ended = fleet.sessions.create("practice", name="ended", args=QUICK)
    ended.send("hello", timeout=20)
    ended.stop()
    gone = fleet.sessions.create("sleep", name="gone", args=["1000"])
    copy = copy_now(fleet)
    ended = ended.resume()
    new = fleet.sessions.create("practice", name="new", args=QUICK, role="tester")
    gone.stop(force=True)
    fleet.close()
    lose(workspace)
    again = reopened()
    document = again.restore()
    assert sorted(document["sessions_taken_back"]) == ["ended", "new"]
    assert document["sessions_still_running"] == []
    assert document["conversations_unknown"] == ["new"], "it has said nothing yet"
    assert document["file"] == restored(copy)
    rows = {row["name"]: row for row in again.sessions.ls()["sessions"]}
    for session in (ended, new):
        row = rows[session.name]
        assert (row["id"], row["status"], row["tmux_alive"]) == (session.id, "running", True)
        assert row["pane"]["pid"] == session.row["pane"]["pid"]
        assert again.messages.send(session.name, "are you there", timeout=20)["state"] == "submitted"
        until(lambda name=session.name: again.monitor.once() and conversation_of(again, name))
    assert (rows["gone"]["status"], rows["gone"]["tmux_alive"]) == ("running", False)
    again.monitor.once()
    assert again.sessions.get("gone").row["status"] == "terminated"
    for name in ("ended", "new"):
        again.sessions.stop(name, force=True)


def test_a_job_with_a_live_pane_goes_on_and_one_without_is_parked(fleet, workspace, reopened) -> None:
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    context = fleet._access.context
    broker = {"broker": {"host": "127.0.0.1", "port": 1}, "topic_prefix": "x"}
    carried = record_job(context, fleet.caller, new_id(), "do it", **broker).id
    lost = record_job(context, fleet.caller, new_id(), "do it", message_id="m_task").id
    without_token = record_job(context, fleet.caller, new_id(), "do it").id

    def begin(transaction):
        for job_id in (carried, without_token):
            jobs.update(transaction, jobs.find(transaction, job_id), session_id=session.id, status="running")
        messages.add(transaction, a_message("m_task"))

    context.registry.note(begin)
    Path(job_files.token_file(context.paths.jobs, without_token)).unlink()
    token = job_files.read_token(context.paths.jobs, carried)
    copy_now(fleet)
    fleet.jobs.event(carried, "progress", detail="since the copy")
    fleet.close()
    lose(workspace)
    again = reopened()
    document = again.restore()
    assert document["jobs"]["going_on"] == [carried]
    assert set(document["jobs"]["parked"]) == {lost, without_token}
    registry = again._access.context.registry
    rows = registry.peek(lambda it: outbox.waiting(it, limit=100), [])
    assert {row.job_id for row in rows} == {carried}, "only that its events begin anew"
    assert all("since the copy" not in row.payload for row in rows)
    assert job_files.read_token(again._access.context.paths.jobs, carried) == token
    with mam.open(str(workspace)) as agent:
        agent._access._caller = callers.session(session.id, os.getpid())
        assert agent.jobs.event(carried, "completed", detail="done")["status"] == "completed"
    assert again.jobs.status(lost)["status"] == "parked"
    numbers = [entry["number"] for entry in again.jobs.logs(carried)["events"]]
    assert numbers == sorted(set(numbers))
    assert (workspace / ".mam" / "jobs" / f"{carried}.json").exists()
    assert states(again, "m_task") == [(MessageState.PARKED, "parked")]
    again.sessions.stop("worker", force=True)


@pytest.mark.promise("P8")
def test_e5_a_damaged_page_comes_back_and_the_answer_says_from_where(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        fleet._access.context.registry.note(lambda it: messages.add(it, a_message("m_later")))
        before = fleet._access.context.registry.note(incarnation.current)
    for page in [page_of(workspace, table) for table in ("sessions", "jobs")]:
        damage(workspace, page)
    fleet = reopened()
    with pytest.raises(RegistryCorrupt) as refused:
        fleet.sessions.create("practice", name="two")
    assert "mam restore" in refused.value.hint
    bytes_before = (workspace / ".mam" / "state.db").read_bytes()
    preview = reopened().restore(dry_run=True)
    assert (preview["changed"], preview["dry_run"]) == (False, True)
    assert (workspace / ".mam" / "state.db").read_bytes() == bytes_before
    document = reopened().restore()
    assert (document["source"], document["file"]) == ("salvage", restored(copy))
    assert document["salvage"]["copy"] == restored(copy)
    damaged_tables = {page["table"]: page for page in document["salvage"]["pages"]}
    assert {"sessions", "jobs"} <= set(damaged_tables)
    assert document["salvage"]["sources"]["messages"] == {"tree": 2, "leaf": 0, "copy": 0}
    again = reopened()
    assert again.sessions.names() == ["one"]
    assert again.jobs.status(root)["status"] == "parked"
    assert [state for state, _ in states(again, "m_held", "m_later")] == [MessageState.HELD] * 2
    assert Path(document["kept"], "state", "state.db").read_bytes() == bytes_before
    assert again._access.context.registry.peek(incarnation.current, None) > before
    assert again.sessions.forget("one")


def test_e5_a_destroyed_first_page_and_no_copy_cost_nothing_else(root, workspace, reopened) -> None:
    damage(workspace, 1)
    damage(workspace, 1, at=2000)
    fleet = reopened()
    with pytest.raises(RegistryCorrupt):
        fleet.sessions.ls()
    root_id = fleet._access.context.user_state.root_at(str(workspace / ".mam")).id
    document = reopened().restore()
    assert document["file"] is None
    again = reopened()
    assert again.sessions.names() == ["one"]
    assert again._access.context.root_id == root_id


def test_e5_a_command_that_met_the_damage_after_it_acted_says_so(
    root, workspace, reopened, tmux_server
) -> None:
    damage(workspace, page_of(workspace, "log"))
    fleet = reopened()
    with pytest.raises(RegistryCorrupt) as caught:
        fleet.sessions.create("sleep", name="started", args=["1000"])
    assert [pane.session_name for pane in Tmux(tmux_server).panes().panes] == ["started"]
    assert caught.value.hint.startswith("what this command began may be done: mam restore brings back")
    assert caught.value.hint.endswith("then look with mam ls")


def test_a_readable_page_with_an_unreadable_record_is_damage(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy_now(fleet)
    connection = sqlite3.connect(workspace / ".mam" / "state.db")
    connection.execute("UPDATE sessions SET data=replace(data, '{', '<')")
    connection.commit()
    connection.close()
    document = reopened().restore()
    assert document["salvage"]["sources"]["sessions"]["copy"] == 1
    assert reopened().sessions.names() == ["one"]


def test_an_older_copy_serves_where_the_newest_is_not_readable(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        older = copy_now(fleet, at=1_700_000_000.0)
        newer = copy_now(fleet)
    newer.write_bytes(b"no database" * 1000)
    backup_file.compress(str(older))
    lose(workspace)
    document = reopened().restore()
    assert [entry["file"] for entry in document["tried"]] == [str(newer)]
    assert document["file"] == restored(f"{older}.gz")
    assert Path(document["file"]).exists()
    assert document["kept"] is None
    entries = [entry for entry in reopened().sessions.log() if entry["verb"] == "restore"]
    assert [entry["detail"]["kept"] for entry in entries] == [None]
    assert reopened().sessions.names() == ["one"]


def test_what_was_forgotten_since_the_copy_does_not_come_back(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy_now(fleet)
        fleet.sessions.forget("one")
        fleet.jobs.cancel(root)
        fleet.jobs.forget(root)
    lose(workspace)
    reopened().restore()
    again = reopened()
    assert (again.sessions.names(), again.jobs.list()) == ([], [])


def test_later_copies_do_not_take_the_place_of_the_one_that_was_restored(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        # Its own week is over.
        copy = copy_now(fleet, at=1_700_000_000.0)
    lose(workspace)
    document = reopened().restore()
    assert document["file"] == restored(copy)
    context = reopened()._access.context
    for _ in range(3):
        backup.make_copy(context, CHANGE)
    reasons = [found.reason for found in backup.listed(context)]
    assert reasons.count(RESTORED) == 1, reasons
    again = reopened().restore(f"{document['file']}.gz", is_confirmed=True)["file"]
    assert again == restored(copy), "its week begins anew"


def test_an_older_copy_with_clearly_more_is_named(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        more = copy_now(fleet, at=1_700_000_000.0)
        fleet._access.context.registry.change(lambda it: it.remove(ENDED["id"]))
        copy_now(fleet, at=1_700_000_001.0)
        copy_now(fleet)
    backup_file.compress(str(more))
    lose(workspace)
    would = reopened().restore(dry_run=True)["older_copy"]
    document = reopened().restore()
    assert document["older_copy"] == would
    assert (would["file"], would["sessions"], would["messages"]) == (f"{more}.gz", 1, 1)
    back = reopened().restore(would["file"], is_confirmed=True)
    assert (back["older_copy"], reopened().sessions.names()) == (None, ["one"])


def test_what_a_killed_restore_left_is_below_the_user_state_and_goes(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        folder = Path(fleet._access.context.user_state.folder, "scratch")
    backup_file.compress(str(copy))
    seen = []

    def look(*_given):
        seen.extend((entry.stat().st_mode & 0o777, entry.name) for entry in folder.iterdir())

    stray = folder / "stray.new"
    stray.mkdir(parents=True, mode=0o700)
    (stray / "source.db").touch()
    os.utime(stray, (1, 1))
    lose(workspace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_replacement.StateReplacement, "exchange", look)
        reopened().restore(dry_run=True)
        with pytest.raises(RootMissing):
            reopened().restore()
    assert {mode for mode, _ in seen} == {0o700}
    assert not stray.exists()
    assert list(folder.iterdir()) == []


def test_the_copies_of_a_lost_and_of_a_damaged_root_are_listed(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copies = [str(copy_now(fleet))]
    damage(workspace, 1)
    damage(workspace, 1, at=2000)
    assert [copy["path"] for copy in reopened().monitor.backups()] == copies
    lose(workspace)
    below = workspace / "below"
    below.mkdir()
    for place in (workspace, below):
        assert [copy["path"] for copy in reopened(place).monitor.backups()] == copies


def test_going_back_in_time_is_confirmed_and_keeps_what_was_there(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        fleet.sessions.rename("one", "renamed")
        for _ in range(5):
            fleet.jobs.event(root, "progress", detail="since the copy")
        done = fleet.jobs.event(root, "completed")
    audit = workspace / "delegate_job_logs" / root / "events.ndjson"
    assert disk_reserve.make(str(workspace / ".mam"))
    number = job_files.last_number(str(audit))
    with pytest.raises(NeedsConfirmation, match="would be undone") as refused:
        reopened().restore(str(copy))
    assert "--yes" in refused.value.hint
    assert reopened().restore(str(copy), dry_run=True)["changed"] is False
    assert reopened().sessions.names() == ["renamed"]
    document = reopened().restore(str(copy), is_confirmed=True)
    again = reopened()
    assert (again.sessions.names(), again.jobs.status(root)["status"]) == (["one"], "parked")
    kept = sqlite3.connect(Path(document["kept"], "state", "state.db"))
    assert kept.execute("SELECT name FROM sessions").fetchall() == [("renamed",)]
    kept.close()
    assert document["files_left"] == []
    assert done["status"] == "completed"
    # The files of the job say what the database says now, and the audit log goes on.
    entries = again.jobs.logs(root)["events"]
    assert "completed" not in [entry["event"] for entry in entries]
    again.jobs.release(root)
    later = [line for line in job_files.read_log(str(audit)) if line["number"] > number]
    assert [line["event"] for line in later] == ["parked", "released"]
    log = job_files.read_log(str(workspace / ".mam" / "jobs" / f"{root}.events.log"))
    assert [line["event"] for line in log] == ["registered", "parked", "released"]
    # The state that is kept is a copy as well.
    reopened().restore(str(Path(document["kept"], "state", "state.db")), is_confirmed=True)
    assert (reopened().sessions.names(), reopened().jobs.status(root)["status"]) == (["renamed"], "completed")


def tmux_names(server) -> dict[str, str]:
    """Return the name of each tmux session by the id of the session of mam in it."""
    return {pane.mark: pane.session_name for pane in Tmux(server).panes().panes}


@pytest.mark.parametrize("dies", [False, True])
def test_a_session_that_was_renamed_since_the_copy_has_one_name_again(
    fleet, tmux_server, reopened, monkeypatch, dies
) -> None:
    first, second, third = (fleet.sessions.create("sleep", name=name, args=["1000"]) for name in "abc")
    copy = copy_now(fleet)
    # The name of the second is free again only when the first has its own.
    fleet.sessions.rename("a", "a2")
    fleet.sessions.rename("b", "a")
    subprocess.run(["tmux", "-L", tmux_server, "rename-session", "-t", "=c", "mine"], check=True)
    if dies:

        def die(*_) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(restoring, "recover_if_needed", die)
            fleet.restore(str(copy), is_confirmed=True)
    else:
        fleet.restore(str(copy), is_confirmed=True)
    again = reopened()
    rows = again.sessions.ls()["sessions"]
    assert {row["id"]: row["name"] for row in rows} == {first.id: "a", second.id: "b", third.id: "c"}
    # A name that a person gave to the tmux session stays.
    assert tmux_names(tmux_server) == {first.id: "a", second.id: "b", third.id: "mine"}
    assert again.sessions.rename("a", "a2").id == first.id
    assert tmux_names(tmux_server)[first.id] == "a2"
    for name in ("a2", "b", "c"):
        again.sessions.stop(name, force=True)


def test_the_name_of_a_tmux_session_whose_row_has_another_is_not_lost(
    fleet, workspace, tmux_server, reopened
) -> None:
    """After a loss nobody knows who renamed what, and a person can make both equal."""
    session = fleet.sessions.create("sleep", name="q", args=["1000"])
    copy_now(fleet)
    fleet.sessions.rename("q", "qx")
    fleet.close()
    lose(workspace)
    again = reopened()
    again.restore()
    assert tmux_names(tmux_server) == {session.id: "qx"}
    with pytest.raises(NameTaken, match="with the pane of 'q'") as refused:
        again.sessions.create("sleep", name="qx", args=["1000"])
    assert "mam rename q qx" in refused.value.hint
    assert again.sessions.rename("q", "qx").id == session.id
    assert again.sessions.rename("qx", "q").id == session.id
    assert tmux_names(tmux_server) == {session.id: "q"}
    again.sessions.stop("q", force=True)


def test_a_copy_of_another_place_makes_a_root_of_its_own_and_acts_by_nothing(
    root, workspace, reopened, tmp_path, monkeypatch
) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        root_id = fleet._access.context.root_id
    place = tmp_path / "another"
    place.mkdir()
    with pytest.raises(Refused, match="which is still there"):
        reopened(place).restore(str(copy))
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "another-state"))
    document = reopened(place).restore(str(copy))
    assert document["original"] == str(workspace)
    assert (document["messages"], document["jobs"]["parked"]) == ({"parked": ["m_held"]}, [root])
    again = reopened(place)
    assert again.sessions.names() == ["one"]
    assert again._access.context.root_id not in (None, root_id)
    assert again.jobs.status(root)["registry_dir"] == str(place / ".mam" / "jobs")


def test_an_older_mam_goes_back_to_the_copy_before_the_migration(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
    connection = sqlite3.connect(workspace / ".mam" / "state.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(SchemaTooNew):
        reopened().restore()
    assert reopened().restore(str(copy), is_confirmed=True)["source"] == "copy"
    assert reopened().sessions.forget("one")


REFUSED_FILES = {
    "nothing": (lambda path: None, InvalidPath),
    "a folder": (lambda path: path.mkdir(), InvalidPath),
    "a pipe": (os.mkfifo, InvalidPath),
    "a link": (lambda path: path.symlink_to("/etc/passwd"), InvalidPath),
    "no database": (lambda path: path.write_bytes(b"no database" * 1000), RegistryCorrupt),
    "an empty file": (lambda path: path.write_bytes(b""), RegistryCorrupt),
    "another program's": (lambda path: sqlite3.connect(path).execute("CREATE TABLE t(x)"), RegistryCorrupt),
    "a newer schema": (lambda path: sqlite3.connect(path).execute("PRAGMA user_version=99"), SchemaTooNew),
}


@pytest.mark.parametrize(("make", "error"), list(REFUSED_FILES.values()), ids=list(REFUSED_FILES))
def test_refused_files(root, workspace, reopened, tmp_path, make, error) -> None:
    path = tmp_path / "file"
    make(path)
    before = (workspace / ".mam" / "state.db").read_bytes()
    with pytest.raises(error) as refused:
        reopened().restore(str(path), is_confirmed=True)
    assert error is SchemaTooNew or "mam backup --list" in refused.value.hint
    assert (workspace / ".mam" / "state.db").read_bytes() == before
    assert not (workspace / ".mam.new").exists()


def test_a_sound_root_and_one_without_copies_are_refused(root, workspace, reopened, tmp_path) -> None:
    with pytest.raises(Refused, match="is sound") as refused:
        reopened().restore()
    assert "mam backup --list" in refused.value.hint
    lose(workspace)
    with pytest.raises(Refused, match="there is no copy of this root") as refused:
        reopened().restore()
    assert refused.value.hint.startswith("if you have a backup in a file: mam restore FILE; ")
    assert refused.value.hint.endswith("mam init --new")
    place = tmp_path / "new"
    place.mkdir()
    with pytest.raises(Refused, match="nothing to restore") as refused:
        reopened(place).restore()
    assert refused.value.hint.endswith("mam init makes this directory a root")


def test_another_roots_copy_is_refused_in_a_root_with_a_state(home, root, reopened, tmp_path) -> None:
    place = tmp_path / "other"
    place.mkdir()
    with mam.open(str(place)) as other:
        other.init()
        copy = copy_now(other)
    with pytest.raises(Refused, match=f"is a copy of {place}, and not of this root"):
        reopened().restore(str(copy), is_confirmed=True)


def test_a_foreign_root_and_everybody_but_a_person_are_refused(
    root, workspace, reopened, tmp_path, monkeypatch
) -> None:
    for caller in (callers.session("s_1f00ab42"), callers.Caller(callers.CallerKind.UNKNOWN, 1)):
        with pytest.raises(NotAllowed, match="'mam restore'"):
            restoring.restore(reopened()._access.context, caller)
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "another-state"))
    with pytest.raises(RootForeign, match="mam restore does not help here"):
        reopened().restore()


def test_while_another_command_is_at_work_nothing_is_replaced(root, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        fleet._access.context.registry.note(
            lambda it: messages.update(it, "m_held", state=MessageState.TYPING, owner=process.me().as_json())
        )
    with pytest.raises(RegistryBusy):
        reopened().restore(str(copy), is_confirmed=True)


def test_while_a_job_is_submitted_nothing_is_replaced(root, workspace, reopened) -> None:
    """Its session would start without it."""
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        owner = {"owner": process.me().as_json()}
        fleet._access.context.registry.note(lambda it: jobs.update(it, jobs.find(it, root), data=owner))
    with pytest.raises(RegistryBusy):
        reopened().restore(str(copy), is_confirmed=True)


def test_a_sender_that_waits_is_told_that_its_message_is_gone(
    fleet, workspace, reopened, monkeypatch
) -> None:
    fleet.sessions.create("practice", name="a", args=QUICK)
    copy = copy_now(fleet)
    deliver = send.deliver

    def replace_and_deliver(*given):
        monkeypatch.setattr(send, "deliver", deliver)
        reopened().restore(str(copy), is_confirmed=True)
        deliver(*given)

    monkeypatch.setattr(send, "deliver", replace_and_deliver)
    with pytest.raises(Conflict, match="was replaced") as told:
        fleet.messages.send("a", "hello")
    assert "mam read" in told.value.hint
    assert fleet.messages.send("a", "hello", timeout=20)["state"] == "submitted"
    assert said(fleet, "a") == ["hello"]
    reopened().sessions.stop("a", force=True)


def test_the_resident_ends_before_its_state_is_replaced(root, workspace, reopened, monitor, until) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
    running = monitor()
    until(lambda: lock(reopened()._access.context).holder())
    reopened().restore(str(copy), is_confirmed=True)
    assert running.poll() is not None, "it has ended by now"
    assert reopened().sessions.names() == ["one"]


@pytest.mark.parametrize("keeps_file", [False, True], ids=["all of it", "not the registry file"])
def test_d3_a_state_that_is_deleted_under_a_resident_is_gone(
    root, workspace, reopened, monitor, until, keeps_file
) -> None:
    """The resident makes nothing again: neither its lock nor a database from the registry file."""
    with mam.open(str(workspace)) as fleet:
        copy_now(fleet)
    running = monitor()
    until(lambda: lock(reopened()._access.context).holder())
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    cleaned = [".mam"] if keeps_file else []
    clean = ["git", "-C", str(workspace), "clean", "-fdxq", *cleaned]
    # git gives up where a file vanishes under it, such as one that the resident is making.
    until(lambda: (subprocess.run(clean, check=False), not (workspace / ".mam" / "state.db").exists())[1])
    until(lambda: running.poll() is not None)
    assert not (workspace / ".mam" / "state.db").exists()
    with pytest.raises(RootMissing, match="the state of this root is gone"):
        reopened().sessions.create("practice", wait=False)
    reopened().restore()
    assert reopened().sessions.names() == ["one"]
    assert reopened().messages.inbox("one")


@pytest.mark.parametrize(
    ("since", "state"),
    [
        ({"state": MessageState.UNCONFIRMED, "attempts": 1}, MessageState.UNCONFIRMED),
        ({"state": MessageState.QUEUED, "attempts": 1}, MessageState.QUEUED),
        ({"state": MessageState.SUBMITTED, "attempts": 1}, MessageState.SUBMITTED),
        ({"state": MessageState.TYPING, "attempts": 1, "owner": {}}, MessageState.UNCONFIRMED),
        ({"state": MessageState.FAILED, "attempts": 1}, MessageState.UNCONFIRMED),
        ({"state": MessageState.HELD, "attempts": 1}, MessageState.HELD),
        ({"state": MessageState.PARKED, "attempts": 0}, MessageState.HELD),
    ],
)
def test_what_was_typed_since_the_copy_is_not_typed_again(root, workspace, reopened, since, state) -> None:
    """The agent's record does not show it: it is queued there, or stands in the input box."""
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        fleet._access.context.registry.note(lambda it: messages.update(it, "m_held", **since))
    document = reopened().restore(str(copy), is_confirmed=True)
    assert document["messages"] == {state: ["m_held"]}
    assert [found for found, _ in states(reopened(), "m_held")] == [state]


def test_what_an_agent_has_queued_since_the_copy_keeps_what_was_typed(root, workspace, reopened) -> None:
    """Else nobody could tell later whether its turn began, or whether the agent ended before."""
    typed = messages.Typed("held", 12.0, "no conversation", "no launch")
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
        fleet._access.context.registry.note(
            lambda it: messages.update(
                it, "m_held", state=MessageState.QUEUED, attempts=1, typed=typed, before=7, carrier="inline"
            )
        )
    document = reopened().restore(str(copy), is_confirmed=True)
    assert document["messages"] == {MessageState.QUEUED: ["m_held"]}
    find = reopened()._access.context.registry.peek
    message = find(lambda it: messages.find(it, "m_held"), None)
    assert message is not None
    assert (message.attempts, message.before, message.carrier) == (1, 7, "inline")
    assert message.typed is not None
    assert (message.typed.launch, message.typed.at) == ("no launch", 12.0)


def test_a_change_during_a_restore_is_in_the_restored_state_and_not_lost(
    root, workspace, reopened, until, monkeypatch
) -> None:
    """Another command begins to type a held message after the restore has looked for work in progress."""
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
    other = reopened()._access.context.for_thread()
    seen = []

    def type_it():
        def work(transaction):
            seen.append(transaction.get(ENDED["id"])["name"])
            messages.update(transaction, "m_held", state=MessageState.TYPING, owner=process.me().as_json())

        other.registry.note(work)
        other.close()

    command = threading.Thread(target=type_it)
    settle = restoring.restored_messages.settle

    def begin_and_settle(*given, **options):
        command.start()
        command.join(0.5)
        return settle(*given, **options)

    other.registry.note(lambda transaction: transaction.log("user", "test", None))
    monkeypatch.setattr(restoring.restored_messages, "settle", begin_and_settle)
    document = reopened().restore(str(copy), is_confirmed=True)
    assert document["messages"]["held"] == ["m_held"]
    until(lambda: not command.is_alive())
    assert seen == ["one"]
    assert [state for state, _ in states(reopened(), "m_held")] == [MessageState.TYPING]


def test_a_restore_that_fails_starts_the_resident_again(
    root, workspace, reopened, monitor, until, monkeypatch
) -> None:
    with mam.open(str(workspace)) as fleet:
        copy = copy_now(fleet)
    running = monitor()
    until(lambda: lock(reopened()._access.context).holder())
    started = []
    monkeypatch.setattr(restoring.resident_start_and_lock, "ensure", started.append)

    def full(*_given):
        raise DiskFull("no space left")

    monkeypatch.setattr(checked_copy, "copy_rows", full)
    with pytest.raises(DiskFull):
        reopened().restore(str(copy), is_confirmed=True)
    until(lambda: running.poll() is not None)
    assert (running.returncode, len(started)) == (0, 1)
    assert reopened().sessions.names() == ["one"]


def restore_in_child(workspace, arm) -> int:
    """Restore in a child process that `arm` prepares; return its exit code."""
    pid = os.fork()  # noqa: TID251  (it dies where a process would be killed)
    if not pid:
        try:
            arm()
            with mam.open(str(workspace)) as child:
                child.restore()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


STEPS = ["begin", "open_target", "seal", "exchange", "keep_former"]


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("loss", ["gone", "damaged"])
def test_a_crash_leaves_the_loss_or_the_restored_root(
    root, workspace, reopened, loss, name, is_after
) -> None:
    with mam.open(str(workspace)) as fleet:
        copy_now(fleet)
    if loss == "gone":
        lose(workspace)
    else:
        damage(workspace, 1)
    step = getattr(state_replacement.StateReplacement, name)

    def die(*given):
        if is_after:
            step(*given)
        os._exit(9)

    arm = lambda: setattr(state_replacement.StateReplacement, name, die)  # noqa: E731
    assert restore_in_child(workspace, arm) == 9
    is_restored = name == "keep_former" or (name == "exchange" and is_after)
    if not is_restored:
        with pytest.raises((RootMissing, RegistryCorrupt)):
            reopened().sessions.forget("one")
        assert reopened().restore()["changed"]
    again = reopened()
    assert again.sessions.names() == ["one"]
    assert again.jobs.status(root)["status"] == "parked"
    assert again.sessions.forget("one")


def test_an_interrupted_exchange_is_finished(root, workspace, reopened, monkeypatch) -> None:
    """On a file system that cannot exchange two names, three renames do it."""
    with mam.open(str(workspace)) as fleet:
        copy_now(fleet)
    damage(workspace, 1)
    monkeypatch.setattr(state_replacement, "swap", lambda _path, _other: False)
    rename, count = os.rename, iter(range(10))

    def die(*given):
        # The first one renames the copy.
        if next(count) == 2:
            os._exit(9)
        rename(*given)

    assert restore_in_child(workspace, lambda: setattr(os, "rename", die)) == 9
    assert not (workspace / ".mam").exists()
    with pytest.raises(RootMissing):
        reopened().sessions.forget("one")
    assert reopened().restore()["finished"] is True
    assert reopened().sessions.names() == ["one"]


@pytest.mark.parametrize(
    ("shown", "taken", "state"),
    [
        (0, 0, MessageState.HELD),
        (0, None, MessageState.HELD),
        (None, None, MessageState.UNCONFIRMED),
        (2, None, MessageState.UNCONFIRMED),
        (2, 0, MessageState.HELD),
        (2, 1, MessageState.SUBMITTED),
    ],
)
def test_what_becomes_of_a_held_message(shown, taken, state) -> None:
    assert state_after_restore(shown, taken) == state


def test_a_message_that_was_being_typed_is_unconfirmed(home, tmux_server, workspace, reopened) -> None:
    with mam.open(str(workspace)) as fleet:
        fleet.init()

        def work(transaction):
            transaction.add({**ENDED, "workspace": str(workspace)})
            messages.add(transaction, a_message("m_typed"))
            messages.update(transaction, "m_typed", state=MessageState.TYPING, owner={})
            messages.add(transaction, a_message("m_parked", state="parked"))
            # mam knows nothing about this program, and can read no record of it.
            transaction.add({**ENDED, "workspace": str(workspace), "agent": "sleep", **UNKNOWN})
            messages.add(transaction, a_message("m_unknown", session_id=UNKNOWN["id"]))

        fleet._access.context.registry.change(work)
        copy_now(fleet)
    shutil.rmtree(workspace / ".mam")
    reopened().restore()
    found = states(reopened(), "m_typed", "m_unknown", "m_parked")
    assert found == [*[(MessageState.UNCONFIRMED, "restored")] * 2, (MessageState.PARKED, None)]
