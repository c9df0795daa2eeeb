"""A reporter on another machine, over the broker: it reports in order, repeated, late, and forged."""

from __future__ import annotations

import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

from bench.soak.broker_stage import connection, new_job, seqs_of, signed, signed_with
from mam.app.jobs.find import token_of
from mam.core import job_event
from mam.core.errors import Unavailable

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from mam.adapters.mqtt.connection import Connection
    from mam.app.api.fleet_object import Fleet

_JOBS = 3
# Seconds between two reports, and after which one that was not taken in is published again.
_EVERY = 0.2
_PATIENCE = 10.0
FORGED = "forged"


class RemoteReporter:
    """Publishes one report after the other, in a thread; the jobs stay open as long as the soak lasts."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.jobs = [new_job(fleet) for _ in range(_JOBS)]
        self.published = dict.fromkeys(self.jobs, 0)
        # What has ended the thread, if it was not told to end.
        self.failed: list[str] = []
        # All that a machine elsewhere has: while the disk of the root is full, it reports on.
        self._tokens = {job: token_of(fleet._access.context, job) for job in self.jobs}
        self._own = fleet.for_thread()
        self._ends, self._may_publish = threading.Event(), threading.Lock()
        self._is_paused = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Publish nothing more."""
        self._ends.set()
        self.go_on()
        self._thread.join()

    def pause(self) -> None:
        """Publish nothing, after what is being published."""
        self._may_publish.acquire()
        self._is_paused = True

    def go_on(self) -> None:
        """Publish again."""
        if self._is_paused:
            self._is_paused = False
            self._may_publish.release()

    def has_published_more(self, before: int) -> bool:
        """Tell whether more events than before were published, or whether no more will be."""
        return bool(self.failed) or self.count() > before

    def count(self) -> int:
        """Return how many events were published."""
        return sum(self.published.values())

    def _run(self) -> None:
        try:
            with self._own as fleet:
                self._report(connection(fleet, "elsewhere"))
        except Exception:
            self.failed.append(f"the remote reporter has ended: {traceback.format_exc()}")

    def _report(self, link: Connection) -> None:
        turn = 0
        while not self._ends.wait(_EVERY):
            job = self.jobs[turn % len(self.jobs)]
            payload = signed_with(self._tokens[job], job, self.published[job] + 1)
            with self._may_publish, suppress(Unavailable):
                if not link.is_open:
                    link.open(_PATIENCE)
                link.finish([link.publish(link.broker.topic(job, job_event.EVENTS), payload)], _PATIENCE)
                self.published[job] += 1
                turn += 1
        link.close()

    def missing(self) -> dict[str, list[int]]:
        """Return the numbers that were published and that the ledger does not have."""
        published = dict(self.published)
        return {
            job: sorted(set(range(1, last + 1)) - set(seqs_of(self.fleet, job)))
            for job, last in published.items()
        }

    def publish_missing(self) -> bool:
        """Publish again what is missing; tell whether nothing is."""
        missing = self.missing()
        if not any(missing.values()):
            return True
        self._publish((job, signed(self.fleet, job, seq)) for job, seqs in missing.items() for seq in seqs)
        return False

    def repeat(self, chance: random.Random) -> str:
        """Publish some events a second and a third time, in any order."""
        numbered = [
            (job, chance.randint(1, last)) for job, last in self.published.items() if last for _ in range(5)
        ]
        chance.shuffle(numbered)
        return self._publish((job, signed(self.fleet, job, seq)) for job, seq in numbered * 2)

    def forge(self, chance: random.Random) -> str:
        """Publish what no token has signed, what another job's token has, and what is of no attempt."""
        job, other = chance.sample(self.jobs, 2)
        events = [
            job_event.make(
                job,
                chance.choice((job_event.PROGRESS, job_event.COMPLETED)),
                seq=chance.randint(1, 2**40),
                attempt=attempt,
                timestamp="2026-11-15T08:00:00Z",
                detail=FORGED,
                data={},
            )
            for attempt in (1, 1, 7)
        ]
        tokens = ("f" * 64, self._tokens[other], self._tokens[job])
        payloads = [job_event.sign(event, token) for event, token in zip(events, tokens, strict=True)]
        return self._publish((job, job_event.write(payload)) for payload in payloads)

    def _publish(self, events: Iterable[tuple[str, str]]) -> str:
        link = connection(self.fleet, "again")
        try:
            link.open(_PATIENCE)
            sent = [
                link.publish(link.broker.topic(job, job_event.EVENTS), payload) for job, payload in events
            ]
            link.finish(sent, _PATIENCE)
        except Unavailable as error:
            return str(error)
        finally:
            link.close()
        return f"{len(sent)} events"
