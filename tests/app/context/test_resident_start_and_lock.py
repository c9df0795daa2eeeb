"""Whoever has just taken the lock of the resident has not described itself yet: its file names a dead one."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mam
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import process
from mam.app.context import resident_start_and_lock as residents
from mam.app.context.resident_state import resident_state
from mam.core.errors import ResidentRuns

BEGINNING = """
import fcntl, os, sys
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import process
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.readline()
lock = ProcessLock(sys.argv[1])
lock._handle, lock._length = handle, os.fstat(handle).st_size
lock.rewrite(process.me().as_json())
sys.stdin.readline()
"""


@pytest.fixture
def context(quick_path, home):
    with mam.open(str(quick_path)) as fleet:
        fleet.init()
        yield fleet._access.context


@pytest.fixture
def beginning(context):
    """A process that has the lock, and describes itself when it gets a line."""
    lock = residents.lock(context)
    former = {**process.me().as_json(), "start": process.me().start + 1, "version": "0.1.5"}
    assert lock.take(former)
    lock.release()
    running = subprocess.Popen(
        [sys.executable, "-c", BEGINNING, lock.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "locked\n"
    assert "0.1.5" in Path(lock.path).read_text(encoding="utf-8"), "the dead one is still named"
    yield running
    running.kill()
    running.communicate()


def test_it_is_a_resident_of_which_nothing_is_known(context, beginning) -> None:
    assert residents.has_resident(context)
    state = resident_state(context)
    assert (state["state"], state["version"], state["reason"]) == ("running", None, None)


def test_it_is_ended_as_soon_as_it_says_who_it_is(context, beginning, monkeypatch, until) -> None:
    looks: list[object] = []
    look = ProcessLock.holder

    def holder(lock):
        looks.append(look(lock))
        return looks[-1]

    monkeypatch.setattr(ProcessLock, "holder", holder)
    answers: list[bool] = []
    ending = threading.Thread(target=lambda: answers.append(residents.end(context)))
    ending.start()
    try:
        until(lambda: len(looks) > 1 or not ending.is_alive())
        assert (ending.is_alive(), beginning.poll()) == (True, None)
    finally:
        print(file=beginning.stdin, flush=True)
        ending.join()
    assert (answers, looks[-1], beginning.wait()) == ([True], None, -15)


def test_one_that_never_says_who_it_is_is_not_taken_for_ended(context, beginning, monkeypatch) -> None:
    monkeypatch.setattr(residents, "_END_SECONDS", 0.1)
    with pytest.raises(ResidentRuns, match="the resident of this root does not end") as refused:
        residents.end(context)
    assert residents.lock(context).path in refused.value.hint
    assert beginning.poll() is None


def test_without_a_resident_there_is_nothing_to_end(context) -> None:
    assert residents.end(context) is False
