"""The state of a root goes while somebody waits there: the wait ends with the error that says so."""

import os
import threading
from pathlib import Path

import pytest

import mam
from mam.app.context.resident_start_and_lock import lock
from mam.core.errors import RootMissing

QUICK = ["--speed", "0"]


def lose(workspace) -> None:
    """Take the state away. A deletion file by file would meet what somebody just writes there."""
    away = workspace.parent / "away"
    away.mkdir()
    for folder in (".mam", ".hermes"):
        (workspace / folder).rename(away / folder)


@pytest.fixture
def ends(workspace, until):
    """Return a function that waits for something in a thread, deletes the state, and returns the error."""

    def wait(waits, is_waiting=lambda: True):
        caught: list[BaseException] = []

        def run() -> None:
            with mam.open(str(workspace)) as own:
                began.set()
                try:
                    waits(own)
                except BaseException as error:
                    caught.append(error)

        began = threading.Event()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        began.wait()
        until(is_waiting)
        lose(workspace)
        thread.join(30)
        assert not thread.is_alive()
        return caught[0]

    return wait


def is_gone(error) -> bool:
    return isinstance(error, RootMissing) and error.exit_code == 1 and "mam restore" in str(error.hint)


@pytest.mark.parametrize("condition", ["exited", "waiting", "text:never"])
def test_wait_for_a_session(fleet, ends, condition) -> None:
    fleet.sessions.create("practice", args=QUICK, name="one").wait("idle", timeout=10)
    error = ends(lambda own: own.sessions.wait("one", condition, timeout=60))
    assert is_gone(error)


def test_wait_for_a_job(fleet, ends) -> None:
    job = fleet.jobs.submit(None, command=["sleep", "1000"])["job_id"]
    error = ends(lambda own: own.jobs.wait([job], timeout=60))
    assert is_gone(error)


def is_following(fleet, running) -> bool:
    """Tell whether a monitor has the database open: it follows, or is about to."""
    path = fleet._access.context.paths.db
    return any(os.path.realpath(handle) == path for handle in Path(f"/proc/{running.pid}/fd").iterdir())


def test_a_monitor_says_at_once_that_the_state_is_gone(fleet, monitor, workspace) -> None:
    fleet.init()
    lose(workspace)
    _, said = monitor().communicate(timeout=30)
    assert "the state of this root is gone" in said
    assert "mam init makes" not in said


def test_a_monitor_and_the_one_that_follows_it(fleet, monitor, until, workspace) -> None:
    fleet.sessions.create("practice", args=QUICK, name="one")
    first = monitor()
    until(lambda: lock(fleet._access.context).holder())
    second = monitor()
    until(lambda: is_following(fleet, second))
    lose(workspace)
    for one in (first, second):
        _, said = one.communicate(timeout=30)
        assert one.returncode == 1, said
        assert "the state of this root is gone" in said, said
        assert "mam restore" in said
