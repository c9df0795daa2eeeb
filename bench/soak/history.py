"""The history of a soak: each call of each client as one JSON line, and its answer as another.

A call without an answer is one whose process was killed: nobody knows what became of it.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Facts = dict[str, Any]


@dataclass
class Call:
    """One call: what was asked for, and what was answered: a result, an error, or nothing."""

    client: str
    number: int
    verb: str
    at: float
    asked: Facts
    result: Facts | None = None
    error: Facts | None = None
    ended: float | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether the verb said that it is done."""
        return self.result is not None

    @property
    def outcome(self) -> str:
        """`done`, the code of the error, or `killed`."""
        if self.error is not None:
            return str(self.error["code"])
        return "killed" if self.result is None else "done"

    def __str__(self) -> str:
        """Show it in one line."""
        answer = self.result if self.error is None else self.error
        return f"{self.at:.3f} {self.client} {self.verb} {self.asked} -> {self.outcome} {answer}"


class Writer:
    """Appends what one client does; each line is one write, so that a kill leaves no half of one."""

    def __init__(self, folder: Path, client: str) -> None:
        self._client = client
        self._number = 0
        self._handle = os.open(
            folder / f"{client}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )

    def call(self, verb: str, asked: Facts) -> int:
        """Record a call before it is made; return its number."""
        self._number += 1
        self._write({"number": self._number, "verb": verb, "at": _now(), "asked": asked})
        return self._number

    def answer(self, number: int, **answer: Facts | None) -> None:
        """Record a result or an error."""
        self._write({"number": number, "ended": _now(), **answer})

    def _write(self, facts: Facts) -> None:
        os.write(self._handle, json.dumps({"client": self._client, **facts}).encode() + b"\n")


@dataclass
class History:
    """What all clients did so far, in the order of the calls."""

    folder: Path
    calls: list[Call] = field(default_factory=list)

    def read(self) -> History:
        """Read the lines of all clients."""
        found: dict[tuple[str, int], Call] = {}
        for path in self.folder.glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                facts = json.loads(line)
                key = (facts["client"], facts["number"])
                if "verb" in facts:
                    found[key] = Call(*key, facts["verb"], facts["at"], facts["asked"])
                else:
                    found[key].result = facts.get("result")
                    found[key].error = facts.get("error")
                    found[key].ended = facts["ended"]
        self.calls = sorted(found.values(), key=lambda call: call.at)
        return self

    def of(self, *verbs: str) -> list[Call]:
        """Return the calls of some verbs."""
        return [call for call in self.calls if call.verb in verbs]


def _now() -> float:
    """Return the time, also in a process that has put its own clock wrong."""
    return time.clock_gettime(time.CLOCK_REALTIME)
