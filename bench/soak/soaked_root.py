"""The root that soaks: with sessions, clients, a person, and a remote reporter on its jobs."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import mam as api
from bench.measure import until
from bench.soak.broker_stage import BrokerStage
from bench.soak.clients import Clients
from bench.soak.history import History
from bench.soak.load import create_sessions
from bench.soak.person import Person
from bench.soak.remote_reporter import RemoteReporter
from mam.core.errors import MamError

if TYPE_CHECKING:
    from typing import Any

_DISK = 192 * 1024 * 1024
_ASKING = "asking-"
_DETACH = 2


class SoakedRoot:
    """A context: everything is started at its begin, and gone at its end."""

    def __init__(self, sessions: int, clients: int, seed: int, every: float) -> None:
        self.stage = BrokerStage(resident="auto")
        self.sessions, self.every = sessions, every
        self._clients, self._seed = clients, seed
        # The keys that a person wrote into the registry file, each with its session.
        self.notes: dict[str, str] = {}
        self.has_small_disk = False

    def __enter__(self) -> SoakedRoot:
        self.stage.__enter__()
        try:
            self.has_small_disk = _mount(str(self.stage.root))
            self.fleet = api.open(str(self.stage.root), environ=self.stage.environ)
            self.fleet.init()
            folder = self.stage.folder / "history"
            folder.mkdir()
            self.history = History(folder)
            self.clients = Clients(self.stage, folder, self._clients, self._seed)
            self.person = Person(self.stage)
            self.reporter = RemoteReporter(self.fleet)
            self._create()
            self.clients.start()
            self.reporter.start()
        except BaseException:
            self._close()
            raise
        return self

    def _create(self) -> None:
        names = self.clients.names
        asking = max(1, self.sessions // 10)
        create_sessions(self.fleet, [f"{_ASKING}{number}" for number in range(asking)])
        others = [f"{names[number % len(names)]}-s{number}" for number in range(self.sessions - asking)]
        create_sessions(self.fleet, others, permissions="skip")
        until(self._are_idle, "agents that are ready", seconds=300)

    def _are_idle(self) -> bool:
        return all(row["activity"] == "idle" for row in self.fleet.sessions.ls()["sessions"])

    def asking_rows(self) -> list[Any]:
        """Return the sessions that ask: only faults end them, and nobody renames them."""
        with suppress(MamError):
            self._asking = [
                session.row for session in self.fleet.sessions.list() if session.name.startswith(_ASKING)
            ]
        return self._asking

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._close(kind, error, trace)

    def _close(self, *error: Any) -> None:
        for end in ("clients.stop", "reporter.stop", "fleet.close"):
            name, _, verb = end.partition(".")
            if hasattr(self, name):
                getattr(getattr(self, name), verb)()
        try:
            self.stage.end_processes()
        finally:
            if self.has_small_disk:
                _unmount(str(self.stage.root))
            self.stage.__exit__(*(error or (None, None, None)))


def _mount(folder: str) -> bool:
    """Give a folder a small file system of its own, where this process may."""
    library = ctypes.CDLL(None, use_errno=True)
    done = library.mount(b"mam-soak", os.fsencode(folder), b"tmpfs", 0, b"size=%d,mode=700" % _DISK)
    return int(done) == 0


def _unmount(folder: str) -> None:
    ctypes.CDLL(None).umount2(os.fsencode(folder), _DETACH)
