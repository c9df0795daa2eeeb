"""The 22 faults: each is put into a world whose state a verb will meet, and lifted again.

A name that begins with `fake_` is injected into mam, because the real thing cannot be had: a reboot, a clock.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.matrix.world import ARGS, World
from tests.waiting import wait_until

from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux

Injection = Callable[[World, pytest.MonkeyPatch], Any]
DAY = 86_400.0


@dataclass(frozen=True)
class Fault:
    """A fault, how it is put in, and how a person gets over it."""

    inject: Injection
    mend: Callable[[World], None] = World.mend
    args: tuple[str, ...] = ARGS
    # Whether the panes of others survive it.
    keeps_panes: bool = True


# ---------------------------------------------------------------- tmux


@contextmanager
def tmux_killed(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the tmux server; its panes end."""
    _kill_server(world)
    yield


def _kill_server(world: World) -> None:
    agents = [pane.pid for pane in world.tmux.panes().panes if not pane.dead]
    os.kill(world.server_pid(), signal.SIGKILL)
    wait_until(lambda: not any(map(process.identify, agents)), "the end of every agent")
    wait_until(lambda: world.tmux.server_pid() is None, "the end of the server")


@contextmanager
def tmux_socket_deleted(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Delete the socket of a server that runs on."""
    pid = world.server_pid()
    path = Path(world.tmux.socket_path())
    path.unlink()
    try:
        yield
    finally:
        if path.exists():
            # A verb has started another server: the old one, which nobody reaches any more, ends.
            os.kill(pid, signal.SIGKILL)
        else:
            # A server makes its socket anew when it is asked to.
            os.kill(pid, signal.SIGUSR1)
            wait_until(path.exists, "the socket")


def name_panes_again(world: World) -> None:
    """Give the panes the names that their sessions got while nobody could reach them."""
    names = {row["id"]: row["name"] for row in world.rows().values()}
    for pane in world.tmux.panes().panes:
        if pane.mark in names and pane.session_name != names[pane.mark]:
            world.tmux.rename_session(pane.session_id, names[pane.mark])
        if pane.mark in names and pane.dead:
            world.tmux.kill_pane(pane.id, mark=None)
    world.mend()


@contextmanager
def tmux_hangs(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the server, so that it does not answer; mam waits half a second instead of ten."""
    pid = world.server_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(Tmux.__init__.__kwdefaults__, "timeout", 0.5)
            yield
    finally:
        os.kill(pid, signal.SIGCONT)


# ---------------------------------------------------------------- panes and agents


@contextmanager
def pane_killed(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the pane of the session, as a person does."""
    _close_pane(world)
    yield


@contextmanager
def pane_replaced(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the pane of the session; a stranger takes its name."""
    _close_pane(world)
    world.start_foreign("one")
    try:
        yield
        assert not world.screen("one").strip(), "I4: something was typed into the pane of a stranger"
    finally:
        for pane in world.tmux.panes().panes:
            if pane.session_name == "one" and not pane.mark:
                world.tmux.kill_pane(pane.id, mark=None)


def _close_pane(world: World) -> None:
    """Close the pane of every session of the root."""
    rows = world.rows().values()
    for pane in world.tmux.panes().panes:
        if pane.mark in [row["id"] for row in rows]:
            world.tmux.kill_pane(pane.id, mark=None)
            wait_until(lambda pid=pane.pid: process.identify(pid) is None, "the end of the agent")


@contextmanager
def dialog_open(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the agent ask a question, and nobody answer."""
    with world.open() as fleet:
        if fleet.sessions.status("one")["activity"] != "waiting":
            fleet.messages.send("one", "/ask touch foo", command=True, timeout=10)
            fleet.sessions.wait("one", "waiting", timeout=20)
    yield


def answer_no(world: World) -> None:
    """Answer the question, as a person does at last."""
    with world.open() as fleet:
        (session,) = fleet.sessions.list()
        if session.row["status"] == "running" and session.status()["activity"] == "waiting":
            session.answer("deny")
    world.mend()


# ---------------------------------------------------------------- files


def yaml_fault(change: Callable[[bytes], bytes | None]) -> Injection:
    """Return the fault that changes the registry file; None deletes it."""

    @contextmanager
    def inject(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
        path = world.root / ".hermes" / "agent-sessions.yaml"
        good = path.read_bytes()
        bad = change(good)
        if bad is None:
            path.unlink()
        else:
            path.write_bytes(bad)
        yield
        if bad is not None and path.exists() and path.read_bytes() == bad:
            # What a person does: the file as it was, or without it mam writes it anew.
            path.unlink()

    return inject


def _edited(text: bytes) -> bytes:
    assert b"role: null" in text
    return text.replace(b"role: null", b"role: tester", 1)


# ---------------------------------------------------------------- clocks, boots, locks


def fake_clock(jump: float, *, frozen: bool = False) -> Injection:
    """Return the fault that gives mam another clock."""

    @contextmanager
    def inject(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
        now = time.time()
        world.clock = (lambda: now) if frozen else (lambda: time.time() + jump)
        try:
            yield
        finally:
            world.clock = None

    return inject


@contextmanager
def fake_boot_id(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reboot: no server, no agent, another boot id, and the recorded pid is that of a stranger."""
    row = world.row()
    _kill_server(world)
    if row["status"] == "running":
        row["pane"]["pid"] = world.stranger.pid
        connection = sqlite3.connect(world.root / ".mam" / "state.db")
        with connection:
            connection.execute("UPDATE sessions SET data=? WHERE id=?", (json.dumps(row), row["id"]))
        connection.close()
    boot = process.boot_id()
    patch.setattr(process, "_boot", f"{boot[:-4]}beef" if not boot.endswith("beef") else f"{boot[:-4]}0000")
    yield


FAULTS: dict[str, Fault] = {
    "tmux server killed": Fault(tmux_killed, keeps_panes=False),
    "tmux socket deleted": Fault(tmux_socket_deleted, name_panes_again, keeps_panes=False),
    "pane killed": Fault(pane_killed),
    "pane replaced": Fault(pane_replaced),
    "tmux hangs": Fault(tmux_hangs),
    "dialog open": Fault(dialog_open, answer_no),
    "clock, ahead": Fault(fake_clock(DAY)),
    "clock, behind": Fault(fake_clock(-DAY)),
    "clock, frozen": Fault(fake_clock(0.0, frozen=True)),
    "reboot": Fault(fake_boot_id, keeps_panes=False),
    "registry file, edited": Fault(yaml_fault(_edited)),
    "registry file, corrupt": Fault(yaml_fault(lambda text: text + b"\n  - [\n")),
    "registry file, cut": Fault(yaml_fault(lambda text: text[: len(text) // 2])),
    "registry file, empty": Fault(yaml_fault(lambda _text: b"")),
    "registry file, deleted": Fault(yaml_fault(lambda _text: None)),
}
