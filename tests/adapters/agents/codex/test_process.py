"""Which process is the Codex of a pane, and which conversation it has open: real processes, real locks."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import wait_until

from mam.adapters.agents.codex.kind import Codex
from mam.adapters.system import process

KIND = Codex()
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc"),
    pytest.mark.skipif(not shutil.which("flock"), reason="flock stands in for the program"),
]
SLEEP = ("sleep", "60")
HOLD = """
import fcntl, sys, time
files = [open(path, "a") for path in sys.argv[1:]]
[fcntl.flock(file, fcntl.LOCK_EX) for file in files]
time.sleep(60)
"""


def start_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


def children_of(pid):
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


class Store:
    """A home, and a wrapper that starts a program which takes the lock that its first argument names.

    The wrapper is a script named codex, as npm's is; the program is `flock`, with just the same arguments.
    """

    def __init__(self, home):
        self.home = home
        self.stores = {"HOME": str(home)}
        self.locks = home / ".codex" / "thread-writer-locks"
        self.locks.mkdir(parents=True)
        (self.locks / ".coordination.lock").touch()
        self.wrapper = home / "codex"
        self.wrapper.write_text('#!/bin/sh\nflock "$@"\nexit $?\n', encoding="utf-8")
        self.wrapper.chmod(0o755)
        self.started = []

    def lock(self, ident):
        return str(self.locks / f"{ident}.lock")

    def run(self, *argv, held):
        """Start something, and wait until every lock is held; return its pid."""
        running = subprocess.Popen(argv, start_new_session=True)
        self.started.append(running)
        wait_until(lambda: all(KIND.holders(ident, self.stores) for ident in held), "the locks")
        return running.pid

    def write(self, ident, *events, **meta):
        path = self.home / ".codex/sessions/2026/11/15" / f"rollout-2026-11-15T12-00-00-{ident}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [{"type": "session_meta", "payload": {"id": ident, "thread_source": "user"} | meta}]
        lines += [
            {"timestamp": f"2100-01-01T00:00:{number:02}Z", "type": "event_msg", "payload": {"type": kind}}
            for number, kind in enumerate(events)
        ]
        path.write_text(
            "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines), encoding="utf-8"
        )

    def close(self):
        for running in self.started:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, 9)
            running.wait()


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def idents():
    return [str(uuid.uuid4()) for _ in range(2)]


def read(store, pid):
    return KIND.read_state(pid, start_of(pid), store.stores)


def test_a_wrapped_program_and_one_that_is_not(store, idents) -> None:
    wrapped = store.run(str(store.wrapper), store.lock(idents[0]), *SLEEP, held=idents[:1])
    plain = store.run("flock", store.lock(idents[1]), *SLEEP, held=idents)
    assert read(store, wrapped)[1] == idents[0]
    assert read(store, plain)[1] == idents[1]
    assert KIND.read_state(wrapped, start_of(wrapped) + 1, store.stores) is None
    assert KIND.read_state(wrapped, 0, store.stores) is None
    assert KIND.read_state(wrapped, start_of(wrapped), {"HOME": "/elsewhere"}) is None
    # Both go by the process that mam knows, the one in the pane.
    assert KIND.holders(idents[0], store.stores) == [(wrapped, start_of(wrapped))]
    assert KIND.holders(idents[1], store.stores) == [(plain, start_of(plain))]


def test_a_codex_that_a_tool_started_is_another(store, idents) -> None:
    words = (str(store.wrapper), store.lock(idents[1]), *SLEEP)
    pane = store.run(str(store.wrapper), store.lock(idents[0]), *words, held=idents)
    (program,) = children_of(pane)
    (inner,) = children_of(program)
    (child,) = children_of(inner)
    assert KIND.is_voice(program, pane) is True
    assert KIND.is_voice(pane, pane) is True
    assert KIND.is_voice(child, inner) is True
    assert not any(KIND.is_voice(one, pane) for one in (inner, child, os.getpid(), 2**22 + 1))
    assert read(store, pane)[1] == idents[0]
    assert KIND.holders(idents[1], store.stores) == [(inner, start_of(inner))]


def test_what_else_a_wrapper_starts_is_not_the_program(store, idents) -> None:
    held = f'flock "{store.lock(idents[1])}" sleep 60 &\n'
    store.wrapper.write_text(f'#!/bin/sh\n{held}flock "$@"\nexit $?\n', encoding="utf-8")
    pane = store.run(str(store.wrapper), store.lock(idents[0]), *SLEEP, held=idents)
    voices = [KIND.is_voice(child, pane) for child in children_of(pane)]
    assert sorted(voices) == [False, True]
    assert read(store, pane)[1] == idents[0]


def test_a_script_of_another_name_is_no_wrapper(store, idents) -> None:
    tool = store.wrapper.rename(store.home / "tool")
    pane = store.run(str(tool), store.lock(idents[0]), *SLEEP, held=idents[:1])
    (child,) = children_of(pane)
    assert KIND.is_voice(child, pane) is False
    assert KIND.holders(idents[0], store.stores) == [(child, start_of(child))]


def test_a_lock_of_the_same_number_on_another_file_system(store, idents, monkeypatch) -> None:
    Path(store.lock(idents[0])).touch()
    monkeypatch.setattr(process, "lockers", lambda inode: {os.getpid()})
    assert KIND.holders(idents[0], store.stores) == []


def test_the_last_of_two_conversations_is_the_one_it_has(store, idents) -> None:
    """After /clear Codex keeps the lock of the conversation before."""
    pane = store.run(sys.executable, "-c", HOLD, *map(store.lock, idents), held=idents)
    os.utime(store.lock(idents[0]), (1000, 1000))
    os.utime(store.lock(idents[1]), (2000, 2000))
    assert read(store, pane)[1] == idents[1]
    # One that was taken up again counts from what was said in it.
    store.write(idents[0], "task_started")
    evidence, ident = read(store, pane)
    assert (ident, evidence.source, evidence.state) == (idents[0], "transcript", "working")
    # One that another conversation started is not what the person has.
    store.write(idents[0], "task_started", thread_source="subagent")
    evidence, ident = read(store, pane)
    assert (ident, evidence.source, evidence.state) == (idents[1], "state-file", "unknown")


def test_a_lock_that_nobody_holds_has_no_holder(store, idents) -> None:
    Path(store.lock(idents[0])).touch()
    # To have a file open is not to hold it.
    pid = store.run("sh", "-c", 'exec 8>>"$1"; sleep 60', "codex", store.lock(idents[0]), held=[])
    assert KIND.holders(idents[0], store.stores) == []
    assert KIND.holders(idents[1], store.stores) == []
    assert KIND.holders("../x", store.stores) == []
    assert KIND.holders(idents[0], {}) == []
    assert KIND.read_state(pid, start_of(pid), {}) is None
