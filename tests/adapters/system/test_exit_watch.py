"""The watch reports each end of a process at once and once, and never that of another process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mam.adapters.system import exit_watch, process
from mam.adapters.system.exit_watch import ExitWatch, wait_gone
from mam.adapters.system.process import Identity

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def spawn():
    """Start processes that wait until their input ends."""
    running = []

    def spawn():
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        running.append(child)
        return child, process.identify(child.pid)

    yield spawn
    for child in running:
        child.stdin.close()
        child.kill()
        child.wait()


@pytest.fixture
def watch():
    watch = ExitWatch()
    yield watch
    watch.close()
    watch.close()


@pytest.fixture(params=["pidfd", "no call", "refused"])
def ways(request, monkeypatch):
    """Every way to notice an exit: pidfd, a Python without it, a kernel that refuses it."""
    if request.param == "no call":
        monkeypatch.delattr(os, "pidfd_open")
    if request.param == "refused":

        def refused(*_):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refused)
    return request.param


class TestWaitGone:
    def test_those_that_stay_are_returned(self, spawn, ways):
        (child, first), (_, second) = spawn(), spawn()
        child.stdin.close()
        started = time.monotonic()
        assert wait_gone({first, second}, 0.3) == {second}
        assert time.monotonic() - started > 0.25

    def test_it_ends_with_the_last(self, spawn, ways):
        (child, first), (other, second) = spawn(), spawn()
        child.kill()
        other.kill()
        assert wait_gone({first, second}, 600) == set()

    def test_a_zombie_a_reused_pid_and_a_free_pid_are_gone(self, spawn, ways):
        child, first = spawn()
        reused = Identity(first.pid, first.start - 1, first.boot)
        assert wait_gone({reused, Identity(2**22 - 3, 1, first.boot)}, 30) == set()
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert wait_gone({first}, 30) == set()

    def test_no_time_is_one_look(self, spawn):
        _, first = spawn()
        assert wait_gone({first}, 0) == {first}
        assert wait_gone(set(), 10) == set()


class TestExitWatch:
    def test_each_end_is_reported_once(self, spawn, watch, ways):
        (child, first), (other, second) = spawn(), spawn()
        watch.add(first, "first")
        watch.add(second, "second")
        assert watch.poll(0) == [] and len(watch) == 2
        child.stdin.close()
        assert watch.poll(10) == ["first"]
        assert watch.poll(0) == [] and len(watch) == 1
        other.stdin.close()
        assert watch.poll(10) == ["second"]

    def test_a_process_that_has_ended_already_is_reported(self, spawn, watch):
        child, first = spawn()
        child.kill()
        child.wait()
        watch.add(first, "x")
        assert select.select([watch], [], [], 10)[0]
        assert watch.poll(0) == ["x"]
        assert not select.select([watch], [], [], 0)[0]

    def test_a_process_with_a_reused_pid_is_gone(self, spawn, watch):
        _, first = spawn()
        watch.add(Identity(first.pid, first.start - 1, first.boot), "x")
        assert watch.poll(10) == ["x"]

    def test_a_discarded_process_is_not_reported(self, spawn, watch, ways):
        child, first = spawn()
        watch.add(first, "x")
        watch.discard(first)
        watch.discard(first)
        child.stdin.close()
        assert watch.poll(0.1) == [] and len(watch) == 0

    def test_added_twice_has_the_last_tag(self, spawn, watch):
        child, first = spawn()
        watch.add(first, "old")
        watch.add(first, "new")
        child.stdin.close()
        assert watch.poll(10) == ["new"]

    def test_a_tag_may_be_none(self, spawn, watch):
        child, first = spawn()
        watch.add(first, None)
        child.stdin.close()
        assert watch.poll(10) == [None]
        assert not select.select([watch], [], [], 0)[0]

    def test_its_descriptor_can_be_polled(self, spawn, watch):
        child, first = spawn()
        watch.add(first, "x")
        assert not select.select([watch], [], [], 0)[0]
        child.stdin.close()
        assert select.select([watch], [], [], 10)[0]

    def test_two_hundred(self, watch):
        before = descriptors()
        running = [subprocess.Popen(["sleep", "100"]) for _ in range(200)]
        try:
            for number, child in enumerate(running):
                watch.add(process.identify(child.pid), number)
            tags = []
            for child in running:
                child.send_signal(signal.SIGKILL)
            while len(tags) < 200 and (more := watch.poll(60)):
                tags += more
            assert sorted(tags) == list(range(200))
            assert len(watch) == 0
        finally:
            for child in running:
                child.kill()
                child.wait()
        assert descriptors() == before

    def test_without_a_free_descriptor_it_polls(self, spawn, watch, monkeypatch):
        def exhausted(*_):
            raise OSError(24, "Too many open files")

        child, first = spawn()
        monkeypatch.setattr(os, "pidfd_open", exhausted)
        watch.add(first, "x")
        child.stdin.close()
        assert watch.poll(10) == ["x"]

    def test_close_gives_every_descriptor_back(self, spawn):
        _, first = spawn()
        before = descriptors()
        watch = ExitWatch()
        watch.add(first, "x")
        watch.close()
        watch.close()
        assert descriptors() == before

    def test_the_kernel_reports_an_end_without_polling(self, spawn, watch, monkeypatch):
        monkeypatch.setattr(exit_watch, "_INTERVAL", 600)
        monkeypatch.setattr(exit_watch, "is_alive", lambda identity: True)
        for _ in range(20):
            child, first = spawn()
            watch.add(first, "x")
            child.kill()
            assert watch.poll(60) == ["x"]
