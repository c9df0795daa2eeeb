"""The verbs of the matrix: what each begins with, its call, and how one sees that it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.matrix.world import ARGS, JOB, ROLE, World
from tests.waiting import send_and_wait, wait_for, wait_for_jobs

import mam

Result = Any
# Seconds that a verb may wait: while a fault lasts, and afterwards.
SHORT, LONG = 0.2, 20.0


def nothing(_world: World) -> None:
    """Begin with the kept state."""


def idle(world: World) -> None:
    """Have the session run and wait for input."""
    with world.open() as fleet:
        fleet.sessions.resume("one")


def never_stopped(world: World) -> None:
    """Have the session run as one that was never stopped: mam has kept no screen of it."""
    idle(world)
    with world.open() as fleet:
        row = {**fleet.sessions.get("one").row, "last_visible_note": None}
        fleet._access.context.registry.change(lambda transaction: transaction.put(row))


def working(world: World) -> None:
    """Have the session work on a long turn."""
    idle(world)
    with world.open() as fleet:
        send_and_wait(fleet, "one", "/slow 1000", command=True)
        wait_for(fleet.sessions.get("one"), "working")


def asking(world: World) -> None:
    """Have the session ask whether it may run a command."""
    idle(world)
    with world.open() as fleet:
        send_and_wait(fleet, "one", "/ask touch foo", command=True)
        wait_for(fleet.sessions.get("one"), "waiting")


def asks_again(world: World) -> None:
    """Have the session ask, if it has been launched anew since."""
    with world.open() as fleet:
        if fleet.sessions.status("one")["activity"] != "waiting":
            send_and_wait(fleet, "one", "/ask touch foo", command=True)
            wait_for(fleet.sessions.get("one"), "waiting")


def foreign(world: World) -> None:
    """Have a pane that a person has started."""
    if not any(pane.session_name == "foreign" for pane in world.tmux.panes().panes):
        world.start_foreign("foreign")


def copied(world: World) -> None:
    """Have a running session and a copy of the state."""
    idle(world)
    with world.open() as fleet:
        fleet.monitor.backup()


def with_job(world: World) -> None:
    """Have a session that works on a job without an end."""
    with world.open() as fleet:
        fleet.jobs.submit("wait for me", agent="practice", agent_session="tmux:one", args=["--speed", "0.01"])


def newest_copy(fleet: mam.Fleet) -> str:
    """Return the copy that `restore` goes back to."""
    return fleet.monitor.backups()[0]["path"]


@dataclass(frozen=True)
class Verb:
    """A verb of the matrix."""

    name: str
    command: str
    arrange: Callable[[World], None]
    call: Callable[[mam.Fleet, float], Result]
    is_done: Callable[[World, Result], object]
    # What the verb leaves that the checks of a root with single sessions do not know.
    clear_up: Callable[[World], None] = nothing
    # What makes it possible to use it once more, and the codes that say that there is nothing left to do.
    before_again: Callable[[World], None] = nothing
    settled: tuple[str, ...] = ()
    # Whether it leaves the world as it is, so that the next one may look at the same.
    is_look: bool = False


def _inbox(world: World) -> list[dict[str, Any]]:
    with world.open() as fleet:
        return fleet.messages.inbox("one")


def _is_idle(world: World) -> object:
    with world.open() as fleet:
        return wait_for(fleet.sessions.get("one"), "idle")


def _job_ends(world: World, job: Result) -> bool:
    with world.open() as fleet:
        (ended,) = wait_for_jobs(fleet, job["job_id"])
    return ended["status"] == "completed"


def _task(world: World) -> dict[str, Any]:
    with world.open() as fleet:
        return fleet.tasks.list()["tasks"][0]


def _team_is_up(world: World, team: Result) -> bool:
    with world.open() as fleet:
        (found,) = fleet.teams.list()["teams"]
    return [member["session"] for member in found["members"]] == ["dev"] and bool(team)


def _team_down(world: World) -> None:
    with world.open() as fleet:
        if fleet.teams.list()["teams"]:
            fleet.teams.down(force=True)
    for page in (world.root / ".hermes").glob("agent-sessions-*.md"):
        page.unlink()


def _copies(world: World) -> int:
    with world.open() as fleet:
        return len(fleet.monitor.backups())


def _end_of_job(fleet: mam.Fleet, seconds: float) -> Result:
    return fleet.jobs.wait([_job_without_end(fleet)], timeout=seconds)


def _job_without_end(fleet: mam.Fleet) -> str:
    (job,) = (one["job_id"] for one in fleet.jobs.list() if one["job_id"] != JOB)
    return job


def _report_end(world: World) -> None:
    with world.open() as fleet:
        job = _job_without_end(fleet)
        if fleet.jobs.status(job)["status"] in ("pending", "running"):
            fleet.jobs.event(job, "completed")


_ALL = (
    Verb(
        "create",
        "mam create",
        nothing,
        lambda fleet, seconds: fleet.sessions.create("practice", name="two", args=[*ARGS]),
        lambda world, _: world.row("two")["status"] == "running",
    ),
    Verb(
        "send",
        "mam send",
        idle,
        lambda fleet, seconds: fleet.messages.send("one", "the words", timeout=seconds),
        lambda world, receipt: receipt["state"] == "submitted" and _inbox(world)[-1]["state"] == "submitted",
    ),
    Verb(
        "stop",
        "mam stop",
        idle,
        lambda fleet, seconds: fleet.sessions.stop("one").session.row,
        lambda world, _: world.row()["status"] == "stopped",
    ),
    Verb(
        "resume",
        "mam resume",
        nothing,
        lambda fleet, seconds: fleet.sessions.resume("one").session.row,
        lambda world, _: world.row()["status"] == "running",
    ),
    Verb(
        "archive",
        "mam archive",
        nothing,
        lambda fleet, seconds: fleet.sessions.archive("one"),
        lambda world, _: world.row()["status"] == "archived",
    ),
    Verb(
        "adopt",
        "mam adopt",
        foreign,
        lambda fleet, seconds: fleet.sessions.adopt("foreign", agent="cat", name="two"),
        lambda world, _: world.row("two")["status"] == "running",
        before_again=foreign,
    ),
    Verb(
        "rename",
        "mam rename",
        idle,
        lambda fleet, seconds: fleet.sessions.rename("one", "two"),
        lambda world, _: list(world.rows()) == ["two"],
    ),
    Verb(
        "purge",
        "mam stop --purge-conversation",
        idle,
        lambda fleet, seconds: fleet.sessions.stop("one", purge_conversation=True).session.row,
        lambda world, _: world.row()["status"] == "terminated",
    ),
    Verb(
        "fork",
        "mam fork",
        nothing,
        lambda fleet, seconds: fleet.sessions.fork("one", name="two"),
        lambda world, _: world.row("two")["status"] == "running",
    ),
    Verb(
        "job-submit",
        "mam job submit",
        nothing,
        lambda fleet, seconds: fleet.jobs.submit("say hello", agent="practice", args=[*ARGS]),
        _job_ends,
    ),
    Verb(
        "job-event",
        "mam job event",
        nothing,
        lambda fleet, seconds: fleet.jobs.event(JOB, "completed", detail="done", publish=seconds),
        lambda world, _: world.job()["status"] == "completed",
        settled=("event_refused",),
    ),
    Verb(
        "job-wait",
        "mam job wait",
        with_job,
        _end_of_job,
        lambda world, jobs: [job["status"] for job in jobs] in (["completed"], ["error"]),
        before_again=_report_end,
    ),
    Verb(
        "job-cancel",
        "mam job cancel",
        nothing,
        lambda fleet, seconds: fleet.jobs.cancel(JOB),
        lambda world, _: world.job()["status"] == "cancelled",
    ),
    Verb(
        "task-claim",
        "mam task claim",
        idle,
        lambda fleet, seconds: fleet.tasks.claim(role=ROLE, session="one"),
        lambda world, _: _task(world)["status"] == "in-progress",
    ),
    Verb(
        "team-up",
        "mam team up",
        nothing,
        lambda fleet, seconds: fleet.teams.up(fleet.root + "/../pair.yaml", agent="practice", args=[*ARGS]),
        _team_is_up,
        _team_down,
    ),
    Verb(
        "answer",
        "mam answer",
        asking,
        lambda fleet, seconds: fleet.messages.answer("one", "deny"),
        lambda world, _: _is_idle(world),
        before_again=asks_again,
    ),
    Verb(
        "interrupt",
        "mam interrupt",
        working,
        lambda fleet, seconds: fleet.messages.interrupt("one"),
        lambda world, _: _is_idle(world),
    ),
    Verb(
        "pass",
        "mam monitor --once",
        idle,
        lambda fleet, seconds: fleet.monitor.once(),
        lambda world, report: report["tmux_confirmed"] and not report["drifts"],
        is_look=True,
    ),
    Verb(
        "ls",
        "mam ls",
        idle,
        lambda fleet, seconds: fleet.sessions.ls(),
        lambda world, listing: [one["tmux_alive"] for one in listing["sessions"]] == [True],
        is_look=True,
    ),
    Verb(
        "status",
        "mam status",
        idle,
        lambda fleet, seconds: fleet.sessions.status("one"),
        lambda world, document: document["tmux_alive"] is True,
        is_look=True,
    ),
    Verb(
        "read",
        "mam read",
        never_stopped,
        lambda fleet, seconds: fleet.sessions.read("one"),
        lambda world, text: "❯" in text,
        is_look=True,
    ),
    Verb(
        "doctor",
        "mam doctor",
        idle,
        lambda fleet, seconds: fleet.monitor.doctor(),
        lambda world, findings: not [one for one in findings if one["ok"] is False],
        is_look=True,
    ),
    Verb(
        "backup",
        "mam backup",
        nothing,
        lambda fleet, seconds: fleet.monitor.backup(),
        lambda world, _: _copies(world),
    ),
    Verb(
        "restore",
        "mam restore FILE",
        copied,
        lambda fleet, seconds: fleet.restore(newest_copy(fleet), is_confirmed=True),
        lambda world, _: world.row()["status"] == "running",
    ),
)
VERBS = {verb.name: verb for verb in _ALL}
