"""A process that sends messages at a rate: python -m bench.soak.sender ROOT PER-SECOND SECONDS.

It says `ready` and begins when its input is closed. At the end it prints one JSON line for each message:
session, text, state and seconds of the call.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mam
from mam.core.errors import MamError

_THREADS = 8
_LONGEST = 60.0


class Sender:
    """Gives out the messages in turn; each worker waits for the moment of the next one."""

    def __init__(self, fleet: mam.Fleet, rate: float, seconds: float) -> None:
        self.fleet = fleet
        self.rate = rate
        self.sessions = [session.id for session in fleet.sessions.list()]
        self.numbers = iter(range(int(rate * seconds)))
        self.began = 0.0

    def run(self) -> list[list[Any]]:
        """Send all of them; return what became of each."""
        self.began = time.monotonic()
        with ThreadPoolExecutor(_THREADS) as pool:
            fleets = [self.fleet.for_thread() for _ in range(_THREADS)]
            return list(itertools.chain.from_iterable(pool.map(self._work, fleets)))

    def _work(self, own: mam.Fleet) -> list[list[Any]]:
        done = []
        with own as fleet:
            for number in self.numbers:
                time.sleep(max(0.0, self.began + number / self.rate - time.monotonic()))
                done.append(self._send(fleet, self.sessions[number % len(self.sessions)], number))
        return done

    def _send(self, fleet: mam.Fleet, session: str, number: int) -> list[Any]:
        text, began = f"message number {number} of the load", time.monotonic()
        try:
            receipt = fleet.messages.send(session, text, timeout=_LONGEST)
            state = receipt["state"] if receipt["state"] == "submitted" else f"{receipt['state']}: {receipt}"
        except MamError as error:
            state = f"{error.code}: {error}"
        return [session, text, state, time.monotonic() - began, time.monotonic() - self.began]


def main() -> None:
    """Send as the command line says."""
    root, rate, seconds = sys.argv[1:]
    with mam.open(root) as fleet:
        sender = Sender(fleet, float(rate), float(seconds))
        print("ready", flush=True)
        sys.stdin.read()
        for one in sender.run():
            print(json.dumps(one))


if __name__ == "__main__":
    main()
