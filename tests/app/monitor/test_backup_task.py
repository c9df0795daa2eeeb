"""The errors of a copy that a thread makes: each is told, and what was not copied is tried again."""

from __future__ import annotations

import pytest

import mam
from mam.adapters.store import backup_file
from mam.app.monitor import backup, backup_task
from mam.app.monitor.backup_task import BackupTask
from mam.core.errors import DiskFull, Unavailable


@pytest.fixture
def context(quick_path, home):
    with mam.open(str(quick_path)) as opened:
        opened.init()
        yield opened._access.context


@pytest.fixture
def task(context, monkeypatch):
    """A task that copies at once."""
    monkeypatch.setattr(backup_task, "_DELAY", 0.0)
    monkeypatch.setattr(backup_task, "_SHARE", 0.0)
    made = BackupTask(context)
    yield made
    made.leave_last()
    made.close()


def raising(error: Exception):
    def work(*_arguments, **_options):
        raise error

    return work


def begin(task) -> None:
    """Let the thread end, and tick no more."""
    task.tick()
    task._thread.join()


def test_a_copy_that_failed_is_made_again_at_the_end(context, task, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backup_task.backup, "make_copy", raising(DiskFull("no space left")))
        begin(task)
    assert task.close() is None
    assert len(backup.listed(context)) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DiskFull("no space left"), "no space left"),
        (KeyError("nobody expects it"), "the last changes were not copied: KeyError: 'nobody expects it'"),
    ],
)
def test_the_error_of_a_copy_that_is_too_large_to_be_made_again_is_told(
    task, monkeypatch, error, told
) -> None:
    monkeypatch.setattr(backup_task, "_SMALL", 0)
    with monkeypatch.context() as patch:
        patch.setattr(backup_task.backup, "make_copy", raising(error))
        begin(task)
    returned = task.close()
    assert isinstance(returned, DiskFull | Unavailable)
    assert returned.message == told


def test_the_error_of_a_removal_is_told_at_the_end(context, task, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(backup_task, "remove_from_copies", raising(DiskFull("no space for the copy")))
        begin(task)
    assert len(backup.listed(context)) == 1
    returned = task.close()
    assert isinstance(returned, DiskFull)
    assert len(backup.listed(context)) == 1, "the copy was made, and nothing has changed since"


def test_the_first_error_of_a_thread_is_raised_and_the_second_is_a_warning(context, monkeypatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(backup_task, "_DELAY", 0.0)
    task = BackupTask(context.replace(warn=warnings.append))
    monkeypatch.setattr(backup_file, "_fill", raising(OSError(28, "No space left on device")))
    monkeypatch.setattr(backup_task, "remove_from_copies", raising(ValueError("it is damaged")))
    begin(task)
    with pytest.raises(DiskFull):
        task.tick()
    task.leave_last()
    assert task.close() is None
    assert warnings == ["what was removed is still in a copy of the state: ValueError: it is damaged"]
