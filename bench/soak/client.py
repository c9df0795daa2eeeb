"""A process that uses a root: python -m bench.soak.client ROOT FOLDER NAME RUN SEED CLOCK.

It makes one change after the other, whichever chance takes, and records call and answer in FOLDER. Sessions
whose names begin with NAME are its own: nobody else stops, resumes or renames them. While the file `pause`
is in FOLDER it begins nothing; then it has a file `NAME.paused` there. CLOCK is by how many seconds its clock
is wrong.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLOCK = float(sys.argv[6]) if len(sys.argv) > 6 else 0.0
if CLOCK:
    # Before mam is imported, so that all of it has this clock.
    _true = time.time
    time.time = lambda: _true() + CLOCK

import mam  # noqa: E402
from bench.soak.history import Writer  # noqa: E402
from mam.core.errors import MamError  # noqa: E402

ARGS = ["--speed", "0"]
# The mean pause between two calls, in seconds, and how many sessions a client has at most.
_PAUSE, _MOST = 0.15, 24
_ROLE = "soak"
_WEIGHTS = {
    "send": 8,
    "look": 4,
    "report": 4,
    "task": 1,
    "rename": 1.5,
    "stop": 1,
    "resume": 1,
    "create": 0.7,
    "archive": 0.3,
    "forget": 0.3,
    "submit": 0.4,
    "end": 0.4,
}

Facts = dict[str, Any]


class Client:
    """A fleet, and the operations on it; each returns what the check at the end needs."""

    def __init__(self, fleet: mam.Fleet, writer: Writer, name: str, run: str, seed: int) -> None:
        self.fleet, self.writer, self.name, self.run_name = fleet, writer, name, run
        self.chance = random.Random(f"{seed}-{name}-{run}")
        self.serial = 0

    def step(self) -> None:
        """Make one call, recorded before and after."""
        verb, asked, act = self._choose()
        number = self.writer.call(verb, asked)
        try:
            self.writer.answer(number, result=act())
        except MamError as error:
            facts = {"code": error.code, "message": error.message, "recorded": error.recorded}
            row = error.session if isinstance(error.session, dict) else {}
            self.writer.answer(number, error={**facts, "session": row.get("id")})
        except Exception:
            self.writer.answer(number, error={"code": "traceback", "message": traceback.format_exc()})

    def _new(self, what: str) -> str:
        self.serial += 1
        return f"{what} {self.name}-{self.run_name}-{self.serial}"

    def _choose(self) -> tuple[str, Facts, Callable[[], Facts]]:
        try:
            rows = [session.row for session in self.fleet.sessions.list()]
        except MamError:
            # The file is broken at the moment. Whatever is asked for is refused, or works all the same.
            rows = []
        own = [row for row in rows if row["name"].startswith(f"{self.name}-")]
        running = [row for row in rows if row["status"] == "running"]
        weights = {**_WEIGHTS, "resume": 1 + 4 * sum(row["status"] == "terminated" for row in own)}
        (verb,) = self.chance.choices(list(weights), list(weights.values()))
        by_status = {
            status: [row for row in own if row["status"] == status]
            for status in ("running", "stopped", "terminated", "archived")
        }
        pools = {
            "send": running,
            "rename": own,
            "stop": by_status["running"],
            "resume": by_status["terminated"] + by_status["stopped"],
            "archive": by_status["stopped"],
            "forget": by_status["archived"],
            "submit": by_status["running"],
        }
        if verb in pools and not pools[verb]:
            verb = "look"
        if verb == "create" and len(own) >= _MOST:
            verb = "archive" if by_status["stopped"] else "look"
        target = self.chance.choice(pools[verb]) if verb in pools else None
        return getattr(self, f"_{verb}")(target)

    # ------------------------------------------------------------ each returns verb, what is asked, the act

    def _send(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        text, message = self._new("message"), f"m_{self.chance.getrandbits(32):08x}"

        def act() -> Facts:
            receipt = self.fleet.messages.send(row["id"], text, message_id=message, timeout=2)
            return {"state": receipt["state"], "evidence": receipt.get("evidence")}

        return "send", {"session": row["id"], "text": text, "message": message}, act

    def _look(self, _row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        def act() -> Facts:
            return {"sessions": len(self.fleet.sessions.ls()["sessions"])}

        return "look", {}, act

    def _report(self, _row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        job, detail = self._open_job(), self._new("report")

        def act() -> Facts:
            return {"seq": self.fleet.jobs.event(job, "progress", detail=detail)["event"]["seq"]}

        return "report", {"job": job, "detail": detail}, act

    def _end(self, _row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        job, detail = self._open_job(), self._new("end")

        def act() -> Facts:
            return {"status": self.fleet.jobs.event(job, "completed", detail=detail)["status"]}

        return "end", {"job": job, "detail": detail}, act

    def _open_job(self) -> str:
        """Return an open job of this client without a session, or the id of none."""
        try:
            listed = self.fleet.jobs.list(only_open=True)
        except MamError:
            return "00000000"
        own = [job["job_id"] for job in listed if job["prompt"].startswith(f"human {self.name}-")]
        return self.chance.choice(own) if own else self._new_job()

    def _new_job(self) -> str:
        prompt = self._new("human")
        number = self.writer.call("submit", {"prompt": prompt})
        try:
            job = self.fleet.jobs.submit(prompt, type="human", timeout=7200, idle_timeout=0)["job_id"]
        except MamError as error:
            self.writer.answer(number, error={"code": error.code, "message": error.message})
            return "00000000"
        self.writer.answer(number, result={"job": job})
        return str(job)

    def _submit(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        prompt = self._new("work")

        def act() -> Facts:
            job = self.fleet.jobs.submit(prompt, session=row["name"], timeout=120, idle_timeout=60)
            return {"job": job["job_id"], "status": job["status"]}

        return "submit", {"session": row["id"], "prompt": prompt}, act

    def _task(self, _row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        text = self._new("task")
        return "task", {"text": text}, lambda: {"id": self.fleet.tasks.add(text, role=_ROLE)["task"]["id"]}

    def _rename(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        name = self._new(f"{self.name}-r").replace(" ", "-")

        def act() -> Facts:
            return {"name": self.fleet.sessions.rename(row["id"], name).row["name"]}

        return "rename", {"session": row["id"], "name": name}, act

    def _stop(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        def act() -> Facts:
            return {"status": self.fleet.sessions.stop(row["id"]).session.row["status"]}

        return "stop", {"session": row["id"]}, act

    def _resume(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        def act() -> Facts:
            return {"status": self.fleet.sessions.resume(row["id"]).session.row["status"]}

        return "resume", {"session": row["id"]}, act

    def _create(self, _row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        name = self._new(f"{self.name}-c").replace(" ", "-")

        def act() -> Facts:
            row = self.fleet.sessions.create("practice", name=name, args=ARGS, wait=False).row
            return {"session": row["id"], "status": row["status"]}

        return "create", {"name": name}, act

    def _archive(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        def act() -> Facts:
            return {"status": self.fleet.sessions.archive(row["id"]).row["status"]}

        return "archive", {"session": row["id"]}, act

    def _forget(self, row: Any) -> tuple[str, Facts, Callable[[], Facts]]:
        return "forget", {"session": row["id"]}, lambda: {"id": self.fleet.sessions.forget(row["id"])["id"]}


def main() -> None:
    """Work until somebody ends the process."""
    root, folder, name, run, seed = sys.argv[1:6]
    pause, paused = Path(folder) / "pause", Path(folder) / f"{name}.paused"
    with mam.open(root) as fleet:
        client = Client(fleet, Writer(Path(folder), f"{name}-{run}"), name, run, int(seed))
        while True:
            if pause.exists():
                paused.touch()
                time.sleep(0.02)
                continue
            paused.unlink(missing_ok=True)
            client.step()
            time.sleep(client.chance.expovariate(1 / _PAUSE))


if __name__ == "__main__":
    main()
