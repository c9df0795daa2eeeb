"""States that are lost in other ways than by deletion: emptied, restored twice at once, on a full disk."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said

import mam
from mam.adapters.store import backup_file, database
from mam.app.context.resident_start_and_lock import lock
from mam.app.monitor import backup
from mam.app.roots import restore as restoring
from mam.core.errors import DiskFull, MamError, Refused, RootMissing

# Most of them run a resident or an agent.
pytestmark = pytest.mark.starts


@pytest.fixture
def reopened(workspace):
    """Return a function that opens the root again, as the next command does."""
    opened = []

    def reopen():
        opened.append(mam.open(str(workspace)))
        return opened[-1]

    yield reopen
    for fleet in opened:
        fleet.close()


@pytest.fixture
def agent(fleet):
    """A session with an agent that has said something, and a copy of the state after that."""
    session = fleet.sessions.create("practice", name="a", args=QUICK)
    assert fleet.messages.send("a", "before", timeout=20)["state"] == "submitted"
    yield session
    with mam.open(str(fleet._access.context.workspace)) as last:
        for name in last.sessions.names():
            last.sessions.stop(name, force=True)


def copy_now(fleet) -> Path:
    return Path(backup.backup(fleet._access.context)["path"])


def holder(fleet):
    return lock(fleet._access.context).holder()


def test_d3_an_emptied_database_is_restored(fleet, agent, workspace, reopened) -> None:
    copy_now(fleet)
    fleet.close()
    (workspace / ".mam" / "state.db").write_bytes(b"")
    with pytest.raises(RootMissing, match="deleted, emptied or moved") as refused:
        reopened().messages.send("a", "lost")
    assert "mam restore" in refused.value.hint
    preview = reopened().restore(dry_run=True)
    assert (preview["source"], preview["taken"]["sessions"]) == ("copy", 1)
    assert reopened().restore()["sessions_still_running"] == ["a"]
    again = reopened()
    assert again.messages.send("a", "after", timeout=20)["state"] == "submitted"
    assert said(again, "a") == ["before", "after"]


def test_d3_an_emptied_database_is_restored_under_a_resident(
    fleet, agent, workspace, reopened, monitor, until
) -> None:
    """The resident has it open, and SQLite may write it back from its log: then the state is sound again."""
    copy_now(fleet)
    running = monitor()
    until(lambda: holder(reopened()))
    (workspace / ".mam" / "state.db").write_bytes(b"")
    try:
        document = reopened().restore()
        assert document.get("written_back") or document["sessions_still_running"] == ["a"]
    except Refused as error:
        assert "is sound" in error.message
    else:
        until(lambda: running.poll() is not None)
    again = reopened()
    assert again.sessions.ls()["root_state"] == "known"
    assert again.messages.send("a", "after", timeout=20)["state"] == "submitted"
    assert said(again, "a") == ["before", "after"]


def test_d3_a_database_that_is_written_back_needs_no_copy(fleet, workspace, reopened, monkeypatch) -> None:
    """As SQLite does when the resident closes it, if its log has every page."""
    fleet.init()
    fleet.tasks.add("of before", role="developer")
    fleet.close()
    database_file = workspace / ".mam" / "state.db"
    content = database_file.read_bytes()
    database_file.write_bytes(b"")

    def write_back(_context) -> bool:
        database_file.write_bytes(content)
        return True

    monkeypatch.setattr(restoring.resident_start_and_lock, "end", write_back)
    document = reopened().restore()
    assert document == {"registry": document["registry"], "changed": True, "written_back": True}
    assert [task["text"] for task in reopened().tasks.list()["tasks"]] == ["of before"]


def test_d3_a_resident_ends_when_its_database_is_emptied(
    fleet, agent, workspace, reopened, monitor, until
) -> None:
    running = monitor()
    until(lambda: holder(reopened()))
    database_file = workspace / ".mam" / "state.db"
    database_file.write_bytes(b"")
    # SQLite may write it back: then nothing was lost.
    until(lambda: running.poll() is not None or database_file.stat().st_size)


def test_d3_a_root_whose_database_was_emptied_begins_anew_under_a_resident(
    fleet, agent, workspace, reopened, monitor, until
) -> None:
    """The resident has the emptied file open, and would keep everybody from the new database."""
    monitor()
    until(lambda: holder(reopened()))
    (workspace / ".mam" / "state.db").write_bytes(b"")
    # Nothing to do if SQLite has written it back meanwhile.
    reopened().init_new()
    again = reopened()
    again.tasks.add("something", role="developer")
    assert [task["text"] for task in again.tasks.list()["tasks"]] == ["something"]
    assert again.sessions.ls()["root_state"] == "known"


def test_a_copy_from_before_a_new_beginning_names_the_way_back(fleet, workspace, reopened) -> None:
    fleet.init()
    fleet.tasks.add("of before", role="developer")
    copy = copy_now(fleet)
    fleet.close()
    shutil.rmtree(workspace / ".mam")
    reopened().init_new()
    with pytest.raises(Refused, match="a copy of the root that was here before") as refused:
        reopened().restore(str(copy), is_confirmed=True)
    assert f"move {workspace / '.mam'} away" in refused.value.hint
    (workspace / ".mam").rename(workspace / "former")
    reopened().restore(str(copy), is_confirmed=True)
    assert [task["text"] for task in reopened().tasks.list()["tasks"]] == ["of before"]


def test_two_restores_at_once_leave_a_resident(fleet, agent, workspace, reopened, until) -> None:
    (workspace / "mam.toml").write_text('resident = "auto"\n', encoding="utf-8")
    copy = copy_now(fleet)
    reopened().tasks.add("something", role="developer")
    until(lambda: holder(reopened()))
    failed: list[MamError] = []

    def restore() -> None:
        with mam.open(str(workspace)) as own:
            try:
                own.restore(str(copy), is_confirmed=True)
            except MamError as error:
                failed.append(error)

    threads = [threading.Thread(target=restore) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: not any(thread.is_alive() for thread in threads))
    assert failed == []
    until(lambda: holder(reopened()))


def test_a_machine_that_fails_says_nothing_of_a_copy(fleet, workspace, reopened, monkeypatch) -> None:
    """A full disk, for one: an older copy, or none, would lose what the newest has."""
    fleet.init()
    copy = copy_now(fleet)
    fleet.close()
    state = workspace / ".mam" / "state.db"
    content = bytearray(state.read_bytes())
    content[4096:8192] = b"\x99" * 4096
    state.write_bytes(content)
    for suffix in ("-wal", "-shm"):
        Path(f"{state}{suffix}").unlink(missing_ok=True)

    def full(path, *_given, **_options):
        raise DiskFull(f"no space left to write {path}")

    with monkeypatch.context() as patch:
        patch.setattr(database, "copy_regular", full)
        with pytest.raises(DiskFull):
            reopened().restore()
    assert copy.exists() and state.read_bytes() == content, "nothing was changed"
    assert reopened().restore()["file"] is not None


def test_a_root_that_the_user_state_has_lost_finds_its_copies(fleet, agent, workspace, reopened) -> None:
    copy_now(fleet)
    context = fleet._access.context
    root_id, user = context.root_id, Path(context.user_state.path)
    fleet.close()
    for file in user.parent.glob(f"{user.name}*"):
        file.unlink()
    shutil.rmtree(workspace / ".mam")
    document = reopened().restore()
    assert document["original"] is None and document["sessions_still_running"] == ["a"]
    again = reopened()
    assert again._access.context.root_id == root_id
    assert again.messages.send("a", "after", timeout=20)["state"] == "submitted"


def test_the_copies_of_a_root_that_was_moved_are_not_taken_for_another_one(
    fleet, workspace, reopened, tmp_path
) -> None:
    fleet.init()
    copy_now(fleet)
    fleet.close()
    moved = tmp_path / "moved"
    workspace.rename(moved)
    with mam.open(str(moved)) as own:
        own.tasks.add("here now", role="developer")
    workspace.mkdir()
    with pytest.raises(Refused, match="there is nothing to restore here"):
        reopened().restore()
    assert backup_file.root_ids(str(own._access.context.user_state.folder))
