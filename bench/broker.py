"""Events over mosquitto: how soon somebody elsewhere hears one, how many, and what a published one costs."""

from __future__ import annotations

import queue
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.mosquitto import PASSWORDS, Mosquitto

import mam as api
from bench.measure import Budget, Row, Times, alternate, run
from bench.resident import start, stop
from bench.stage import Stage, mam
from mam.adapters.mqtt.connection import Connection
from mam.adapters.store.tables import jobs
from mam.app.brokers import config as brokers
from mam.app.brokers import wait_remote
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import token_of
from mam.app.jobs.new_job import new_id, record_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.app.api.fleet_object import Fleet

_SECONDS = 30.0
_PLAIN = "one message through bare mosquitto"
_LOCAL = "without a broker"


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Record events that a resident publishes, and hear them over the broker."""
    tell("starting a broker")
    with Stage() as stage:
        mosquitto = Mosquitto(stage.folder / "broker").start()
        stage.environ |= {
            "MAM_BROKER": mosquitto.url(),
            "MAM_BROKER_PASSWORD_FILE": str(mosquitto.password_file("mam")),
        }
        try:
            with api.open(str(stage.root), environ=stage.environ) as fleet:
                fleet.init()
                yield from _heard(stage, fleet, 3 if quick else 200, 20 if quick else 500, tell)
                yield from _spoken(stage, fleet, 1 if quick else 30, tell)
        finally:
            mosquitto.stop()


def _heard(stage: Stage, fleet: Fleet, rounds: int, many: int, tell: Callable[[str], None]) -> Iterator[Row]:
    tell(f"recording {rounds} events one by one, and {many} at once")
    job_id = _job(fleet)
    told: queue.SimpleQueue[float] = queue.SimpleQueue()
    resident = start(stage)
    context = fleet._access.context.for_thread()
    tokens = {job_id: token_of(fleet._access.context, job_id)}
    waiting = threading.Thread(
        target=wait_remote.wait,
        args=(context, brokers.find(context), tokens, lambda _event: told.put(time.perf_counter())),
    )
    waiting.start()
    plain = _Plain(fleet)
    try:
        _record(fleet, job_id, 1)
        told.get(timeout=_SECONDS)
        acts = {"event": partial(_one, fleet, job_id, told), _PLAIN: plain.one}
        found = alternate(rounds, acts)
        yield Row(
            "event recorded until heard over mosquitto",
            found["event"],
            _PLAIN,
            found[_PLAIN],
            Budget("ms", 5),
        )
        began = time.perf_counter()
        for _ in range(many):
            _record(fleet, job_id, 1)
        for _ in range(many):
            last = told.get(timeout=_SECONDS)
        each = Times(((last - began) * 1000 / many,))
        yield Row(f"{many} events recorded and heard, each", each, _PLAIN, found[_PLAIN])
        _record(fleet, job_id, 1, "completed")
        waiting.join(_SECONDS)
    finally:
        plain.close()
        stop(resident)


def _spoken(stage: Stage, fleet: Fleet, rounds: int, tell: Callable[[str], None]) -> Iterator[Row]:
    tell("running mam job event from the shell")

    def event(job_id: str) -> None:
        words = ("--event", "progress", "--timeout", "30", "--workspace", str(stage.root))
        run(mam("job", "event", job_id, *words), stage.environ)

    local, published = _job(fleet, broker=None), _job(fleet)
    acts = {_LOCAL: partial(event, local), "own": partial(event, published)}
    own = alternate(rounds, acts)
    resident = start(stage)
    try:
        with_resident = alternate(
            rounds, {_LOCAL: partial(event, local), "resident": partial(event, published)}
        )
    finally:
        stop(resident)
    yield Row("mam job event, published by itself", own["own"], _LOCAL, own[_LOCAL])
    yield Row(
        "mam job event, published by the resident", with_resident["resident"], _LOCAL, with_resident[_LOCAL]
    )


def _job(fleet: Fleet, **more: object) -> str:
    broker = brokers.find(fleet._access.context)
    assert broker is not None
    facts = {"broker": broker.as_json(), "topic_prefix": broker.prefix, **more}
    return record_job(fleet._access.context, fleet.caller, new_id(), "measured", **facts).id


def _record(fleet: Fleet, job_id: str, count: int, name: str = "progress") -> None:
    token = token_of(fleet._access.context, job_id)
    for _ in range(count):
        fleet._access.context.registry.note(
            lambda draft: ledger_writer.report(draft, jobs.find(draft, job_id), name, token, "x", data={})
        )


def _one(fleet: Fleet, job_id: str, told: queue.SimpleQueue[float]) -> float:
    _record(fleet, job_id, 1)
    recorded = time.perf_counter()
    return told.get(timeout=_SECONDS) - recorded


class _Plain:
    """Two clients with nothing of mam around them but the link."""

    def __init__(self, fleet: Fleet) -> None:
        broker = brokers.find(fleet._access.context)
        assert broker is not None
        self.here, self.there = (Connection(broker, PASSWORDS["mam"], role="bench") for _ in range(2))
        for link in (self.here, self.there):
            link.open(_SECONDS)
        self.there.subscribe(["python/mqtt/jobs/plain/events"], _SECONDS)

    def one(self) -> float:
        began = time.perf_counter()
        self.here.publish("python/mqtt/jobs/plain/events", "x" * 400)
        while not self.there.received:
            self.there.step(_SECONDS)
        seconds = time.perf_counter() - began
        for heard in self.there.take():
            self.there.acknowledge(heard)
        self.here.step(_SECONDS)
        return seconds

    def close(self) -> None:
        self.here.close()
        self.there.close()
