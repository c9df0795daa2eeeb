"""Ends of processes are seen at once, each once, and never those of strangers."""

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
        one = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        running.append(one)
        return one, process.identify(one.pid)

    yield spawn
    for one in running:
        one.stdin.close()
        one.kill()
        one.wait()


@pytest.fixture
def watch():
    watch = ExitWatch()
    yield watch
    watch.close()
    watch.close()


@pytest.fixture(params=["pidfd", "no call", "refused"])
def ways(request, monkeypatch):
    """Every way to know: pidfd, a Python without it, a kernel that refuses."""
    if request.param == "no call":
        monkeypatch.delattr(os, "pidfd_open")
    if request.param == "refused":

        def refused(*_):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refused)
    return request.param


class TestWaitGone:
    def test_those_that_stay_are_returned(self, spawn, ways):
        (one, first), (_, second) = spawn(), spawn()
        one.stdin.close()
        started = time.monotonic()
        assert wait_gone({first, second}, 0.3) == {second}
        assert time.monotonic() - started > 0.25

    def test_it_ends_with_the_last(self, spawn, ways):
        (one, first), (two, second) = spawn(), spawn()
        one.kill()
        two.kill()
        assert wait_gone({first, second}, 600) == set()

    def test_a_zombie_a_stranger_and_nobody_are_gone(self, spawn, ways):
        one, first = spawn()
        stranger = Identity(first.pid, first.start - 1, first.boot)
        assert wait_gone({stranger, Identity(2**22 - 3, 1, first.boot)}, 30) == set()
        one.stdin.close()
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        assert wait_gone({first}, 30) == set()

    def test_no_time_is_one_look(self, spawn):
        _, first = spawn()
        assert wait_gone({first}, 0) == {first}
        assert wait_gone(set(), 10) == set()


class TestExitWatch:
    def test_each_end_is_told_once(self, spawn, watch, ways):
        (one, first), (two, second) = spawn(), spawn()
        watch.add(first, "first")
        watch.add(second, "second")
        assert watch.poll(0) == [] and len(watch) == 2
        one.stdin.close()
        assert watch.poll(10) == ["first"]
        assert watch.poll(0) == [] and len(watch) == 1
        two.stdin.close()
        assert watch.poll(10) == ["second"]

    def test_one_that_is_gone_already_is_told_and_wakes(self, spawn, watch):
        one, first = spawn()
        one.kill()
        one.wait()
        watch.add(first, "x")
        assert select.select([watch], [], [], 10)[0]
        assert watch.poll(0) == ["x"]
        assert not select.select([watch], [], [], 0)[0]

    def test_a_stranger_with_the_pid_is_gone(self, spawn, watch):
        _, first = spawn()
        watch.add(Identity(first.pid, first.start - 1, first.boot), "x")
        assert watch.poll(10) == ["x"]

    def test_discarded_is_not_told(self, spawn, watch, ways):
        one, first = spawn()
        watch.add(first, "x")
        watch.discard(first)
        watch.discard(first)
        one.stdin.close()
        assert watch.poll(0.1) == [] and len(watch) == 0

    def test_added_twice_has_the_last_tag(self, spawn, watch):
        one, first = spawn()
        watch.add(first, "old")
        watch.add(first, "new")
        one.stdin.close()
        assert watch.poll(10) == ["new"]

    def test_a_tag_may_be_none(self, spawn, watch):
        one, first = spawn()
        watch.add(first, None)
        one.stdin.close()
        assert watch.poll(10) == [None]
        assert not select.select([watch], [], [], 0)[0]

    def test_its_descriptor_can_be_polled(self, spawn, watch):
        one, first = spawn()
        watch.add(first, "x")
        assert not select.select([watch], [], [], 0)[0]
        one.stdin.close()
        assert select.select([watch], [], [], 10)[0]

    def test_two_hundred(self, watch):
        before = descriptors()
        running = [subprocess.Popen(["sleep", "100"]) for _ in range(200)]
        try:
            for number, one in enumerate(running):
                watch.add(process.identify(one.pid), number)
            seen = []
            for one in running:
                one.send_signal(signal.SIGKILL)
            while len(seen) < 200 and (more := watch.poll(60)):
                seen += more
            assert sorted(seen) == list(range(200))
            assert len(watch) == 0
        finally:
            for one in running:
                one.kill()
                one.wait()
        assert descriptors() == before

    def test_without_a_free_descriptor_it_looks_itself(self, spawn, watch, monkeypatch):
        def exhausted(*_):
            raise OSError(24, "Too many open files")

        one, first = spawn()
        monkeypatch.setattr(os, "pidfd_open", exhausted)
        watch.add(first, "x")
        one.stdin.close()
        assert watch.poll(10) == ["x"]

    def test_close_gives_every_descriptor_back(self, spawn):
        _, first = spawn()
        before = descriptors()
        watch = ExitWatch()
        watch.add(first, "x")
        watch.close()
        watch.close()
        assert descriptors() == before

    def test_an_end_is_told_and_not_looked_for(self, spawn, watch, monkeypatch):
        monkeypatch.setattr(exit_watch, "_INTERVAL", 600)
        monkeypatch.setattr(exit_watch, "is_alive", lambda identity: True)
        for _ in range(20):
            one, first = spawn()
            watch.add(first, "x")
            one.kill()
            assert watch.poll(60) == ["x"]
