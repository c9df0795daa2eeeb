"""Who waits for a lock gets it in turn, and gives up only when nothing moves."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mam.adapters.store.queue_lock import StandsStill, file_progress, hold

STANDS = 0.05
LONG = 60.0


def still() -> object:
    return None


def waiting(path: Path) -> int:
    """Return how many wait for the lock, as the kernel counts them."""
    inode = f":{path.stat().st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text("utf-8").splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="who waits is seen in /proc/locks: Linux only")
def test_first_come_first_served(tmp_path, until) -> None:
    path, order = tmp_path / "queue", []

    def take(number: int) -> None:
        with hold(str(path), still, LONG):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(20)]
    with hold(str(path), still, LONG):
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda number=number: waiting(path) == number + 1)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_who_stands_still_is_not_waited_for(tmp_path) -> None:
    path = str(tmp_path / "queue")
    with hold(path, still, LONG), pytest.raises(StandsStill), hold(path, still, STANDS):
        raise AssertionError("two hold it")
    # Who gave up takes no turn later.
    with hold(path, still, LONG):
        pass


def test_a_queue_that_moves_is_waited_for(tmp_path) -> None:
    path, moves = str(tmp_path / "queue"), itertools.count()
    ready, got = threading.Event(), threading.Event()

    def moving() -> object:
        number = next(moves)
        if number > 5:
            ready.set()
        return number

    def take() -> None:
        with hold(path, moving, STANDS):
            got.set()

    with hold(path, still, LONG):
        thread = threading.Thread(target=take)
        thread.start()
        assert ready.wait(LONG)
        assert not got.is_set()
    assert got.wait(LONG)
    thread.join()


def test_the_kernel_lets_go_of_a_dead_holder(tmp_path) -> None:
    path = str(tmp_path / "queue")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from mam.adapters.store.queue_lock import hold\n"
            "with hold(sys.argv[1], lambda: None, 60.0): print('held', flush=True); sys.stdin.read()",
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StandsStill), hold(path, still, STANDS):
            raise AssertionError("two hold it")
        holder.send_signal(signal.SIGKILL)
        with hold(path, still, LONG):
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_an_interrupt_gives_the_place_up(tmp_path) -> None:
    path = str(tmp_path / "queue")

    def interrupted() -> object:
        raise KeyboardInterrupt

    with hold(path, still, LONG), pytest.raises(KeyboardInterrupt), hold(path, interrupted, LONG):
        raise AssertionError("two hold it")
    with hold(path, still, LONG):
        pass


def test_a_link_is_not_followed(tmp_path) -> None:
    (tmp_path / "queue").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), hold(str(tmp_path / "queue"), still, LONG):
        raise AssertionError("it was followed")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_written_makes_progress(tmp_path) -> None:
    path = tmp_path / "file"
    assert file_progress(str(path)) is None
    path.write_text("one", encoding="utf-8")
    before = file_progress(str(path))
    os.utime(path, (1, 1))
    assert file_progress(str(path)) not in (None, before)
