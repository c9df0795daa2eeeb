"""What is forgotten or purged leaves the copies, too."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.adapters.store.making import new_row

import mam
from mam.adapters.store import backup_file
from mam.adapters.store.files import job_files
from mam.adapters.store.tables import messages, removals
from mam.adapters.store.tables.evidence import recorded
from mam.app.context.resident_start_and_lock import lock
from mam.app.jobs.new_job import new_id, record_job
from mam.app.messages import send as senders
from mam.app.monitor import backup, backup_removal, doctor
from mam.app.monitor.retention import remove_some
from mam.app.observation import hook_intake
from mam.core import caller as callers
from mam.core.backup_rotation import CHANGE, MIGRATION
from mam.core.errors import DiskFull, MamError

CONVERSATION = "0f0e0d0c-1111-4222-8333-444455556666"
OLD = 100 * 86400.0
QUICK = ["--speed", "0"]


def row(number: int):
    return new_row(
        number,
        status="stopped",
        claude_session_id_own=CONVERSATION if number == 1 else None,
        conversations=[{"id": CONVERSATION, "source": "hook", "since": "2026-11-15T12:00:00Z"}]
        if number == 1
        else [],
    )


@pytest.fixture
def fleet(quick_path, home):
    with mam.open(str(quick_path)) as opened:
        opened.init()
        registry = opened._access.context.registry
        for number in (1, 2):
            registry.change(lambda transaction, number=number: transaction.add(row(number)))
        registry.change(lambda transaction: transaction.set_identity("claude", {"session_id": CONVERSATION}))
        yield opened


@pytest.fixture
def context(fleet):
    return fleet._access.context


@pytest.fixture
def copies(context):
    """A plain copy, a compressed one, and one of the schema of mam 0.1."""
    folder = backup.folder_of(context)
    old = Path(context.user_state.folder) / "old.db"
    source = sqlite3.connect(old)
    golden = Path(__file__).resolve().parents[2] / "golden" / "0.1.0" / "every-status" / "state.sql"
    source.executescript(golden.read_text(encoding="utf-8"))
    source.execute("DELETE FROM sessions")
    source.execute("DELETE FROM evidence")
    for number in (1, 2):
        values = (
            row(number)["id"],
            row(number)["name"],
            "stopped",
            number,
            1,
            json.dumps({**row(number), "version": 1}),
        )
        source.execute("INSERT INTO sessions VALUES(?, ?, ?, ?, ?, ?, NULL, 'a block')", values)
    source.commit()
    path = backup_file.new_path(folder, MIGRATION, context.now() - 7200, schema_number="1.0")
    backup_file.write(source, path, None)
    source.close()
    backup.make_copy(context, "restore")
    backup.make_copy(context, CHANGE)
    made = backup.listed(context)
    assert [(copy.reason, copy.is_compressed) for copy in made] == [
        (CHANGE, False),
        ("restore", True),
        (MIGRATION, True),
    ]
    return made


def content(copy) -> bytes:
    with backup_file.open_copy(copy.path) as plain:
        return Path(plain).read_bytes()


def sessions(copy) -> dict[str, dict]:
    with backup_file.open_copy(copy.path) as plain:
        connection = sqlite3.connect(plain)
        try:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            found = connection.execute("SELECT id, status, data, block FROM sessions").fetchall()
            for session_id, status, data, block in found:
                assert json.loads(data)["status"] == status, session_id
                assert status == "stopped" or block is None
            return {session_id: json.loads(data) for session_id, _status, data, _block in found}
        finally:
            connection.close()


def purge(context) -> None:
    """Record a purge as the verb does."""

    def work(transaction) -> None:
        current = transaction.get("s_00000001")
        transaction.put({**current, "conversations": [], "claude_session_id_own": None})
        transaction.log("user", "purge", current, None, conversation=CONVERSATION)

    context.registry.change(work)


def forget(fleet, session_id: str) -> None:
    """Record that a session was forgotten as the verb does, which also asks tmux."""

    def work(transaction) -> None:
        transaction.log("user", "forget", transaction.get(session_id), worktree=None)
        transaction.remove(session_id)

    fleet._access.context.registry.change(work)
    fleet._access.has_removed = True


def test_a_copy_that_is_made_later_has_nothing_that_was_deleted(quick_path, home, monkeypatch) -> None:
    """Debian builds SQLite so that it overwrites what it deletes; elsewhere that is off."""
    connect = sqlite3.connect

    def connect_as_elsewhere(*given, **options):
        connection = connect(*given, **options)
        connection.execute("PRAGMA secure_delete=OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_as_elsewhere)
    with mam.open(str(quick_path)) as fleet:
        fleet.init()
        context = fleet._access.context
        context.registry.change(lambda transaction: transaction.add(row(1)))
        context.registry.change(lambda transaction: transaction.remove("s_00000001"))
        context.registry.show()
        copy = backup.make_copy(context, CHANGE)
    assert CONVERSATION.encode() not in content(copy)


@pytest.mark.promise("P11")
@pytest.mark.starts
def test_a_forgotten_session_leaves_every_copy(tmux_server, fleet, context, copies) -> None:
    context.registry.change(
        lambda transaction: transaction.put({**transaction.get("s_00000001"), "tmux_server": tmux_server})
    )
    assert all(b"s_00000001" in content(copy) for copy in copies)
    fleet.sessions.forget("s_00000001")
    assert all(set(sessions(copy)) == {"s_00000001", "s_00000002"} for copy in copies)
    fleet.close()
    for copy in copies:
        assert set(sessions(copy)) == {"s_00000002"}
        assert b"demo-app-1-creator-claude" not in content(copy)
        assert Path(copy.path).stat().st_mode & 0o777 == 0o600
    assert [copy.path for copy in backup.listed(context)] == [copy.path for copy in copies]


@pytest.mark.promise("P11")
def test_a_purged_conversation_leaves_every_copy_and_its_session_stays(context, copies) -> None:
    purge(context)
    backup_removal.remove_from_copies(context)
    for copy in copies:
        assert CONVERSATION.encode() not in content(copy)
        kept = sessions(copy)["s_00000001"]
        assert (kept["status"], kept["resumable"], kept["termination_mode"]) == ("terminated", False, "purge")
        assert sessions(copy)["s_00000002"]["status"] == "stopped"


def test_a_forgotten_job_leaves_every_copy_with_its_token(fleet, context, copies) -> None:
    job_id, other = (
        record_job(context, fleet.caller, new_id(), f"{word} words").id for word in ("secret", "my")
    )
    fleet.jobs.cancel(job_id)
    token = job_files.read_token(context.paths.jobs, job_id)
    for _ in range(2):
        backup.make_copy(context, "restore")
    made = backup.listed(context)
    newer = made[:2]
    assert all(token.encode() in content(copy) and b"secret words" in content(copy) for copy in newer)
    assert fleet.jobs.forget(job_id)[0]["forgotten"]
    fleet.close()
    for copy in made:
        left = content(copy)
        assert not any(text in left for text in (token.encode(), b"secret words"))
    for copy in newer:
        assert b"my words" in content(copy)
        with backup_file.open_copy(copy.path) as plain:
            connection = sqlite3.connect(plain)
            assert backup_file.read_facts(connection, plain).tokens.keys() == {other}
            connection.close()


@pytest.fixture
def agents(tmux_server, workspace, home):
    """A fleet with agents, and a function that returns what the root and its copies hold, file by file."""
    with mam.open(str(workspace)) as opened:
        opened.init()
        yield opened


def held(context) -> dict[str, bytes]:
    """Return what mam holds of a root: the live database, the registry files, and each copy."""
    connection = sqlite3.connect(context.paths.db)
    live = "\n".join(connection.iterdump()).encode()
    connection.close()
    files = sorted(Path(context.paths.yaml).parent.glob("*.yaml*"))
    found = {"live": live, **{path.name: path.read_bytes() for path in files}}
    return {**found, **{copy.path: content(copy) for copy in backup.listed(context)}}


def holders(context, *words: str) -> list[str]:
    """Return what has one of these words."""
    return [where for where, left in held(context).items() if any(word.encode() in left for word in words)]


def some_copies(context) -> None:
    """Make a plain copy and a compressed one."""
    for reason in ("restore", CHANGE):
        backup.make_copy(context, reason)


@pytest.mark.promise("P11")
@pytest.mark.starts
def test_the_conversation_of_an_agent_is_named_nowhere_after_its_purge(agents, until) -> None:
    context = agents._access.context
    session = agents.sessions.create("practice", name="one", args=QUICK, prompt="the first turn")
    session.wait("idle", timeout=10)
    session.send("the second turn", timeout=10)
    session.stop()
    session.resume()
    session.send("the third turn", timeout=10)
    name = agents.sessions.get("one").row["practice_session_id_own"]
    # No resident takes in a hook that comes after the last command.
    until(lambda: (hook_intake.take_in(context), name in str(recorded(context.registry, "hook")))[1])
    some_copies(context)
    assert len(holders(context, name)) == 5
    agents.sessions.stop("one", purge_conversation=True)
    (entry,) = [entry for entry in agents.sessions.log("one") if entry["verb"] == "purge"]
    assert entry["detail"]["removed"] == ["mam-practice/*.jsonl"]
    hook_intake.take_in(context)
    agents.close()
    assert holders(context, name) == []
    backup.make_copy(context, CHANGE)
    assert holders(context, name) == []
    with mam.open(context.paths.root) as again:
        texts = [message["text"] for message in again.messages.inbox("one")]
    assert texts == ["the first turn", "the second turn", "the third turn"]


@pytest.mark.promise("P11")
@pytest.mark.starts
def test_a_forgotten_session_takes_the_messages_to_it_along(agents, workspace) -> None:
    context = agents._access.context
    session = agents.sessions.create("practice", name="one", args=QUICK)
    agents.sessions.create("practice", name="two", args=QUICK)
    session.send("a plain word", timeout=10)
    long = "a long word\n" * 20_000
    assert session.send(long, timeout=20)["carrier"] == "file"
    from_one = senders.send(context, callers.session(session.id), "two", "this is for two", timeout=10)
    session.stop()
    assert session.send("a late word")["state"] == "held"
    some_copies(context)
    assert list((workspace / ".mam-mail").glob("m_*.md"))
    agents.sessions.forget("one")
    assert not list((workspace / ".mam-mail").glob("m_*.md"))
    assert [message["text"] for message in agents.messages.inbox(sent=True)] == []
    (kept,) = agents.messages.inbox("two")
    assert kept["message_id"] == from_one["message_id"]
    agents.close()
    assert holders(context, "a plain word", "a long word", "a late word") == []
    assert b"this is for two" in content(backup.listed(context)[0])


@pytest.mark.promise("P11")
@pytest.mark.starts
def test_a_forgotten_job_takes_the_messages_with_its_task_along(agents, workspace) -> None:
    context = agents._access.context
    session = agents.sessions.create("practice", name="one", args=QUICK)
    session.wait("idle", timeout=10)

    def done(task: str) -> str:
        submitted = agents.jobs.submit(task, session="one")["job_id"]
        agents.jobs.cancel(submitted)
        return str(submitted)

    job_id, other = done("a secret task"), done("a plain task")
    reminder = {"id": f"m_{job_id}-1-nudge", "session_id": session.id, "sender": "user", "text": "a nudge"}
    rest = {
        "is_command": False,
        "wanted": "ready",
        "state": "submitted",
        "reason": None,
        "conversation": None,
    }
    context.registry.note(lambda transaction: messages.add(transaction, {**reminder, **rest}))
    (workspace / ".mam-mail").mkdir(exist_ok=True)
    for message_id in (f"m_{job_id}", f"m_{other}", f"m_{job_id}-mine"):
        (workspace / ".mam-mail" / f"{message_id}.md").write_text("a task", encoding="utf-8")
    some_copies(context)
    assert agents.jobs.forget(job_id)[0]["forgotten"]
    left = {message["message_id"] for message in agents.messages.inbox("one")}
    assert left == {f"m_{other}"}
    assert {path.stem for path in (workspace / ".mam-mail").glob("m_*.md")} == {
        f"m_{other}",
        f"m_{job_id}-mine",
    }
    agents.close()
    assert holders(context, "a secret task", "a nudge") == []
    assert len(holders(context, "a plain task")) == 3


def test_a_copy_that_was_made_after_a_purge_keeps_the_next_conversation(context, copies) -> None:
    purge(context)
    context.registry.change(
        lambda transaction: transaction.put(
            {**transaction.get("s_00000001"), "claude_session_id_own": "later", "status": "stopped"}
        )
    )
    backup.make_copy(context, CHANGE)
    newest = backup.listed(context)[0]
    before = Path(newest.path).read_bytes()
    backup_removal.remove_from_copies(context)
    assert Path(newest.path).read_bytes() == before


def test_what_was_removed_once_is_not_looked_for_again(fleet, context, copies, monkeypatch) -> None:
    forget(fleet, "s_00000001")
    backup_removal.remove_from_copies(context)
    with monkeypatch.context() as patch:
        patch.setattr(backup_file, "edit", lambda *_arguments: pytest.fail("edited again"))
        backup_removal.remove_from_copies(context)
    forget(fleet, "s_00000002")
    backup_removal.remove_from_copies(context)
    assert [sessions(copy) for copy in copies] == [{}, {}, {}]


def test_another_history_of_the_database_is_looked_through_from_its_beginning(fleet, context, copies) -> None:
    forget(fleet, "s_00000001")
    marker = Path(backup.folder_of(context)) / "last_removal.json"
    for text in (
        "[1, 5.0]",
        "[9999, 5.0]",
        "[9",
        "",
        "7",
        "[1]",
        "null",
        "[[], 5.0]",
        "[1e400, 1]",
        "[" * 100_000,
    ):
        marker.write_text(text, encoding="utf-8")
        backup_removal.remove_from_copies(context)
        assert json.loads(marker.read_text(encoding="utf-8"))[0] not in (1, 9999)
    assert all(set(sessions(copy)) == {"s_00000002"} for copy in copies)


def test_a_failure_is_a_warning_that_names_the_copy_and_the_next_one_tries_again(
    fleet, context, copies, monkeypatch
) -> None:
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    edit = backup_file.edit

    def fail(copy, work):
        if copy.reason == MIGRATION:
            raise DiskFull(f"no space left to write {copy.path}")
        return edit(copy, work)

    forget(fleet, "s_00000001")
    with monkeypatch.context() as patch:
        patch.setattr(backup_file, "edit", fail)
        fleet.close()
    assert len(warnings) == 1
    assert copies[2].path in warnings[0]
    assert [len(sessions(copy)) for copy in copies] == [1, 1, 2]
    backup_removal.remove_from_copies(context)
    assert [len(sessions(copy)) for copy in copies] == [1, 1, 1]


def test_a_copy_with_a_row_that_no_mam_wrote_keeps_nothing_in_the_others(fleet, context, copies) -> None:
    connection = sqlite3.connect(copies[0].path)
    connection.execute("UPDATE sessions SET data='[]' WHERE id='s_00000001'")
    connection.commit()
    connection.close()
    purge(context)
    with pytest.raises(MamError, match=copies[0].path):
        backup_removal.remove_from_copies(context)
    assert all(CONVERSATION.encode() not in content(copy) for copy in copies[1:])


def test_a_copy_that_cannot_be_written_stays_as_it_was(context, copies, monkeypatch) -> None:
    before = [Path(copy.path).read_bytes() for copy in copies]
    purge(context)

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(backup_file.os, "fsync", full)
        with pytest.raises(DiskFull):
            backup_removal.remove_from_copies(context)
    assert [Path(copy.path).read_bytes() for copy in copies] == before
    assert not list(Path(backup.folder_of(context)).glob("*.new*"))


def test_a_resident_does_it_and_large_copies_wait_for_one(fleet, context, copies, monkeypatch) -> None:
    forget(fleet, "s_00000001")
    with monkeypatch.context() as patch:
        patch.setattr(backup_removal, "_QUICK", 10)
        backup_removal.remove_now(context)
    held = lock(context)
    assert held.take({})
    backup_removal.remove_now(context)
    held.release()
    assert all(len(sessions(copy)) == 2 for copy in copies)
    backup_removal.remove_now(context)
    assert all(len(sessions(copy)) == 1 for copy in copies)


def test_without_copies_nothing_is_made(fleet, context) -> None:
    forget(fleet, "s_00000001")
    backup_removal.remove_now(context)
    assert not Path(backup.folder_of(context)).exists()


def test_removals_are_those_of_the_log(fleet, context) -> None:
    purge(context)
    forget(fleet, "s_00000002")
    found = context.registry.peek(lambda transaction: removals.since(transaction, None), [])
    assert [(one.verb, one.session_id, one.conversation) for one in found] == [
        ("purge", "s_00000001", CONVERSATION),
        ("forget", "s_00000002", None),
    ]
    last = (found[0].seq, found[0].at)
    rest = context.registry.peek(lambda transaction: removals.since(transaction, last), [])
    assert [one.seq for one in rest] == [found[1].seq]


def test_copies_of_roots_that_are_gone_are_removed_after_a_time(context, tmp_path) -> None:
    folder = Path(context.user_state.folder) / "backups"
    with mam.open(str(tmp_path)) as other:
        other.init()
        other_id = other._access.context.root_id
    for name, age in (("1" * 16, OLD), ("2" * 16, 60.0), (other_id, OLD), (context.root_id, OLD)):
        path = backup_file.new_path(str(folder / name), CHANGE, context.now() - age)
        backup_file.write(context.registry.reader(), path, None)
    remove_some(context)
    assert {path.name for path in folder.iterdir()} == {"2" * 16, other_id, context.root_id}
    shutil.rmtree(tmp_path / ".mam")
    remove_some(context)
    assert {path.name for path in folder.iterdir()} == {"2" * 16, context.root_id}


def findings(context) -> dict[str, object]:
    (found,) = doctor._copies(context)
    return found


def test_doctor_shows_the_newest_copy_and_warns_of_one_that_is_late(context) -> None:
    assert findings(context)["ok"] is True
    held = lock(context)
    assert held.take({"since": context.now()})
    assert findings(context)["ok"] is True
    held.rewrite({"since": 1.0})
    late = findings(context)
    assert (late["ok"], late["mend"]) == (False, "mam backup makes a copy, or says what is in the way")
    copy = backup.make_copy(context, CHANGE)
    found = findings(context)
    assert found["ok"] is True
    assert found["message"].startswith("1 copy of the state, the newest made ")
    Path(copy.path).unlink()
    held.release()
    assert findings(context)["ok"] is True


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "text", "deep", "digits", "nan"])
def test_a_note_that_is_none_is_read_without_waiting(tmp_path, kind) -> None:
    """Whoever reads it holds the lock of the copies."""
    note = tmp_path / "last_removal.json"
    contents = {"text": "x", "deep": "[" * 100_000, "digits": f"[{'1' * 4000}, 1.0]", "nan": "[1, NaN]"}
    if kind == "pipe":
        os.mkfifo(note)
    elif kind == "link":
        note.symlink_to("/dev/zero")
    elif kind == "folder":
        note.mkdir()
    else:
        note.write_text(contents[kind], encoding="utf-8")
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(backup_removal._last(str(note))), daemon=True)
    thread.start()
    thread.join(20)
    assert answers == [None]


def test_a_note_is_read(tmp_path) -> None:
    note = tmp_path / "last_removal.json"
    assert backup_removal._last(str(note)) is None
    note.write_text("[7, 1.5]", encoding="utf-8")
    assert backup_removal._last(str(note)) == (7, 1.5)
