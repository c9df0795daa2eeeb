"""A stage with a real mosquitto, whose settings name it: also a resident that mam starts itself finds it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from tests.mosquitto import PASSWORDS, Mosquitto
from tests.processes import processes_of

from bench.measure import until
from bench.stage import Stage, interrupts_ignored
from mam.adapters.mqtt.connection import Connection
from mam.adapters.store.tables import jobs
from mam.app.brokers import config as brokers
from mam.app.jobs.find import token_of
from mam.app.jobs.new_job import new_id, record_job
from mam.core import job_event

if TYPE_CHECKING:
    from types import TracebackType

    from mam.app.api.fleet_object import Fleet

_SETTINGS = """\
resident = "{resident}"
notify_desktop = false

[broker]
url = "{url}"
password_file = "{password_file}"
"""
_STAMP = "2026-11-15T08:00:00Z"
_HOUR = 3600


class BrokerStage(Stage):
    """A home, a root, a tmux server and a broker; gone afterwards, with every process of the home."""

    def __init__(self, *, resident: str = "off") -> None:
        super().__init__()
        self._resident = resident

    def __enter__(self) -> BrokerStage:
        super().__enter__()
        self.mosquitto = Mosquitto(self.folder / "broker").start()
        settings = self.home / ".config" / "mam" / "config.toml"
        settings.write_text(
            _SETTINGS.format(
                resident=self._resident,
                url=self.mosquitto.url(),
                password_file=self.mosquitto.password_file("mam"),
            ),
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the broker and every process that has this home, then the rest."""
        with interrupts_ignored():
            try:
                self.mosquitto.stop()
                self.end_processes()
            finally:
                super().__exit__(kind, error, trace)

    def end_processes(self) -> None:
        """Kill every process that has this home; what they started meanwhile, too."""
        until(self._are_ended, "the end of every process of this home")

    def _are_ended(self) -> bool:
        pids = processes_of(self.home)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not pids


def connection(fleet: Fleet, role: str) -> Connection:
    """Return a connection as a machine elsewhere has it; it is not open yet."""
    broker = brokers.find(fleet._access.context)
    assert broker is not None
    return Connection(broker, PASSWORDS["mam"], role=role)


def new_job(fleet: Fleet) -> str:
    """Record a job for a person, whose events go over the broker."""
    broker = brokers.find(fleet._access.context)
    assert broker is not None
    facts = {
        "broker": broker.as_json(),
        "topic_prefix": broker.prefix,
        "timeout_sec": _HOUR,
        "idle_timeout_sec": _HOUR,
    }
    return record_job(fleet._access.context, fleet.caller, new_id(), "under load", **facts).id


def signed(fleet: Fleet, job_id: str, seq: int) -> str:
    """Return an event that the job's token has signed, as a machine elsewhere writes it."""
    return signed_with(token_of(fleet._access.context, job_id), job_id, seq)


def signed_with(token: str, job_id: str, seq: int) -> str:
    """Return the same of a machine that has no more than the token."""
    event = job_event.make(
        job_id, job_event.PROGRESS, seq=seq, attempt=1, timestamp=_STAMP, detail=f"number {seq}", data={}
    )
    return job_event.write(job_event.sign(event, token))


def seqs_of(fleet: Fleet, job_id: str) -> list[int]:
    """Return the numbers of the reports in the log of a job."""
    return [
        entry.document["seq"]
        for entry in fleet._access.context.registry.peek(lambda found: jobs.entries(found, job_id), [])
        if entry.name == job_event.PROGRESS
    ]


def refusals_of(fleet: Fleet, job_id: str) -> int:
    """Return how many entries of refused events a job has."""
    entries = fleet._access.context.registry.peek(lambda found: jobs.entries(found, job_id), [])
    return sum(entry.name == job_event.DROPPED for entry in entries)
