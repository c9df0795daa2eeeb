"""A process that changes a root by the verbs of the API: python -m tests.app.api.writer ROOT NUMBER CHANGES.

It says `ready`, and begins when its input is closed. At the end it prints as JSON what was acknowledged, what
was refused, and all warnings.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from typing import Any

import mam
from mam.core.errors import MamError

ROLE = "dev"
# Every writer wants to give them to sessions, and a name is given to one session at a time.
WANTED = ("wanted-1", "wanted-2")
SELDOM = 0.1


class Writer:
    """A fleet, and what it answered."""

    def __init__(self, fleet: mam.Fleet, number: int) -> None:
        self.fleet = fleet
        self.number = number
        self.chance = random.Random(number)
        self.sessions = [session.id for session in fleet.sessions.list()]
        self.jobs = [job["job_id"] for job in fleet.jobs.list()]
        self.claimed: list[str] = []
        self.serial = itertools.count(1)
        self.answers: dict[str, list[list[Any]]] = {
            verb: [] for verb in ("rename", "add", "claim", "finish", "report", "refused", "warned")
        }
        fleet.on_warning(lambda text: self.answers["warned"].append([text]))

    def change(self) -> None:
        """Make one change, whichever chance takes."""
        (verb,) = self.chance.choices(("rename", "add", "claim", "finish", "report"), weights=(5, 1, 1, 1, 2))
        if verb == "finish" and not self.claimed:
            verb = "add"
        try:
            self.answers[verb].append(getattr(self, verb)())
        except MamError as error:
            self.answers["refused"].append([verb, error.code, error.message])

    def new(self, what: str) -> str:
        """Return a text that no other writer has."""
        return f"{what}-{self.number}-{next(self.serial)}"

    def rename(self) -> list[Any]:
        is_wanted = self.chance.random() < SELDOM
        name = self.chance.choice(WANTED) if is_wanted else self.new("name")
        row = self.fleet.sessions.rename(self.chance.choice(self.sessions), name).row
        return [row["id"], row["version"], row["name"]]

    def add(self) -> list[Any]:
        text = self.new("task")
        return [self.fleet.tasks.add(text, role=ROLE)["task"]["id"], text]

    def claim(self) -> list[Any]:
        self.claimed.append(self.fleet.tasks.claim(role=ROLE)["task"]["id"])
        return [self.claimed[-1]]

    def finish(self) -> list[Any]:
        result = self.new("result")
        task = self.fleet.tasks.finish(self.claimed.pop(), result=result)["task"]
        return [task["id"], result]

    def report(self) -> list[Any]:
        detail = self.new("detail")
        answer = self.fleet.jobs.event(self.chance.choice(self.jobs), "progress", detail=detail)
        return [answer["job_id"], answer["event"]["seq"], detail]


def main() -> None:
    """Make as many changes as the command line says."""
    root, number, changes = sys.argv[1:]
    with mam.open(root) as fleet:
        writer = Writer(fleet, int(number))
        print("ready", flush=True)
        sys.stdin.read()
        for _ in range(int(changes)):
            writer.change()
    print(json.dumps(writer.answers))


if __name__ == "__main__":
    main()
