"""A process that publishes signed events: python -m bench.soak.publisher ROOT PER-SECOND SECONDS FIRST JOB...

It says `ready`, and begins when its input is closed. It plays a machine elsewhere that has the tokens of the
jobs: what the broker has not acknowledged it publishes again. At the end it prints how long it took. Without
a rate (0) it publishes as fast as the broker takes it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING

import mam
from bench.soak.broker_stage import connection, signed
from mam.core.errors import Unavailable

if TYPE_CHECKING:
    from mam.adapters.mqtt.connection import Connection

_TICK = 0.02
_PATIENCE = 20.0
_PAUSE = 0.05


class Publisher:
    """Publishes events in their order, some at each tick, and keeps what is not acknowledged."""

    def __init__(self, link: Connection, events: list[tuple[str, str]], rate: float) -> None:
        self.link = link
        self.rate = rate
        self.waiting = deque(events)
        self.sent: dict[int, tuple[str, str]] = {}
        self.published = 0

    def run(self) -> None:
        """Publish all of them, whatever becomes of the broker meanwhile."""
        began = time.monotonic()
        while self.waiting or self.sent:
            try:
                if not self.link.is_open:
                    self.link.open(_PATIENCE)
                self._publish_what_is_due(time.monotonic() - began)
                self.link.step(_TICK)
                self._note_acknowledged()
            except Unavailable:
                self.waiting.extendleft(reversed(self.sent.values()))
                self.published -= len(self.sent)
                self.sent.clear()
                time.sleep(_PAUSE)

    def _publish_what_is_due(self, seconds: float) -> None:
        due = seconds * self.rate if self.rate else float("inf")
        while self.waiting and self.published < due:
            topic, payload = self.waiting.popleft()
            self.sent[self.link.publish(topic, payload)] = (topic, payload)
            self.published += 1

    def _note_acknowledged(self) -> None:
        for number in self.link.acknowledged & self.sent.keys():
            del self.sent[number]
        self.link.acknowledged.clear()


def main() -> None:
    """Publish as the command line says; the events of the jobs are interleaved."""
    root, rate, count, first, *jobs = sys.argv[1:]
    with mam.open(root) as fleet:
        link = connection(fleet, "elsewhere")
        topics = {job: link.broker.topic(job, "events") for job in jobs}
        numbers = range(int(first), int(first) + int(count) // len(jobs))
        events = [(topics[job], signed(fleet, job, number)) for number in numbers for job in jobs]
        publisher = Publisher(link, events, float(rate))
        print("ready", flush=True)
        sys.stdin.read()
        began = time.monotonic()
        publisher.run()
        link.close()
        print(time.monotonic() - began)


if __name__ == "__main__":
    main()
