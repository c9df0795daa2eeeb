"""Processes get the lock in the order of arrival, and give up only if the queue does not move."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mam.adapters.store import fifo_lock
from mam.adapters.store.fifo_lock import QueueStuck, hold

SHORT = 0.05
LONG = 60.0


def waiting(path: Path) -> int:
    """Return how many processes wait for the lock, as the kernel counts them."""
    inode = f":{path.stat().st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text("utf-8").splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/locks exists only on Linux")
def test_first_come_first_served(tmp_path, until) -> None:
    path, order = tmp_path / "queue", []

    def take(number: int) -> None:
        with hold(str(path), LONG):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(20)]
    with hold(str(path), LONG):
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda number=number: waiting(path) == number + 1)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_a_stuck_queue_is_not_waited_for(tmp_path) -> None:
    path = str(tmp_path / "queue")
    with hold(path, LONG), pytest.raises(QueueStuck), hold(path, SHORT):
        raise AssertionError("two hold it")
    # A place that was given up takes no turn later.
    with hold(path, LONG):
        pass


def test_a_queue_that_moves_is_waited_for(tmp_path, monkeypatch) -> None:
    path = str(tmp_path / "queue")
    checks, has_lock = threading.Semaphore(0), threading.Event()
    real = os.fstat

    def fstat(handle: int) -> os.stat_result:
        # Another process has a turn between two checks.
        os.utime(path, ns=(0, next(times)))
        checks.release()
        return real(handle)

    times = iter(range(1, 10_000_000))
    monkeypatch.setattr(fifo_lock.os, "fstat", fstat)

    def take() -> None:
        with hold(path, SHORT):
            has_lock.set()

    with hold(path, LONG):
        thread = threading.Thread(target=take)
        thread.start()
        for _ in range(5):
            assert checks.acquire(timeout=LONG)
        assert not has_lock.is_set()
    assert has_lock.wait(LONG)
    thread.join()


def test_a_turn_changes_the_time_of_the_file(tmp_path) -> None:
    path = tmp_path / "queue"
    path.touch()
    os.utime(path, (1, 1))
    with hold(str(path), LONG):
        assert path.stat().st_mtime > 1


def test_the_kernel_lets_go_of_a_dead_holder(tmp_path) -> None:
    path = str(tmp_path / "queue")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from mam.adapters.store.fifo_lock import hold\n"
            "with hold(sys.argv[1], 60.0): print('held', flush=True); sys.stdin.read()",
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(QueueStuck), hold(path, SHORT):
            raise AssertionError("two hold it")
        holder.send_signal(signal.SIGKILL)
        with hold(path, LONG):
            pass
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("comes", ["before the turn", "with the turn"])
def test_an_interrupt_gives_the_place_up(tmp_path, monkeypatch, comes) -> None:
    path = str(tmp_path / "queue")
    real = fifo_lock._Place.has_turn
    free = threading.Event()

    def interrupted(place: fifo_lock._Place, seconds: float) -> bool:
        if comes == "with the turn":
            free.set()
            assert real(place, LONG)
        raise KeyboardInterrupt

    monkeypatch.setattr(fifo_lock._Place, "has_turn", interrupted)

    def block() -> None:
        with hold(path, LONG):
            held.set()
            assert free.wait(LONG)

    held, holder = threading.Event(), threading.Thread(target=block)
    holder.start()
    assert held.wait(LONG)
    with pytest.raises(KeyboardInterrupt), hold(path, LONG):
        raise AssertionError("it was held")
    free.set()
    holder.join()
    monkeypatch.undo()
    with hold(path, LONG):
        pass


def test_a_stuck_queue_costs_one_thread(tmp_path) -> None:
    path = str(tmp_path / "queue")
    with hold(path, LONG):
        before = _thread._count()
        for _ in range(5):
            with pytest.raises(QueueStuck), hold(path, SHORT):
                raise AssertionError("two hold it")
        assert _thread._count() <= before + 1
    with hold(path, LONG):
        pass


def test_without_a_thread_the_lock_is_polled(tmp_path, monkeypatch) -> None:
    path = str(tmp_path / "queue")
    monkeypatch.setattr(fifo_lock._Place, "enter", lambda place: False)
    with hold(path, LONG), pytest.raises(QueueStuck), hold(path, SHORT):
        raise AssertionError("two hold it")
    with hold(path, LONG):
        pass


def test_a_link_is_not_followed(tmp_path) -> None:
    (tmp_path / "queue").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), hold(str(tmp_path / "queue"), LONG):
        raise AssertionError("it was followed")
    assert not (tmp_path / "elsewhere").exists()
