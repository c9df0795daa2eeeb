"""A process that changes a root: python -m tests.app.api.writer ROOT NUMBER CHANGES COMMANDS.

It uses the verbs of the API, and for so many of its changes the command line. It says `ready`, and begins
when its input is closed. At the end it prints as JSON what was acknowledged, what was refused, and all
warnings.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from typing import Any

import mam
from mam.core.errors import MamError

ROLE = "dev"
# Every writer wants to give them to sessions, and a name is given to one session at a time.
WANTED = ("wanted-1", "wanted-2")
SELDOM = 0.1
VERBS = ("rename", "add", "claim", "finish", "report")


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
            verb: [] for verb in (*VERBS, "commands", "refused", "warned")
        }
        fleet.on_warning(lambda text: self.answers["warned"].append([text]))

    def change(self, *, by_command: bool) -> None:
        """Make one change, whichever chance takes."""
        (verb,) = self.chance.choices(VERBS, weights=(5, 1, 1, 1, 2))
        if verb == "finish" and not self.claimed:
            verb = "add"
        if by_command:
            self.run_command(verb if verb == "rename" else "add")
            return
        try:
            self.answers[verb].append(getattr(self, verb)())
        except MamError as error:
            self.answers["refused"].append([verb, error.code, error.message])

    def run_command(self, verb: str) -> None:
        """Rename a session, or add a task, as a person does."""
        words = ["rename", *self.new_name()] if verb == "rename" else self.words_of_task()
        command = [sys.executable, "-m", "mam", *words, "--json"]
        done = subprocess.run(command, cwd=self.fleet.root, capture_output=True, text=True, check=False)
        document = json.loads(done.stdout)
        if error := document.get("error"):
            self.answers["refused"].append([verb, error["code"], error["message"]])
            assert done.returncode == 1, done.stderr
            return
        assert (done.returncode, done.stderr, document.get("warnings")) == (0, "", None), done
        self.answers["commands"].append([verb])
        if verb == "rename":
            row = document["session"]
            self.answers[verb].append([row["id"], row["version"], row["name"]])
        else:
            self.answers[verb].append([document["task"]["id"], document["task"]["text"]])

    def words_of_task(self) -> list[str]:
        """Return the words of the command that adds a task."""
        return ["task", "add", self.new("task"), "--role", ROLE]

    def new_name(self) -> tuple[str, str]:
        """Return a session, and a name for it."""
        is_wanted = self.chance.random() < SELDOM
        name = self.chance.choice(WANTED) if is_wanted else self.new("name")
        return self.chance.choice(self.sessions), name

    def new(self, what: str) -> str:
        """Return a text that no other writer has."""
        return f"{what}-{self.number}-{next(self.serial)}"

    def rename(self) -> list[Any]:
        row = self.fleet.sessions.rename(*self.new_name()).row
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
    """Make as many changes as the arguments say; those by the command line come evenly between them."""
    root, (number, changes, commands) = sys.argv[1], map(int, sys.argv[2:])
    every = changes // commands
    with mam.open(root) as fleet:
        writer = Writer(fleet, number)
        print("ready", flush=True)
        sys.stdin.read()
        for count in range(changes):
            writer.change(by_command=count % every == 0 and count < every * commands)
    print(json.dumps(writer.answers))


if __name__ == "__main__":
    main()
