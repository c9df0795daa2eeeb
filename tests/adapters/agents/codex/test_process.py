"""Finding the Codex of a pane and its open conversation, with real processes and real locks."""

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
    return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


class Store:
    """A home with locks, and a wrapper that starts a program which takes a lock.

    The wrapper is a script named codex, like npm's. The program is `flock` with the same arguments; the first
    of them names the lock.
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
        """Start a program, wait until each of the locks is held, and return the pid."""
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
            "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
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


def test_a_program_with_and_without_a_wrapper(store, idents) -> None:
    wrapped = store.run(str(store.wrapper), store.lock(idents[0]), *SLEEP, held=idents[:1])
    plain = store.run("flock", store.lock(idents[1]), *SLEEP, held=idents)
    assert read(store, wrapped)[1] == idents[0]
    assert read(store, plain)[1] == idents[1]
    assert KIND.read_state(wrapped, start_of(wrapped) + 1, store.stores) is None
    assert KIND.read_state(wrapped, 0, store.stores) is None
    assert KIND.read_state(wrapped, start_of(wrapped), {"HOME": "/elsewhere"}) is None
    # mam names the process in the pane in both cases.
    assert KIND.holders(idents[0], store.stores) == [(wrapped, start_of(wrapped))]
    assert KIND.holders(idents[1], store.stores) == [(plain, start_of(plain))]


def test_a_codex_that_a_tool_started_is_not_that_of_the_pane(store, idents) -> None:
    tool = (str(store.wrapper), store.lock(idents[1]), *SLEEP)
    pane = store.run(str(store.wrapper), store.lock(idents[0]), *tool, held=idents)
    (program,) = children_of(pane)
    (inner,) = children_of(program)
    (child,) = children_of(inner)
    assert KIND.is_agent_process(program, pane) is True
    assert KIND.is_agent_process(pane, pane) is True
    assert KIND.is_agent_process(child, inner) is True
    assert not any(KIND.is_agent_process(pid, pane) for pid in (inner, child, os.getpid(), 2**22 + 1))
    assert read(store, pane)[1] == idents[0]
    assert KIND.holders(idents[1], store.stores) == [(inner, start_of(inner))]


def test_another_child_of_the_wrapper_is_not_the_program(store, idents) -> None:
    other_child = f'flock "{store.lock(idents[1])}" sleep 60 &\n'
    store.wrapper.write_text(f'#!/bin/sh\n{other_child}flock "$@"\nexit $?\n', encoding="utf-8")
    pane = store.run(str(store.wrapper), store.lock(idents[0]), *SLEEP, held=idents)
    answers = [KIND.is_agent_process(child, pane) for child in children_of(pane)]
    assert sorted(answers) == [False, True]
    assert read(store, pane)[1] == idents[0]


def test_a_script_of_another_name_is_no_wrapper(store, idents) -> None:
    tool = store.wrapper.rename(store.home / "tool")
    pane = store.run(str(tool), store.lock(idents[0]), *SLEEP, held=idents[:1])
    (child,) = children_of(pane)
    assert KIND.is_agent_process(child, pane) is False
    assert KIND.holders(idents[0], store.stores) == [(child, start_of(child))]


def test_a_lock_of_the_same_number_on_another_file_system(store, idents, monkeypatch) -> None:
    Path(store.lock(idents[0])).touch()
    monkeypatch.setattr(process, "lockers", lambda inode: {os.getpid()})
    assert KIND.holders(idents[0], store.stores) == []


def test_of_two_open_conversations_the_last_one_is_the_present_one(store, idents) -> None:
    """After /clear Codex keeps the lock of the old conversation."""
    pane = store.run(sys.executable, "-c", HOLD, *map(store.lock, idents), held=idents)
    os.utime(store.lock(idents[0]), (1000, 1000))
    os.utime(store.lock(idents[1]), (2000, 2000))
    assert read(store, pane)[1] == idents[1]
    # A resumed conversation counts from its last turn.
    store.write(idents[0], "task_started")
    evidence, ident = read(store, pane)
    assert (ident, evidence.source, evidence.state) == (idents[0], "transcript", "working")
    # The conversation of a subagent does not count.
    store.write(idents[0], "task_started", thread_source="subagent")
    evidence, ident = read(store, pane)
    assert (ident, evidence.source, evidence.state) == (idents[1], "state-file", "unknown")


def test_a_lock_that_nobody_holds_has_no_holder(store, idents) -> None:
    Path(store.lock(idents[0])).touch()
    # A process that only has the file open does not hold the lock.
    pid = store.run("sh", "-c", 'exec 8>>"$1"; sleep 60', "codex", store.lock(idents[0]), held=[])
    assert KIND.holders(idents[0], store.stores) == []
    assert KIND.holders(idents[1], store.stores) == []
    assert KIND.holders("../x", store.stores) == []
    assert KIND.holders(idents[0], {}) == []
    assert KIND.read_state(pid, start_of(pid), {}) is None
