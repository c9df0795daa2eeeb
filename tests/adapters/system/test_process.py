"""Identities of processes: a zombie or another process with the same pid never counts."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import wait_until as until

from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.errors import NotAllowed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def child():
    """A process that waits until its input ends."""
    running = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    yield running
    running.stdin.close()
    running.kill()
    running.wait()


class TestIdentity:
    def test_it_is_a_value(self):
        identity = Identity(1, 2, "b")
        assert identity == Identity(1, 2, "b") and hash(identity) == hash(Identity(1, 2, "b"))
        assert (
            len(
                {identity, Identity(1, 2, "b"), Identity(1, 3, "b"), Identity(1, 2, "c"), Identity(2, 2, "b")}
            )
            == 4
        )
        assert identity != (1, 2, "b") and repr(identity) == "Identity(pid=1, start=2, boot='b')"

    def test_it_survives_a_record(self):
        me = process.me()
        assert Identity.from_json(json.loads(json.dumps(me.as_json()))) == me

    @pytest.mark.parametrize(
        "document",
        [
            None,
            {},
            [],
            "x",
            {"pid": 1, "start": 2},
            {"pid": "1", "start": 2, "boot": "b"},
            {"pid": True, "start": 2, "boot": "b"},
            {"pid": 0, "start": 2, "boot": "b"},
            {"pid": -1, "start": 2, "boot": "b"},
            {"pid": 1, "start": 2.0, "boot": "b"},
            {"pid": 1, "start": 2, "boot": None},
        ],
    )
    def test_what_is_no_record_is_no_identity(self, document):
        assert Identity.from_json(document) is None


class TestIdentify:
    def test_this_process(self):
        me = process.me()
        assert me.pid == os.getpid() and me.start > 0 and len(me.boot) == 36
        assert process.is_alive(me)

    def test_nobody(self):
        assert process.identify(2**22 - 3) is None

    def test_a_zombie_is_not_there(self):
        running = subprocess.Popen(["true"])
        try:
            until(lambda: (facts := process.stat(running.pid)) is not None and facts.zombie)
            assert process.identify(running.pid) is None
        finally:
            running.wait()

    def test_a_process_that_became_a_zombie_is_not_alive(self, child):
        identity = process.identify(child.pid)
        assert process.is_alive(identity)
        child.stdin.close()
        until(lambda: not process.is_alive(identity))
        assert Path(f"/proc/{child.pid}").exists()

    @pytest.mark.parametrize(
        "name", [b"a) R 1 (b", b") Z 0", b"x (y) z", b"new\nline", b"\xff\xfe", b" ", b")))"]
    )
    def test_a_name_full_of_brackets_forges_nothing(self, name):
        me = process.me()
        libc = ctypes.CDLL(None)
        before = Path("/proc/self/comm").read_bytes().rstrip(b"\n")
        libc.prctl(15, name, 0, 0, 0)
        try:
            assert process.identify(os.getpid()) == me
            assert process.stat(os.getpid()).parent == os.getppid()
        finally:
            libc.prctl(15, before, 0, 0, 0)

    def test_a_reused_pid_is_another_process(self, child):
        identity = process.identify(child.pid)
        assert not process.is_alive(Identity(child.pid, identity.start - 1, identity.boot))
        assert not process.is_alive(Identity(child.pid, identity.start, "another-boot"))

    def test_noise_in_place_of_a_stat_is_nobody(self):
        for noise in (b"", b"1 (x)", b"1 (x) S a b c", b"\xff" * 50):
            assert process._parse_stat(1, noise) is None


class TestAncestors:
    def test_from_the_parent_up(self, child):
        ancestors = process.ancestors(child.pid)
        assert ancestors[0] == process.me()
        assert ancestors[1].pid == os.getppid() and ancestors[-1].pid == 1
        assert child.pid not in [ancestor.pid for ancestor in ancestors]

    def test_of_nobody(self):
        assert process.ancestors(2**22 - 3) == []


# A leader of a terminal with four kinds of offspring, which print their pids.
FAMILY = """
import os, time
def fork(kind, *steps):
    if os.fork() == 0:
        for step in steps:
            step()
        os.write(1, f"{kind} {os.getpid()} ".encode())
        time.sleep(100)
fork("child", lambda: fork("grandchild", os.setsid))
fork("setsid", os.setsid)
if os.fork() == 0:
    fork("orphan")
    os._exit(0)
os.wait()
os.write(1, b"ready 0 ")
time.sleep(100)
"""


@pytest.fixture
def family():
    """Return (leader's pid, tty, pids by kind) of a process with a terminal of its own."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", FAMILY])
    text = ""
    while len(fields := text.split()) < 10:
        text += os.read(master, 4096).decode()
    kinds = dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
    del kinds["ready"]
    yield pid, str(Path(f"/proc/{pid}/fd/0").readlink()), kinds
    for member in (*kinds.values(), pid):
        os.kill(member, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(master)


class TestTree:
    def test_descendants_and_everybody_on_the_terminal(self, family):
        pid, tty, kinds = family
        assert process.stat(kinds["orphan"]).parent != pid
        assert process.stat(kinds["setsid"]).tty == 0
        tree = process.tree(pid, tty)
        assert {member.pid for member in tree} == {pid, *kinds.values()}
        assert all(process.is_alive(member) for member in tree)

    def test_without_a_terminal_only_descendants(self, family):
        pid, _, kinds = family
        assert {member.pid for member in process.tree(pid)} == {
            pid,
            *(kinds[kind] for kind in ("child", "grandchild", "setsid")),
        }

    def test_the_terminal_of_another_process_adds_nothing(self, family, child):
        tty = family[1]
        assert {member.pid for member in process.tree(child.pid, tty)} == {child.pid}

    def test_a_terminal_that_is_not_there(self, family):
        assert len(process.tree(family[0], "/dev/pts/99999")) == 4

    def test_a_root_that_is_gone_has_no_tree(self, family):
        pid, tty, _ = family
        identity = process.identify(pid)
        assert process.tree(Identity(pid, identity.start - 1, identity.boot), tty) == set()
        assert process.tree(Identity(pid, identity.start, "another-boot"), tty) == set()
        assert process.tree(2**22 - 3, tty) == set()
        assert process.tree(identity, tty)


class TestSignal:
    def test_it_reaches_that_process(self, child):
        identity = process.identify(child.pid)
        assert process.signal(identity, signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM
        assert not process.signal(identity, signal.SIGTERM)

    @pytest.mark.parametrize("pidfd", [True, False])
    def test_a_later_owner_of_the_pid_is_never_signalled(self, child, monkeypatch, pidfd):
        if not pidfd:
            monkeypatch.delattr(os, "pidfd_open")
        identity = process.identify(child.pid)
        for wrong in (
            Identity(child.pid, identity.start - 1, identity.boot),
            Identity(child.pid, identity.start, "another-boot"),
        ):
            assert not process.signal(wrong, signal.SIGKILL)
        assert child.poll() is None
        assert process.signal(identity, signal.SIGKILL)
        assert child.wait(10) == -signal.SIGKILL

    def test_a_zombie_is_gone(self, child):
        identity = process.identify(child.pid)
        child.stdin.close()
        until(lambda: process.stat(child.pid).zombie)
        assert not process.signal(identity, signal.SIGTERM)

    def test_a_kernel_without_the_call(self, child, monkeypatch):
        def refused(*_):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refused)
        assert process.signal(process.identify(child.pid), signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM

    @pytest.mark.parametrize("pidfd", [True, False])
    def test_somebody_elses_process(self, child, monkeypatch, pidfd):
        def refused(*_):
            raise PermissionError(1, "Operation not permitted")

        if not pidfd:
            monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.setattr(signal, "pidfd_send_signal", refused)
        monkeypatch.setattr(os, "kill", refused)
        with pytest.raises(NotAllowed):
            process.signal(process.identify(child.pid), signal.SIGTERM)
        monkeypatch.undo()


class TestInspection:
    def test_arguments(self, tmp_path):
        arguments = ["a b", "", os.fsdecode(b"\xff\n")]
        running = subprocess.Popen(
            [sys.executable, "-S", "-c", "input()", *arguments],
            stdin=subprocess.PIPE,
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: (process.command_line(running.pid) or [])[-3:] == arguments)
            assert process.working_directory(running.pid) == str(tmp_path)
        finally:
            running.kill()
            running.wait()
            running.stdin.close()

    def test_nobody(self):
        assert process.command_line(2**22 - 3) is None
        assert process.working_directory(2**22 - 3) is None
        assert process.device_of("/nonexistent") == 0

    def test_every_process_is_listed(self, child):
        assert {os.getpid(), child.pid} <= set(process.pids())

    def test_parent_and_start(self, child):
        assert process.parent_of(child.pid) == os.getpid()
        assert process.start_of(child.pid) == process.identify(child.pid).start
        assert process.parent_of(2**22 - 3) is None
        assert process.start_of(2**22 - 3) is None

    def test_children_of_every_thread(self, child):
        assert child.pid in process.children(os.getpid())
        assert process.children(child.pid) == []
        assert process.children(2**22 - 3) == []

    def test_open_files(self, tmp_path):
        path = tmp_path / "file"
        with path.open("w", encoding="utf-8"):
            assert str(path) in process.open_files(os.getpid())
            assert process.has_open(os.getpid(), path.stat()) is True
        assert str(path) not in process.open_files(os.getpid())
        assert process.has_open(os.getpid(), path.stat()) is False
        assert process.open_files(2**22 - 3) == []
        assert process.has_open(2**22 - 3, path.stat()) is False

    def test_a_process_that_may_not_be_looked_into(self, tmp_path, monkeypatch):
        def refused(_folder):
            raise PermissionError

        monkeypatch.setattr(os, "listdir", refused)
        assert process.has_open(1, tmp_path.stat()) is None
        assert process.open_files(1) == []

    def test_who_holds_a_lock(self, tmp_path):
        path = tmp_path / "lock"
        with path.open("w", encoding="utf-8") as file:
            assert process.lockers(path.stat().st_ino) == set()
            fcntl.flock(file, fcntl.LOCK_EX)
            assert os.getpid() in process.lockers(path.stat().st_ino)
