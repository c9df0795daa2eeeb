"""What mam must know about its sessions, jobs and tasks after any sequence of verbs. Pure.

A model is a small value. Where it is open what happened, as after the death of a verb, several models are
possible, and a look at the records tells which one holds.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

RUNNING, STOPPED, TERMINATED, ARCHIVED = "running", "stopped", "terminated", "archived"
OPEN = {"pending", "running"}
ENDED = {"completed", "error", "cancelled"}


@dataclass
class Session:
    """A session. One that runs may have lost its agent, and then it may be recorded as terminated."""

    name: str
    status: str = RUNNING
    alive: bool = True
    # Whether its conversation is on disk.
    spoken: bool = False
    # Whether it has a conversation that a resume could take.
    resumable: bool = True
    # The key of its own that a person wrote: each of these values may be recorded.
    notes: set[str | None] = field(default_factory=lambda: {None})
    id: str | None = None

    @property
    def is_edited(self) -> bool:
        """Whether the file may have an edit that is not recorded."""
        return len(self.notes) > 1

    @property
    def statuses(self) -> set[str]:
        """What may be recorded."""
        return {RUNNING, TERMINATED} if self.status == RUNNING and not self.alive else {self.status}


@dataclass
class Job:
    """A job: what may be recorded, and the session that works on it."""

    statuses: set[str]
    session: str | None = None
    id: str | None = None
    # Whether its submission died, so that mam may end it as soon as somebody looks after it.
    may_fail: bool = False


@dataclass
class Task:
    """A task of a role."""

    status: str = "pending"
    result: str | None = None


@dataclass
class Model:
    """One possible state of a root."""

    sessions: dict[str, Session] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)

    def copy(self) -> Model:
        """Return a copy to change."""
        return deepcopy(self)

    def named(self, name: str) -> Session | None:
        """Return the session of that name."""
        return next((one for one in self.sessions.values() if one.name == name), None)

    def live_ids(self) -> set[str | None]:
        """Return the ids of the sessions whose agents live."""
        return {one.id for one in self.sessions.values() if one.status == RUNNING and one.alive}

    def open_job_of(self, key: str) -> Job | None:
        """Return the job that a session works on."""
        return next((job for job in self.jobs.values() if job.session == key and job.statuses & OPEN), None)

    def end_job_of(self, key: str, status: str) -> None:
        """The end of a session ends its job."""
        for job in self.jobs.values():
            if job.session == key and job.statuses & OPEN:
                # A submission that died may not have told the session of its job.
                job.statuses = {status} | (OPEN if job.may_fail else set())

    def stop(self, key: str, status: str = STOPPED) -> None:
        """A session is ended on purpose."""
        session = self.sessions[key]
        if session.status == RUNNING:
            self.end_job_of(key, "cancelled")
        session.status, session.alive = status, False

    def record_death(self, key: str) -> None:
        """The end of an agent is recorded."""
        self.sessions[key].status = TERMINATED
        self.end_job_of(key, "error")

    def all_deaths(self) -> None:
        """Every end of an agent is recorded."""
        for key, session in self.sessions.items():
            if session.status == RUNNING and not session.alive:
                self.record_death(key)

    def take_in_edits(self) -> None:
        """What a person wrote into the file is recorded."""
        for session in self.sessions.values():
            if len(session.notes) > 1:
                session.notes = {_newest(session)}

    # ------------------------------------------------------------ what was recorded

    def differences(self, seen: RecordedState) -> list[str]:
        """Say in which ways the records are not those of this model; learn the ids of what is new."""
        return [*self._sessions_differ(seen), *self._jobs_differ(seen), *self._tasks_differ(seen)]

    def _sessions_differ(self, seen: RecordedState) -> list[str]:
        wrong = []
        left = dict(seen.rows)
        for key, session in self.sessions.items():
            known = session.id or next(
                (ident for ident, row in left.items() if row["name"] == session.name), None
            )
            row = left.pop(known, None)
            if row is None:
                wrong.append(f"'{session.name}' is not registered")
                continue
            session.id = row["id"]
            if row["name"] != session.name:
                wrong.append(f"'{session.name}' is called {row['name']}")
            if row["status"] not in session.statuses:
                wrong.append(f"'{session.name}' is {row['status']}, and not {sorted(session.statuses)}")
            if row.get("mine") not in session.notes:
                wrong.append(f"'{session.name}' has the key {row.get('mine')!r}, and not {session.notes}")
            if bool(row["conversations"]) != session.resumable:
                wrong.append(f"'{session.name}' has the conversations {row['conversations']}")
            self._learn_death(key, row["status"])
        return wrong + [f"'{row['name']}' should not be registered" for row in left.values()]

    def _learn_death(self, key: str, status: str) -> None:
        if status == TERMINATED and self.sessions[key].status == RUNNING:
            self.record_death(key)

    def _jobs_differ(self, seen: RecordedState) -> list[str]:
        wrong = []
        left = dict(seen.jobs)
        for job in self.jobs.values():
            known = job.id or next(
                (ident for ident in left if ident not in {one.id for one in self.jobs.values()}), None
            )
            status = left.pop(known, None)
            if status is None:
                wrong.append(f"job {job.id} is not there")
                continue
            job.id = known
            if status not in job.statuses | ({"error"} if job.may_fail and job.statuses & OPEN else set()):
                wrong.append(f"job {known} is {status}, and not {sorted(job.statuses)}")
            elif status in ENDED:
                job.statuses = {status}
        return wrong + [f"job {ident} should not be there" for ident in left]

    def _tasks_differ(self, seen: RecordedState) -> list[str]:
        mine = {key: (task.status, task.result) for key, task in self.tasks.items()}
        return [] if mine == seen.tasks else [f"the tasks are {seen.tasks}, and not {mine}"]


@dataclass
class RecordedState:
    """What is recorded: rows by id, the status of jobs, tasks, and messages as (session, state, text)."""

    rows: dict[str, dict]
    jobs: dict[str, str]
    tasks: dict[str, tuple[str, str | None]]
    messages: dict[str, tuple[str, str, str]]


def _newest(session: Session) -> str | None:
    return max(
        (note for note in session.notes if note is not None), key=lambda note: int(note[1:]), default=None
    )
