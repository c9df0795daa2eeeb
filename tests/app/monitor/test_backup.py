"""Copies of the state: made after changes, thinned out, and never at the cost of the state."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

import mam
from mam.adapters.store import backup_file, database
from mam.adapters.store.files import job_files
from mam.app.context import resident_start_and_lock
from mam.app.jobs.new_job import new_id, record_job
from mam.app.monitor import backup, backup_task
from mam.app.monitor.backup_task import BackupTask
from mam.core.backup_rotation import CHANGE, MIGRATION
from mam.core.caller import session
from mam.core.errors import DiskFull, InvalidPath, MamError, NotAllowed, RootForeign


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def context(fleet):
    return fleet._access.context


@pytest.fixture
def task(context, monkeypatch):
    """A task that copies at once, as if a minute had passed; nothing of it is left at the end."""
    monkeypatch.setattr(backup_task, "_DELAY", 0.0)
    monkeypatch.setattr(backup_task, "_SHARE", 0.0)
    made = BackupTask(context)
    yield made
    made.leave_last()
    made.close()


def change(context) -> None:
    context.registry.note(lambda transaction: transaction.log("user", "test", None))


def passed(task) -> None:
    """Let the task do what is due, and wait for its thread."""
    task.tick()
    if task._thread is not None:
        task._thread.join()
    task.tick()


def reasons(context) -> list[tuple[str, bool]]:
    return [(copy.reason, copy.is_compressed) for copy in backup.listed(context)]


def entries_in(path: str) -> int:
    with backup_file.open_copy(path) as plain:
        connection = sqlite3.connect(plain)
        try:
            return connection.execute("SELECT count(*) FROM log WHERE verb='test'").fetchone()[0]
        finally:
            connection.close()


def full(*_arguments, **_options):
    raise OSError(28, "No space left on device")


def broken(*_arguments):
    raise KeyError("not expected")


class TestCopy:
    def test_e5_a_copy_has_the_tokens_and_is_found_by_the_root(self, fleet, context) -> None:
        job_id = record_job(context, fleet.caller, new_id(), "do it").id
        token = job_files.read_token(context.paths.jobs, job_id)
        copy = backup.make_copy(context, CHANGE)
        assert backup.listed(context)[0].path == copy.path
        assert Path(copy.path).parent == Path(context.user_state.folder) / "backups" / context.root_id
        connection = database.connect_to_copy(copy.path)
        said = backup_file.read_facts(connection, copy.path)
        connection.close()
        assert said.tokens == {job_id: token}
        assert (said.root_id, said.reason) == (context.root_id, CHANGE)

    def test_what_was_the_newest_is_compressed_or_dropped(self, context) -> None:
        for reason in (CHANGE, "restore", CHANGE):
            change(context)
            backup.make_copy(context, reason)
        # The first one is not the last one of its hour any more, unless an hour began just now.
        newest, *others = reasons(context)
        assert newest == (CHANGE, False)
        assert ("restore", True) in others
        assert [entries_in(copy.path) for copy in backup.listed(context)][:2] == [3, 2]

    def test_copies_from_before_the_root_had_an_id_join_the_others(self, context) -> None:
        former = backup_file.folder_of(context.user_state.folder, None, context.paths.state)
        path = backup_file.new_path(former, MIGRATION, context.now() - 60, schema_number="8.0")
        backup_file.write(context.registry.reader(), path, None)
        backup.make_copy(context, CHANGE)
        assert reasons(context) == [(CHANGE, False), (MIGRATION, True)]
        assert not Path(former).exists()

    def test_a_copy_does_not_take_the_last_space(self, context, monkeypatch) -> None:
        first = backup.make_copy(context, CHANGE)
        room = backup_file._ROOM
        monkeypatch.setattr(backup_file, "_ROOM", 1 << 60)
        with pytest.raises(DiskFull, match="too little space"):
            backup.make_copy(context, CHANGE)
        monkeypatch.setattr(backup_file, "_ROOM", room)
        assert [copy.path for copy in backup.listed(context)] == [first.path]

    def test_a_full_disk_while_compressing_costs_no_copy(self, context, monkeypatch) -> None:
        first = backup.make_copy(context, "restore")
        with monkeypatch.context() as patch:
            patch.setattr(backup_file.os, "fsync", full)
            with pytest.raises(DiskFull):
                backup_file.compress(first.path)
        assert [copy.path for copy in backup.listed(context)] == [first.path]
        assert not [name for name in os.listdir(Path(first.path).parent) if name.endswith(".new")]  # noqa: PTH208

    def test_another_process_that_makes_the_next_copy_at_once_does_no_harm(
        self, context, monkeypatch
    ) -> None:
        only_one = backup_file.only_one

        @contextmanager
        def with_a_successor(folder):
            with only_one(folder):
                yield
            for copy in backup_file.copies_in(folder):
                backup_file.compress(copy.path)

        monkeypatch.setattr(backup_file, "only_one", with_a_successor)
        made = backup.make_copy(context, CHANGE)
        assert [copy.path for copy in backup.listed(context)] == [f"{made.path}.gz"]


class TestFile:
    def test_a_file_has_no_tokens_and_nothing_that_was_deleted(self, fleet, context, tmp_path) -> None:
        job_id = record_job(context, fleet.caller, new_id(), "do it").id
        token = job_files.read_token(context.paths.jobs, job_id)
        path = tmp_path / "mine.db"
        answer = fleet.monitor.backup_to(str(path))
        assert (answer["path"], answer["has_secrets"]) == (str(path), False)
        assert answer["size"] == path.stat().st_size
        assert path.stat().st_mode & 0o777 == 0o600
        assert token.encode() not in path.read_bytes()
        fleet.monitor.backup_to(str(path), with_secrets=True, force=True)
        assert token.encode() in path.read_bytes()
        assert fleet.monitor.backups() == []

    def test_a_file_that_exists_or_that_mam_would_copy_is_refused(self, fleet, context, tmp_path) -> None:
        for name in ("file", "folder", "link"):
            (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).touch()
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path / "file")
        for name, options in (("file", {}), ("link", {"force": True})):
            with pytest.raises(InvalidPath, match="exists already"):
                fleet.monitor.backup_to(str(tmp_path / name), **options)
        for folder in ("folder", "folder/", "."):
            with pytest.raises(InvalidPath, match="is a directory") as refused:
                fleet.monitor.backup_to(f"{tmp_path}/{folder}", force=True)
            assert "mam.db" in refused.value.hint
        (tmp_path / "way").symlink_to(context.paths.state)
        for inside in (f"{context.paths.state}/x.db", str(tmp_path / "way" / "x.db"), context.paths.state):
            with pytest.raises(InvalidPath, match="lies in the state"):
                fleet.monitor.backup_to(inside, force=True)
        with pytest.raises(InvalidPath, match="is not a directory"):
            fleet.monitor.backup_to(str(tmp_path / "none" / "x.db"))
        assert (tmp_path / "file").read_bytes() == b""

    def test_a_session_copies_into_the_user_state_and_not_into_a_file(self, fleet, tmp_path) -> None:
        fleet._access._caller = session("s_00000001")
        assert fleet.monitor.backup()["reason"] == "manual"
        with pytest.raises(NotAllowed, match="a session may not use 'mam backup FILE'"):
            fleet.monitor.backup_to(str(tmp_path / "mine.db"))

    def test_a_root_that_is_not_ours_is_not_copied(self, fleet, quick_path, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "other"))
        with mam.open(str(quick_path)) as other:
            for attempt in (other.monitor.backup, lambda: other.monitor.backup_to(str(tmp_path / "x.db"))):
                with pytest.raises(RootForeign):
                    attempt()
            assert other.monitor.backups() == []


class TestTask:
    def test_e5_each_change_is_copied_also_of_this_process(self, context, task) -> None:
        passed(task)
        assert reasons(context) == [(CHANGE, False)]
        (first,) = backup.listed(context)
        passed(task)
        assert backup.listed(context)[0].path == first.path, "nothing has changed"
        change(context)
        passed(task)
        newest = backup.listed(context)[0]
        assert newest.path != first.path
        assert entries_in(newest.path) == 1

    def test_changes_wait_for_each_other_and_a_large_database_longer(self, context, monkeypatch) -> None:
        now = [1000.0]
        monkeypatch.setattr(backup_task.time, "monotonic", lambda: now[0])
        task = BackupTask(context)
        try:
            task.tick()
            assert task.due() == 1000.0 + backup_task._DELAY
            now[0] += 10
            change(context)
            task.tick()
            assert task.due() == 1000.0 + backup_task._DELAY, "a burst is one copy, within a minute"
            now[0] = task.due()
            task.tick()
            task._thread.join()
            task._thread.seconds = 7.0
            change(context)
            begun = now[0]
            task.tick()
            assert task.due() == begun + 700.0, "at most one percent of the time"
        finally:
            task.leave_last()
            task.close()

    def test_a_resident_that_starts_guesses_how_long_a_copy_takes(self, context, monkeypatch) -> None:
        backup.make_copy(context, CHANGE)
        monkeypatch.setattr(backup_task, "_BYTES_A_SECOND", 1e-6)
        task = BackupTask(context)
        try:
            task.tick()
            assert task.due() > backup_task.time.monotonic() + 1e9
        finally:
            task.leave_last()
            task.close()

    def test_what_changes_while_a_copy_is_made_is_copied_in_time(self, context, task, monkeypatch) -> None:
        is_begun, may_go_on = Event(), Event()
        make_copy = backup.make_copy

        def slow(*arguments):
            copy = make_copy(*arguments)
            is_begun.set()
            assert may_go_on.wait(60)
            return copy

        monkeypatch.setattr(backup, "make_copy", slow)
        task.tick()
        assert is_begun.wait(60)
        change(context)
        now = backup_task.time.monotonic()
        task.tick()
        # No pass of the resident need come before its net of a minute.
        assert now < task.due() < now + 60
        may_go_on.set()
        passed(task)
        passed(task)
        assert entries_in(backup.listed(context)[0].path) == 1

    def test_an_old_copy_that_cannot_be_changed_delays_no_new_one(self, context, task, monkeypatch) -> None:
        def fail(_context):
            raise DiskFull("no space left to write an old copy")

        monkeypatch.setattr(backup_task, "remove_from_copies", fail)
        with pytest.raises(DiskFull, match="an old copy"):
            passed(task)
        for count in (1, 2):
            change(context)
            passed(task)
            assert entries_in(backup.listed(context)[0].path) == count

    def test_a_failure_is_told_once_and_leaves_all_as_it_was(self, context, task, monkeypatch) -> None:
        passed(task)
        before = Path(context.paths.db).read_bytes()
        monkeypatch.setattr(backup_task, "_AGAIN", 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(backup_file, "_fill", full)
            change(context)
            with pytest.raises(DiskFull, match="no space left"):
                passed(task)
            for _ in range(3):
                passed(task)
        assert len(backup.listed(context)) == 1
        passed(task)
        assert entries_in(backup.listed(context)[0].path) == 1
        assert Path(context.paths.db).read_bytes()[:16] == before[:16]
        with monkeypatch.context() as patch:
            patch.setattr(backup_file, "_fill", full)
            change(context)
            with pytest.raises(DiskFull):
                passed(task)

    def test_an_unexpected_error_is_told_and_does_not_end_the_copies(
        self, context, task, monkeypatch
    ) -> None:
        passed(task)
        monkeypatch.setattr(backup_task, "_AGAIN", 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(backup_task.backup, "make_copy", broken)
            change(context)
            for _ in range(2):
                with pytest.raises(KeyError):
                    passed(task)
        passed(task)
        assert entries_in(backup.listed(context)[0].path) == 1

    def test_an_unexpected_error_at_the_end_is_returned(self, context, monkeypatch) -> None:
        task = BackupTask(context)
        task.tick()
        monkeypatch.setattr(backup_task.backup, "make_copy", broken)
        assert isinstance(task.close(), MamError)

    def test_the_last_changes_are_copied_at_the_end(self, context) -> None:
        task = BackupTask(context)
        task.tick()
        change(context)
        assert task.close() is None
        assert entries_in(backup.listed(context)[0].path) == 1
        assert task.close() is None

    def test_a_task_that_never_worked_copies_nothing(self, context) -> None:
        assert BackupTask(context).close() is None
        assert backup.listed(context) == []

    def test_an_error_at_the_end_is_returned(self, context, monkeypatch) -> None:
        task = BackupTask(context)
        task.tick()
        monkeypatch.setattr(backup_file, "_fill", full)
        assert isinstance(task.close(), MamError)


@pytest.fixture
def prompt_copies(monkeypatch):
    """Residents in this process copy at once."""
    monkeypatch.setattr(backup_task, "_DELAY", 0.0)
    monkeypatch.setattr(backup_task, "_SHARE", 0.0)


def names_in(fleet) -> set[str]:
    """Return the names of the sessions in the newest copy."""
    context = fleet._access.context
    folder = backup_file.folder_of(context.user_state.folder, context.root_id, context.paths.state)
    # Otherwise a resident may compress or drop the newest copy before it is opened.
    with backup_file.only_one(folder):
        copies = backup.listed(context)
        if not copies:
            return set()
        connection = database.connect_to_copy(copies[0].path)
        try:
            return {name for (name,) in connection.execute("SELECT name FROM sessions")}
        finally:
            connection.close()


class TestResident:
    @pytest.fixture
    def fleet(self, tmux_server, workspace):
        with mam.open(str(workspace)) as opened:
            yield opened

    @pytest.mark.promise("P9")
    def test_e5_a_change_is_copied_while_a_resident_runs(self, prompt_copies, fleet, watched, until) -> None:
        fleet.sessions.create("sleep", args=["1000"], name="one")
        until(lambda: names_in(fleet) == {"one"})
        fleet.sessions.rename("one", "two")
        until(lambda: names_in(fleet) == {"two"})
        assert not [report for report in watched if "error" in report]

    def test_e5_what_changed_last_is_copied_when_a_resident_ends(self, fleet, workspace, until) -> None:
        fleet.sessions.create("sleep", args=["1000"], name="one")
        # A resident whose pass takes too long after a signal copies nothing. This one may take its time.
        program = (
            "from mam.app.monitor import stop_signal\n"
            "from mam.surfaces.cli.main import main\n"
            "stop_signal._PATIENCE = 600.0\n"
            "main()\n"
        )
        running = subprocess.Popen([sys.executable, "-c", program, "monitor"], cwd=workspace)
        try:
            until(lambda: resident_start_and_lock.lock(fleet._access.context).holder())
            running.send_signal(signal.SIGTERM)
            until(lambda: running.poll() is not None)
        finally:
            running.kill()
            running.wait()
        assert running.returncode == 0
        assert names_in(fleet) == {"one"}
