"""The 22 faults: each is put into a world whose state a verb will meet, and lifted again.

A name that begins with `fake_` is injected into mam, because the real thing cannot be had: a reboot, a clock.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.app.over_broker import signed
from tests.faults.machine import ENOSPC, EROFS, FAIL_FROM, FULL
from tests.matrix.broker_proxy import BLOCKED, CLOSED, CUT, OPEN, BrokerProxy
from tests.matrix.world import ARGS, JOB, World
from tests.waiting import send_and_wait, wait_for, wait_until

from mam.adapters.store import database
from mam.adapters.store.tables import outbox
from mam.adapters.system import process
from mam.adapters.tmux.client import TIMEOUT, Tmux
from mam.app.brokers import publish
from mam.app.context import claims
from mam.app.monitor import doctor
from mam.app.sessions import reconcile
from mam.core.errors import NoDialog
from mam.core.stop_escalation import HANG_UP

Injection = Callable[[World, pytest.MonkeyPatch], Any]
DAY = 86_400.0


@dataclass(frozen=True)
class Disk:
    """How the calls fail that change a file of mam."""

    mode: int
    number: int


@dataclass(frozen=True)
class Fault:
    """A fault, how it is put in, and how a person gets over it."""

    inject: Injection
    mend: Callable[[World], None] = World.mend
    args: tuple[str, ...] = ARGS
    # Whether the panes of others survive it.
    keeps_panes: bool = True
    needs_broker: bool = False
    # Whether the registry file is one that mam must leave as it is.
    damages_file: bool = False
    disk: Disk | None = None


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
def tmux_socket_deleted(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Delete the socket of a server that runs on; a pass waits a moment for the end of what lost its pane."""
    patch.setitem(reconcile.GRACE, HANG_UP, 0.3)
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


def tmux_hangs(timeout: float) -> Injection:
    """Return the fault that stops the server, so that it does not answer, and mam's time limit for it."""

    @contextmanager
    def inject(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
        pid = world.server_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            # Afterwards a busy machine needs the time limit that mam has.
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(Tmux.__init__.__kwdefaults__, "timeout", timeout)
                yield
        finally:
            os.kill(pid, signal.SIGCONT)

    return inject


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
            send_and_wait(fleet, "one", "/ask touch foo", command=True)
            wait_for(fleet.sessions.get("one"), "waiting")
    yield


def answer_no(world: World) -> None:
    """Answer the question, as a person does at last."""
    with world.open() as fleet:
        (session,) = fleet.sessions.list()
        if session.row["status"] == "running":
            if session.status()["activity"] == "waiting":
                # The verb may have answered it, and the hook that says so is on its way.
                with suppress(NoDialog):
                    session.answer("deny")
            # Until its hook is there, the next verb would take the answered question for an open one.
            wait_for(session, "idle")
    world.mend()


@contextmanager
def nothing_more(_world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with what is there: the fault lies in the agent, or in the process that calls the verb."""
    yield


@contextmanager
def agent_floods(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the agent print 500 MB."""
    with world.open() as fleet:
        fleet.messages.interrupt("one")
        wait_for(fleet.sessions.get("one"), "idle")
        fleet.messages.send("one", "/flood 512000", command=True, timeout=10)
        world.wait_for_screen("flood 0")
    yield


def restart(world: World) -> None:
    """Stop the agent and resume it, as a person does."""
    with world.open() as fleet:
        (session,) = fleet.sessions.list()
        if session.row["status"] == "running":
            session.stop(force=True)
            session.resume()
    world.mend()


# ---------------------------------------------------------------- brokers


def broker_fault(change: Callable[[BrokerProxy], None]) -> Injection:
    """Return the fault that changes what lies between mam and its broker."""

    @contextmanager
    def inject(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
        # Seconds in which a verb publishes what other verbs have left.
        patch.setattr(publish, "_FLUSH_SECONDS", 0.3)
        patch.setattr(doctor, "_BROKER_SECONDS", 0.3)
        proxy = world.proxy
        assert proxy is not None
        change(proxy)
        try:
            yield
        finally:
            proxy.delay, proxy.to_cut = 0.0, 0
            proxy.set(OPEN)

    return inject


def publish_all(world: World) -> None:
    """Have the next change publish what waits."""
    world.mend()
    with world.open() as fleet:
        fleet._access.end()
        assert not fleet._access.context.registry.peek(outbox.waiting_jobs, []), (
            "something is left to publish"
        )


def _slow(proxy: BrokerProxy) -> None:
    proxy.delay = 1.0


def _storm(proxy: BrokerProxy) -> None:
    proxy.to_cut = 50


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


# ---------------------------------------------------------------- locks and events


def claim_by(owner: Callable[[World], dict[str, Any]]) -> Injection:
    """Return the fault that leaves a claim on the session; mam waits half a second for a live owner."""

    @contextmanager
    def inject(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
        patch.setattr(claims, "WAIT_SECONDS", 0.5)
        row = world.row()
        values = (row["id"], "one", "archive", json.dumps(owner(world)), 1.0, "{}")
        connection = sqlite3.connect(world.root / ".mam" / "state.db")
        with connection:
            connection.execute("INSERT INTO intents VALUES(?, ?, ?, ?, ?, ?)", values)
        yield
        with connection:
            connection.execute("DELETE FROM intents WHERE at=1.0")
        connection.close()

    return inject


def _live(world: World) -> dict[str, Any]:
    identity = process.identify(world.stranger.pid)
    assert identity is not None
    return identity.as_json()


def _reused(world: World) -> dict[str, Any]:
    return {**_live(world), "start": 1}


def _dead(_world: World) -> dict[str, Any]:
    return {"pid": 1, "start": 1, "boot": "another boot"}


_HOLDER = "import fcntl, sys, time\nfile = open(sys.argv[1], 'a')\nfcntl.flock(file, fcntl.LOCK_EX)\n"
_HOLDER += "print(flush=True)\ntime.sleep(1000)"


@contextmanager
def registry_held(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have another process hold the lock of the registry; mam waits a third of a second for it."""
    patch.setattr(database, "BUSY_SECONDS", 0.3)
    path = world.root / ".mam" / "state.db.queue"
    command = [sys.executable, "-S", "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.kill()


def events_from_elsewhere(*numbers: int, later: float = 0.0) -> Injection:
    """Return the fault that has signed events arrive, and again after some time; none counts twice."""

    @contextmanager
    def inject(world: World, _patch: pytest.MonkeyPatch) -> Iterator[None]:
        names = {1: "started", 2: "progress"}
        with world.open() as fleet:
            payloads = [signed(fleet, JOB, names[number], number) for number in numbers]
            verdicts = [fleet.jobs.take_in(payload)["verdict"] for payload in payloads]
        assert [verdict in ("applied", "late") for verdict in verdicts].count(True) == len(set(numbers))
        world.clock = lambda: time.time() + later
        try:
            with world.open() as fleet:
                again = {fleet.jobs.take_in(payload)["verdict"] for payload in payloads}
                assert again == {"duplicate"}
            yield
        finally:
            world.clock = None

    return inject


FAULTS: dict[str, Fault] = {
    "agent ignores TERM": Fault(nothing_more, args=(*ARGS, "--ignore-sigterm")),
    "agent floods": Fault(agent_floods, restart),
    "broker down": Fault(broker_fault(lambda proxy: proxy.set(CLOSED)), publish_all, needs_broker=True),
    "broker killed": Fault(broker_fault(lambda proxy: proxy.set(CUT)), publish_all, needs_broker=True),
    "broker half open": Fault(broker_fault(lambda proxy: proxy.set(BLOCKED)), publish_all, needs_broker=True),
    "broker slow": Fault(broker_fault(_slow), publish_all, needs_broker=True),
    "reconnect storm": Fault(broker_fault(_storm), publish_all, needs_broker=True),
    "disk full": Fault(nothing_more, disk=Disk(FULL, ENOSPC)),
    "directory read-only": Fault(nothing_more, disk=Disk(FAIL_FROM, EROFS)),
    "stale lock, dead owner": Fault(claim_by(_dead)),
    "stale lock, reused pid": Fault(claim_by(_reused)),
    "stale lock, live owner": Fault(claim_by(_live)),
    "stale lock, registry held": Fault(registry_held),
    "events twice": Fault(events_from_elsewhere(2, 1, 2, 1)),
    "events late": Fault(events_from_elsewhere(1, 2, later=7 * DAY)),
    "tmux server killed": Fault(tmux_killed, keeps_panes=False),
    "tmux socket deleted": Fault(tmux_socket_deleted, name_panes_again, keeps_panes=False),
    "pane killed": Fault(pane_killed),
    "pane replaced": Fault(pane_replaced),
    "tmux hangs": Fault(tmux_hangs(0.5)),
    "tmux hangs, with the time limits of mam": Fault(tmux_hangs(TIMEOUT)),
    "dialog open": Fault(dialog_open, answer_no),
    "clock, ahead": Fault(fake_clock(DAY)),
    "clock, behind": Fault(fake_clock(-DAY)),
    "clock, frozen": Fault(fake_clock(0.0, frozen=True)),
    "reboot": Fault(fake_boot_id, keeps_panes=False),
    "registry file, edited": Fault(yaml_fault(_edited)),
    "registry file, corrupt": Fault(yaml_fault(lambda text: text + b"\n  - [\n"), damages_file=True),
    "registry file, cut": Fault(yaml_fault(lambda text: text[: len(text) // 2]), damages_file=True),
    "registry file, empty": Fault(yaml_fault(lambda _text: b"")),
    "registry file, deleted": Fault(yaml_fault(lambda _text: None)),
}
