"""A state machine over the whole app: verbs and agents that die, a clock that is set, and edits by hand.

The verbs run in two long-lived processes in turn (`app_worker.py`), with a real tmux and practice agents. A
model (`app_model.py`) says what must be recorded afterwards. After the death of a verb it has several
answers, and the look at the records after the next verb tells which one holds.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from random import Random
from typing import TextIO

from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from tests.adapters.store.making import Store, check_invariants
from tests.faults.app_model import (
    ARCHIVED,
    ENDED,
    OPEN,
    RUNNING,
    TERMINATED,
    Job,
    Model,
    RecordedState,
    Session,
    Task,
)
from tests.faults.machine import (
    COUNT,
    ENOSPC,
    FAIL_ONCE,
    KEEPER,
    KILL_AFTER,
    KILL_BEFORE,
    REPOSITORY,
    Machine,
)
from tests.processes import is_running
from tests.waiting import wait_until

from mam.adapters.tmux.parse import Pane
from mam.core import job_event as events

ARGS = ["--speed", "0"]
DAY = 86400.0
SECONDS = 60.0
# What a changing verb says while somebody's edit of the file cannot be taken in.
BAD_FILE = {"edit_refused", "registry_corrupt"}
# What a verb says that met a full disk.
FULL_DISK = {"disk_full", "read_only", "unwritable", "not_recorded"}
DELIVERED = ("submitted", "queued")
NEXT_STATES = {
    "held": {"held", "typing", *DELIVERED, "unconfirmed", "failed"},
    "typing": {"typing", *DELIVERED, "unconfirmed", "failed"},
    "unconfirmed": {"unconfirmed", *DELIVERED},
    "submitted": {"submitted"},
    "queued": {"queued", "submitted"},
    "failed": {"failed"},
}

# A fate with this number and more names the call itself: for a sequence that is known to fail.
EXACT = 1000

PICKS = range(EXACT)
# Which of the two processes runs the verb, and at which of its calls it dies.
WORKERS = (0, 0, 0, 1)
FATES = (
    *(None,) * 2 * EXACT,
    *((mode, pick) for mode in (KILL_BEFORE, KILL_AFTER, FAIL_ONCE) for pick in PICKS[::3]),
)
NAMES = ("one", "two", "three")


class Connection:
    """A connection to a worker, which ends with it."""

    def __init__(self, lines: TextIO) -> None:
        self.lines = lines
        self.pid = int(lines.readline())

    def ask(self, request: dict) -> dict | None:
        """Return the answer to a request; None if the worker was killed."""
        self.lines.write(json.dumps(request) + "\n")
        self.lines.flush()
        answer = self.lines.readline()
        return json.loads(answer) if answer else None

    def close(self) -> None:
        """Close the connection, and wait for the end of the worker: until then its claims have an owner."""
        with suppress(OSError):
            self.lines.close()
        wait_until(lambda: not is_running(self.pid), "the worker does not end")


class WorkerServer:
    """The process that forks the workers. It ends with its input, so at the latest with this process."""

    def __init__(self, shim: Path, place: Path) -> None:
        self.path = str(place / "workers")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.app_worker", self.path],
            cwd=REPOSITORY,
            env={**os.environ, "LD_PRELOAD": str(shim)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"ready\n"

    def connect(self) -> Connection:
        """Return a connection to a new worker."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS * 5)
            connection.connect(self.path)
            return Connection(connection.makefile("rw", encoding="utf-8"))

    def close(self) -> None:
        """End the process; workers end with their connections."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


STEPS: list[Callable[[WholeApp, Random], None] | None] = []


def step(weight: int, needs=lambda app: True, **choices):
    """Mark a step of the machine. `choices` has the values of each argument; `needs` says when it applies.

    The call of a step is recorded, and all calls are shown when a check fails: they are a test as they stand.
    """

    def mark(work):
        @functools.wraps(work)
        def run(self, *words, **options):
            shown = [*map(repr, words), *(f"{name}={value!r}" for name, value in options.items())]
            self.trace.append(f"app.{work.__name__}({', '.join(shown)})")
            try:
                work(self, *words, **options)
                self.look()
            except Exception as error:
                raise AssertionError(f"{error!r} after\n    " + "\n    ".join(self.trace)) from error

        def take(app: WholeApp, chance: Random) -> bool:
            if not needs(app):
                return False
            run(app, **{name: chance.choice(values) for name, values in choices.items()})
            return True

        STEPS.extend([take] * weight)
        return run

    return mark


def take_steps(app: WholeApp, chance: Random, count: int) -> None:
    """Take so many steps, whichever chance takes, and come to an end."""
    app.create("one", 0, None)
    while count:
        count -= chance.choice(STEPS)(app, chance)
    app.end()


def try_sequences(begin: Callable[[], AbstractContextManager[WholeApp]], examples: int, steps: int) -> None:
    """Try so many sequences of so many steps, the same each time; each begins with nothing."""

    @settings(max_examples=examples, phases=[Phase.generate])
    @given(chance=some.randoms(use_true_random=True))
    def try_one(chance: Random) -> None:
        with begin() as app:
            take_steps(app, chance, steps)

    try_one()


class WholeApp:
    """One root with sessions, messages, jobs and tasks."""

    def __init__(self, machine: Machine, server: WorkerServer) -> None:
        self.machine = machine
        self.server = server
        machine.clear()
        self.root = machine.root
        self.yaml = self.root / ".hermes" / "agent-sessions.yaml"
        self.connections: list[Connection | None] = [None, None]
        self.worlds = [Model()]
        self.clock = [[0.0, 0.0, 1.0]]
        self.trace: list[str] = []
        self.serial = 0
        # How many calls each verb made when it last ended by itself.
        self.calls: dict[str, int] = {}
        # Whether a verb died, and nothing has recovered since.
        self.is_cut_off = False
        # What the file held before an edit that mam refuses.
        self.sound_file: bytes | None = None
        self.refused_file: bytes | None = None
        self.messages: dict[str, str] = {}
        # Whether the text of a message may be left in an input box.
        self.has_killed_senders = False

    # ------------------------------------------------------------ calls

    @property
    def model(self) -> Model:
        """The state, where it is known."""
        (model,) = self.worlds
        return model

    @property
    def any_model(self) -> Model:
        """The state in which the most has happened."""
        return self.worlds[-1]

    def call(self, worker: int, verb: str, *words, fate=None, **options) -> dict | None:
        """Run a verb in a worker; None if it was killed."""
        mode, n = COUNT, 0
        if fate is not None:
            mode, n = fate[0], 1 + fate[1] % self.calls.get(verb, 40)
            n = fate[1] - EXACT if fate[1] >= EXACT else n
        if self.connections[worker] is None:
            self.connections[worker] = self.server.connect()
        answer = self.connections[worker].ask(
            {
                "root": str(self.root),
                "folders": self.machine.folders,
                "verb": verb,
                "words": words,
                "options": options,
                "mode": mode,
                "n": n,
                "errno": ENOSPC,
                "clock": self.clock,
            }
        )
        if answer is None:
            assert mode in (KILL_BEFORE, KILL_AFTER), f"the worker died in {verb}"
            self.reopen_worker(worker)
            self.trace[-1] += f"  # killed at call {n}"
            return None
        error = answer["error"] or {}
        assert error.get("code") not in ("traceback", "broken"), error["message"]
        # Whatever was refused, nobody else is at work here.
        assert error.get("code") not in ("registry_busy", "error"), error
        # A full disk may be no more than a warning.
        answer["has_failed"] = 0 < n <= answer["calls"]
        self.calls[verb] = max(answer["calls"], 1)
        self.trace[-1] += f"  # {error['code'] if error else 'ok'}"
        return answer

    def reopen_worker(self, worker: int) -> None:
        """Close a connection: its worker ends, and the next verb has another one."""
        connection, self.connections[worker] = self.connections[worker], None
        if connection is not None:
            connection.close()

    def change(self, worker, fate, verb, *words, after, errors=(), effect=None, **options):
        """Run a changing verb. `after` are the models that it may lead to; none if it must be refused.

        `errors` are the codes with which it may be refused.
        """
        before = self.model
        possible = []
        for work in after:
            model = before.copy()
            work(model)
            possible.append(model)
        if self.refused_file is not None:
            # Tasks, messages and reports are in no row of the file.
            possible, errors = [] if verb.startswith("sessions.") else possible, {*errors, *BAD_FILE}
        answer = self.call(worker, verb, *words, fate=fate, **options)
        if answer is None:
            self.is_cut_off = True
            self.worlds = [before, *possible]
            return None
        if answer["error"]:
            code = answer["error"]["code"]
            if fate is not None and fate[0] == FAIL_ONCE and code in FULL_DISK:
                self.is_cut_off = True
                self.worlds = [before, *possible]
                return None
            assert code in errors, answer["error"]
            return None
        assert possible, f"{verb} was not refused: {answer['value']}"
        self.worlds, self.is_cut_off = possible, answer["has_failed"]
        value = answer["value"] or {}
        if verb.startswith("sessions.") and value.get("changed") is not False:
            for model in self.worlds:
                model.take_in_edits()
        return value

    # ------------------------------------------------------------ looks

    def seen(self) -> RecordedState:
        """Read what is recorded, without mam."""
        path = self.root / ".mam" / "state.db"
        if not path.exists():
            return RecordedState({}, {}, {}, {})
        with closing(sqlite3.connect(path)) as connection:
            rows = {ident: json.loads(data) for ident, data in self._rows(connection, "id, data", "sessions")}
            jobs = dict(self._rows(connection, "id, status", "jobs"))
            tasks = {
                f"TASK-{seq:03d}": (status, result)
                for seq, status, result in self._rows(connection, "seq, status, result", "tasks")
            }
            messages = {
                ident: rest
                for ident, *rest in self._rows(connection, "id, session_id, state, text", "messages")
            }
        return RecordedState(rows, jobs, tasks, messages)

    @staticmethod
    def _rows(connection, columns: str, table: str) -> list:
        return connection.execute(f"SELECT {columns} FROM {table}").fetchall()

    def ledger(self, job: str) -> list[tuple]:
        """Return attempt, number, name and signature of each entry of a job's log."""
        with closing(sqlite3.connect(self.root / ".mam" / "state.db")) as connection:
            return connection.execute(
                "SELECT attempt, seq, name, signature FROM job_events WHERE job_id=? ORDER BY number", (job,)
            ).fetchall()

    def payload(self, job: str, signature: str) -> str:
        """Return an event of a job as it was signed."""
        with closing(sqlite3.connect(self.root / ".mam" / "state.db")) as connection:
            query = "SELECT payload FROM job_events WHERE job_id=? AND signature=?"
            return connection.execute(query, (job, signature)).fetchone()[0]

    def look(self) -> None:
        """Check what must hold after every step."""
        seen = self.seen()
        self._check_messages(seen)
        self._check_ledgers(seen)
        if self.refused_file is not None:
            assert self.yaml.read_bytes() == self.refused_file, "a file with an edit was overwritten"
        if self.is_cut_off:
            return
        differences = [(model, model.copy().differences(seen)) for model in self.worlds]
        fitting = [model for model, wrong in differences if not wrong]
        assert fitting, f"I1: {[wrong for _model, wrong in differences]}"
        live = self._live_marks()
        for model in fitting:
            model.differences(seen)
        # The records say the same of a session whose agent has died and of one that was started again.
        self.worlds = sorted(fitting, key=lambda model: model.live_ids() != live)[:1]
        on_disk = self.heard()
        for session in self.model.sessions.values():
            conversations = seen.rows.get(session.id, {}).get("conversations")
            session.spoken = bool(conversations) and conversations[-1]["id"] in on_disk
        self._check_panes()

    def _check_panes(self) -> None:
        listing = self.machine.tmux.panes()
        live = Counter(
            pane.mark for pane in listing.panes if pane.mark and pane.mark != KEEPER and not pane.dead
        )
        assert all(count == 1 for count in live.values()), f"I4: two panes claim one session: {live}"
        names = {pane.mark: pane.session_name for pane in listing.panes}
        wanted = self.model.live_ids()
        for one in self.model.sessions.values():
            if one.id in wanted:
                assert names.get(one.id) in (None, one.name), (
                    f"'{one.name}' is called {names[one.id]} by tmux"
                )
        assert wanted <= set(live), f"a session lost its pane: {wanted - set(live)}"
        # The pane of a launch that was withdrawn needs a moment to go.
        if set(live) - wanted:
            wait_until(
                lambda: self._live_marks() <= wanted, lambda: f"I7: panes are left: {self._live_marks()}"
            )

    def _live_panes(self) -> list[Pane]:
        panes = self.machine.tmux.panes().panes
        return [pane for pane in panes if pane.mark and pane.mark != KEEPER and not pane.dead]

    def _live_marks(self) -> set[str]:
        return {pane.mark for pane in self._live_panes()}

    def _check_messages(self, seen: RecordedState) -> None:
        heard = self.heard()
        for ident, (session, state, text) in seen.messages.items():
            before = self.messages.get(ident, "held")
            assert state in NEXT_STATES[before], f"{text!r} was {before} and is {state}"
            self.messages[ident] = state
            counts = [counted[text] for counted in heard.values()]
            assert max(counts, default=0) <= 1, f"I5: {text!r} was typed {counts} times"
            row = seen.rows.get(session) or {"status": TERMINATED}
            if state in DELIVERED and before not in DELIVERED and row["status"] != TERMINATED:
                assert sum(counts), f"{text!r} is {state}, and no agent has it"
            if state in ("held", "failed"):
                assert not sum(counts), f"{text!r} is {state}, and an agent has it"

    def heard(self) -> dict[str, Counter]:
        """Return how often each conversation has each text of a person."""
        folder = Path(os.environ["XDG_DATA_HOME"]) / "mam-practice"
        heard = {}
        for path in folder.glob("*-*.jsonl"):
            with suppress(OSError):
                turns = map(json.loads, path.read_text(encoding="utf-8").splitlines())
                heard[path.stem] = Counter(turn["text"] for turn in turns if turn.get("type") == "user")
        return heard

    def _check_ledgers(self, seen: RecordedState) -> None:
        for job, status in seen.jobs.items():
            entries = self.ledger(job)
            ends = [name for _attempt, _seq, name, _signature in entries if name in events.TERMINAL]
            assert len(ends) == (status in ENDED), f"P33: job {job} is {status}, and ended by {ends}"
            signatures = Counter(
                signature for _attempt, _seq, name, signature in entries if signature and name != "dropped"
            )
            assert all(count == 1 for count in signatures.values()), f"I6: an event of {job} counts twice"

    def learn(self) -> None:
        """Have a verb recover what a dead one left, and look which model holds."""
        if not self.is_cut_off:
            return
        if self.refused_file is not None:
            self.mend_file()
        self.serial += 1
        verb = ("sessions.ls", "settle", "monitor.once", "sessions.names", "tick")[self.serial % 5]
        self.trace.append(f"    # learns by {verb}")
        self.recover(verb)

    def recover(self, verb: str, fate=None, worker: int = 0) -> None:
        """Run a verb that recovers first; it may die, too."""
        answer = self.call(worker, verb, fate=fate)
        if answer is None:
            self.is_cut_off = True
            return
        error = answer["error"]
        if error and fate is not None and fate[0] == FAIL_ONCE and error["code"] in FULL_DISK:
            self.is_cut_off = True
            return
        assert not error or (error["code"] == "no_registry" and not self.yaml.exists()), error
        if verb == "sessions.names":
            # It is the cheapest look, and recovers nothing.
            self.call(worker, "sessions.list")
        self.is_cut_off = answer["has_failed"]
        if self.is_cut_off:
            return
        if verb in ("monitor.once", "tick"):
            self._note_deaths()
        if verb == "settle":
            for model in self.worlds:
                model.take_in_edits()
        self.look()
        if not self.yaml.exists():
            return
        self._check_recovered()
        if self.refused_file is None and not any(one.is_edited for one in self.model.sessions.values()):
            self.check_file()

    def _note_deaths(self) -> None:
        for model in self.worlds:
            model.all_deaths()

    def _check_recovered(self) -> None:
        with closing(sqlite3.connect(self.root / ".mam" / "state.db")) as connection:
            left = connection.execute("SELECT verb, name FROM intents").fetchall()
        assert not left, f"left in flight: {left}"

    def check_file(self) -> None:
        """After a change: every record parses, and the file shows exactly the database."""
        store = Store(self.root, time.time)
        try:
            check_invariants(store)
        finally:
            store.registry.close()

    # ------------------------------------------------------------ steps: sessions

    def pick(self, pick: int) -> tuple[str, Session] | None:
        """Return one of the sessions."""
        sessions = list(self.model.sessions.items())
        return sessions[pick % len(sessions)] if sessions else None

    def new_key(self) -> str:
        """Return a key for a session of the model."""
        self.serial += 1
        return f"k{self.serial}"

    @step(6, name=NAMES, worker=WORKERS, fate=FATES)
    def create(self, name, worker, fate):
        self.learn()
        found = self.model.named(name)
        key = self.new_key()

        def begin(model):
            old = model.named(name)
            if old is None:
                model.sessions[key] = Session(name)
            else:
                old.status, old.alive, old.resumable = RUNNING, True, True

        def begin_after_death(model):
            old = next(one for one, session in model.sessions.items() if session.name == name)
            model.record_death(old)
            begin(model)

        after, errors = [begin], ()
        if found is not None and found.status == RUNNING:
            after, errors = ([], {"name_taken"}) if found.alive else ([begin_after_death], {"name_taken"})
        self.change(
            worker,
            fate,
            "sessions.create",
            "practice",
            name=name,
            args=ARGS,
            timeout=SECONDS,
            after=after,
            errors=errors,
        )

    @step(
        6,
        needs=lambda app: app.any_model.sessions,
        pick=PICKS,
        worker=WORKERS,
        fate=FATES,
        force=(False, True),
        purge=(False, False, True),
    )
    def stop(self, pick, worker, fate, force=False, purge=False):
        self.learn()
        if not (found := self.pick(pick)):
            return
        key, session = found
        pids = self.pids(session)
        purged = {one["id"] for one in self.seen().rows[session.id]["conversations"][-1:]}

        def end(model):
            ended = model.sessions[key]
            if purge:
                model.stop(key, TERMINATED)
                ended.resumable = False
            elif ended.status == RUNNING:
                model.stop(key)

        def end_of_dead(model):
            if model.sessions[key].status == RUNNING and not model.sessions[key].alive:
                model.record_death(key)
                end(model)

        done = self.change(
            worker,
            fate,
            "sessions.stop",
            session.name,
            force=force,
            purge_conversation=purge,
            after=[end, end_of_dead],
        )
        if done is not None:
            assert not any(map(is_running, pids)), f"I7: processes of '{session.name}' still run"
            assert not purge or not (purged & set(self.heard())), "a purged conversation is on disk"

    def pids(self, session: Session) -> list[int]:
        """Return the process of a session that runs."""
        if session.status != RUNNING:
            return []
        return [
            pane.pid for pane in self.machine.tmux.panes().panes if pane.mark == session.id and not pane.dead
        ]

    @step(6, needs=lambda app: app.any_model.sessions, pick=PICKS, worker=WORKERS, fate=FATES)
    def resume(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick(pick)):
            return
        key, session = found

        def begin(model):
            if model.sessions[key].status == RUNNING and not model.sessions[key].alive:
                model.record_death(key)
            model.sessions[key].status, model.sessions[key].alive = RUNNING, True

        after, errors = [begin], ()
        if not session.resumable:
            after, errors = [], {"illegal_transition"}
        self.change(
            worker, fate, "sessions.resume", session.name, timeout=SECONDS, after=after, errors=errors
        )

    @step(
        5,
        needs=lambda app: app.any_model.sessions,
        pick=PICKS,
        name=(*NAMES, "other", "next"),
        worker=WORKERS,
        fate=FATES,
    )
    def rename(self, pick, name, worker, fate):
        self.learn()
        if not (found := self.pick(pick)):
            return
        key, session = found
        other = self.model.named(name)
        after, errors = [lambda model: setattr(model.sessions[key], "name", name)], ()
        if other is not None and other is not session:
            after, errors = [], {"name_taken"}
        self.change(worker, fate, "sessions.rename", session.name, name, after=after, errors=errors)

    @step(3, needs=lambda app: app.any_model.sessions, pick=PICKS, worker=WORKERS, fate=FATES)
    def archive(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick(pick)):
            return
        key, session = found
        after, errors = [lambda model: setattr(model.sessions[key], "status", ARCHIVED)], ()
        if session.status == RUNNING:
            after, errors = [], {"illegal_transition"}
        self.change(worker, fate, "sessions.archive", session.name, after=after, errors=errors)

    @step(2, needs=lambda app: app.any_model.sessions, pick=PICKS, worker=WORKERS, fate=FATES)
    def forget(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick(pick)):
            return
        key, session = found
        after, errors = [lambda model: model.sessions.pop(key)], ()
        if session.status == RUNNING:
            after, errors = [], {"illegal_transition"}
        self.change(worker, fate, "sessions.forget", session.name, after=after, errors=errors)

    @step(2, needs=lambda app: app.any_model.sessions, pick=PICKS, worker=WORKERS, fate=FATES)
    def fork(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick(pick)) or len(self.model.sessions) > 4:
            return
        _key, session = found
        new = self.new_key()
        after, errors = [lambda model: model.sessions.update({new: Session(f"fork-{new}")})], ()
        if not session.spoken:
            # Every change first delivers what is held.
            states = [state for ident, state, _text in self.seen().messages.values() if ident == session.id]
            after, errors = after if {"held", "typing"} & {*states} else [], {"illegal_transition"}
        self.change(
            worker,
            fate,
            "sessions.fork",
            session.name,
            name=f"fork-{new}",
            timeout=SECONDS,
            after=after,
            errors=errors,
        )

    # ------------------------------------------------------------ steps: messages

    @step(5, needs=lambda app: app.any_model.sessions, pick=PICKS, worker=WORKERS, fate=FATES)
    def send(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick(pick)):
            return
        _key, session = found
        self.serial += 1
        text = f"word {self.serial}"
        can_hear = session.status == RUNNING and session.alive
        receipt = self.change(
            worker,
            fate,
            "messages.send",
            session.name,
            text,
            timeout=20.0 if can_hear else 0.0,
            after=[lambda _model: None],
            errors={"refused"} if not can_hear else (),
        )
        if fate is not None and receipt is None:
            self.has_killed_senders = True
        if not receipt:
            return
        if not can_hear:
            assert receipt["state"] in ("held", "failed"), receipt
        elif not self.has_killed_senders:
            assert receipt["state"] in DELIVERED, receipt

    # ------------------------------------------------------------ steps: jobs

    @step(4, pick=PICKS, worker=WORKERS, fate=FATES, by_person=(False, True))
    def submit(self, pick, worker, fate, by_person=True):
        self.learn()
        found = None if by_person else self.pick(pick)
        self.serial += 1
        key, target = f"j{self.serial}", found[0] if found else None

        def begin(model):
            model.jobs[key] = Job(set(OPEN), target, may_fail=True)

        after, errors, words = [begin], (), {"type": "human"}
        if found:
            words = {"session": found[1].name, "idle_timeout": 0}
            self.has_killed_senders |= fate is not None
            job = self.model.open_job_of(target)
            if found[1].status != RUNNING or job:
                after, errors = after if job and job.may_fail else [], {"illegal_transition"}
        task = f"never report {self.serial}"
        job = self.change(worker, fate, "jobs.submit", task, after=after, errors=errors, **words)
        if job is not None and after:
            self.model.jobs[key].may_fail = bool(found and not found[1].alive)

    def pick_job(self, pick: int) -> tuple[str, Job] | None:
        """Return one of the jobs whose id is known."""
        jobs = [(key, job) for key, job in self.model.jobs.items() if job.id]
        return jobs[pick % len(jobs)] if jobs else None

    @step(
        5,
        needs=lambda app: app.any_model.jobs,
        pick=PICKS,
        name=("started", "progress", "completed", "error", "permission_required"),
        attempt=(None, None, None, 1, 0, 2),
        worker=WORKERS,
        fate=FATES,
    )
    def report(self, pick, name, attempt, worker, fate):
        self.learn()
        if not (found := self.pick_job(pick)):
            return
        key, job = found
        status = {name} if name in events.TERMINAL else {"running"}
        after, errors = [lambda model: setattr(model.jobs[key], "statuses", status)], ()
        if not job.statuses & OPEN or attempt in (0, 2):
            after, errors = [], {"event_refused"}
        self.change(worker, fate, "jobs.event", job.id, name, attempt=attempt, after=after, errors=errors)

    @step(
        7,
        needs=lambda app: app.any_model.jobs,
        pick=PICKS,
        name=("progress", "progress", "completed", "error"),
        how=("next", "next", "gap", "again", "again", "late", "old attempt", "wrong token", "reused"),
        worker=WORKERS,
        fate=FATES,
    )
    def take_in(self, pick, name, how, worker, fate):
        """Take in an event that was signed elsewhere: valid, twice, late, or forged."""
        self.learn()
        if not (found := self.pick_job(pick)):
            return
        key, job = found
        entries = [entry for entry in self.ledger(job.id) if entry[1] > 0 and entry[3]]
        used = {seq for _attempt, seq, _name, _signature in entries}
        last = max(used, default=0)
        gaps = [seq for seq in range(1, last) if seq not in used]
        seq = {"gap": last + 3, "late": gaps[0] if gaps else last + 1, "reused": max(last, 1)}.get(
            how, last + 1
        )
        token = (self.root / ".mam" / "jobs" / f"{job.id}.token").read_text(encoding="ascii").strip()
        payload = events.write(
            events.sign(
                events.make(
                    job.id,
                    name,
                    seq=seq,
                    attempt=2 if how == "old attempt" else 1,
                    timestamp="2026-11-19T12:00:00Z",
                    detail=f"event {self.serial}",
                ),
                "f" * 64 if how == "wrong token" else token,
            )
        )
        if how == "again" and entries:
            # The newest one most often: it may have ended the job.
            payload = self.payload(job.id, entries[-1 - (pick % len(entries)) // 2][3])
        signature = json.loads(payload)["data"]["hmac_sig"]
        wanted = self._verdict(job, json.loads(payload), entries, how)
        status = {name} if name in events.TERMINAL else {"running"}
        after = []
        if wanted == "applied":
            after = [lambda model: setattr(model.jobs[key], "statuses", status)]
        done = self.change(worker, fate, "jobs.take_in", payload, after=after or [lambda model: None])
        if done is None:
            return
        assert done["verdict"] == wanted, f"{done}, and not {wanted}"
        count = [entry[3] for entry in self.ledger(job.id)].count(signature)
        assert count == (wanted in ("applied", "late", "duplicate")), f"{wanted}, and recorded {count} times"

    @staticmethod
    def _verdict(job: Job, event: dict, entries: list, how: str) -> str:
        if how in ("wrong token", "old attempt"):
            return "refused"
        if event["data"]["hmac_sig"] in [entry[3] for entry in entries]:
            return "duplicate"
        ended = [seq for _attempt, seq, name, _signature in entries if name in events.TERMINAL]
        if event["event"] in events.TERMINAL:
            return "refused" if ended else "applied"
        if event["seq"] in {entry[1] for entry in entries}:
            return "refused"
        if not ended:
            return "applied"
        return "refused" if event["seq"] > ended[0] else "late"

    @step(2, needs=lambda app: app.any_model.jobs, pick=PICKS, worker=WORKERS, fate=FATES)
    def cancel(self, pick, worker, fate):
        self.learn()
        if not (found := self.pick_job(pick)):
            return
        key, job = found
        after = [lambda model: setattr(model.jobs[key], "statuses", {"cancelled"})]
        if not job.statuses & OPEN:
            after = [lambda model: None]
        self.change(worker, fate, "jobs.cancel", job.id, after=after)

    # ------------------------------------------------------------ steps: tasks

    @step(2, worker=WORKERS, fate=FATES)
    def add_task(self, worker, fate):
        self.learn()
        key = f"TASK-{len(self.model.tasks) + 1:03d}"
        self.change(
            worker,
            fate,
            "tasks.add",
            f"task {key}",
            role="dev",
            after=[lambda model: model.tasks.update({key: Task()})],
        )

    @step(2, worker=WORKERS, fate=FATES)
    def claim_task(self, worker, fate):
        self.learn()
        waiting = [key for key, task in self.model.tasks.items() if task.status == "pending"]
        after, errors = [lambda model: setattr(model.tasks[waiting[0]], "status", "in-progress")], ()
        if not waiting:
            after, errors = [], {"task_not_found"}
        self.change(worker, fate, "tasks.claim", role="dev", after=after, errors=errors)

    @step(2, needs=lambda app: app.any_model.tasks, pick=PICKS, worker=WORKERS, fate=FATES)
    def finish_task(self, pick, worker, fate):
        self.learn()
        if not self.model.tasks:
            return
        key = list(self.model.tasks)[pick % len(self.model.tasks)]
        result = f"result {self.serial}"

        def finish(model):
            if model.tasks[key].status != "done":
                model.tasks[key].status, model.tasks[key].result = "done", result

        self.change(worker, fate, "tasks.finish", key, result=result, after=[finish])

    # ------------------------------------------------------------ steps: the file

    def _file_rows(self) -> list[str]:
        """Return the ids of the sessions that the file shows."""
        if not self.yaml.exists() or self.refused_file is not None:
            return []
        lines = self.yaml.read_text(encoding="utf-8").splitlines()
        return [line.split()[2] for line in lines if line.startswith("- id: ")]

    def write_file(self, text: str) -> None:
        """Replace the file as an editor does."""
        beside = self.yaml.with_name("edited")
        beside.write_text(text, encoding="utf-8")
        beside.rename(self.yaml)

    @step(3, pick=PICKS)
    def edit(self, pick):
        """A person writes a key of its own into a session of the file, also after a crash."""
        shown = self._file_rows()
        if not shown:
            return
        ident = shown[pick % len(shown)]
        keys = [key for key, one in self.worlds[0].sessions.items() if one.id == ident]
        if not all(keys and keys[0] in model.sessions for model in self.worlds):
            return
        self.serial += 1
        value = f"v{self.serial}"
        head, _, rest = self.yaml.read_text(encoding="utf-8").partition(f"- id: {ident}\n")
        block, mark, tail = rest.partition("\n- id: ")
        block = "\n".join(line for line in block.split("\n") if not line.startswith("  mine:"))
        self.write_file(f"{head}- id: {ident}\n  mine: {value}\n{block}{mark}{tail}")
        for model in self.worlds:
            model.sessions[keys[0]].notes |= {value}

    @step(1, how=("cut off", "no yaml", "a name"))
    def spoil_file(self, how):
        """A person leaves the file in a state that mam refuses."""
        if not self._file_rows():
            return
        self.sound_file = self.yaml.read_bytes()
        text = self.sound_file.decode()
        self.write_file(
            {
                "cut off": text[: len(text) * 2 // 3],
                "no yaml": text + "\n  : [}\n",
                "a name": text.replace("\n  name: ", "\n  name: other-", 1),
            }[how]
        )
        self.refused_file = self.yaml.read_bytes()

    @step(6, needs=lambda app: app.refused_file is not None)
    def mend(self):
        self.mend_file()

    def mend_file(self) -> None:
        """Undo the edit that mam refuses."""
        if self.refused_file is not None:
            self.write_file(self.sound_file.decode())
            self.refused_file = None

    # ------------------------------------------------------------ steps: what happens around mam

    @step(3, days=(1.0, -1.0), rate=(1.0, 1.0, 0.0))
    def set_clock(self, days, rate):
        """Somebody sets the clock, or it stands still."""
        since, shown, former = self.clock[-1]
        now = time.time()
        self.clock.append([now, shown + (now - since) * former + days * DAY, rate])

    @step(4, pick=PICKS, how=("agent", "agent", "pane"))
    def kill(self, pick, how):
        """An agent is killed, or its pane is closed."""
        # One listing: the pane of a launch that was withdrawn ends by itself, between any two looks.
        panes = sorted(self._live_panes(), key=lambda pane: pane.mark)
        if not panes:
            return
        pane = panes[pick % len(panes)]
        mark = pane.mark
        if how == "agent":
            with suppress(ProcessLookupError):
                os.kill(pane.pid, signal.SIGKILL)
        else:
            self.machine.tmux.kill_pane(pane.id, mark=mark)
        wait_until(
            lambda: mark not in self._live_marks() and not is_running(pane.pid), "the agent does not end"
        )
        # A session whose creation died is not known by its id yet.
        known = {session.id for model in self.worlds for session in model.sessions.values()}
        self._lose(lambda one: one.id == (mark if mark in known else None))

    @step(1)
    def kill_server(self):
        """The tmux server is killed, with all panes."""
        pids = [pane.pid for pane in self.machine.tmux.panes().panes if not pane.dead]
        self.machine.tmux.kill_server()
        wait_until(lambda: not any(map(is_running, pids)), "the agents do not end")
        self.machine.tmux.start("keeper", ["sleep", "1000000"], cwd="/", session_id=KEEPER, root="/")
        self._lose(lambda one: True)

    def _lose(self, is_meant) -> None:
        for model in self.worlds:
            for session in model.sessions.values():
                if session.status == RUNNING and is_meant(session):
                    session.alive = False

    @step(2, worker=(0, 1))
    def reopen(self, worker):
        self.reopen_worker(worker)

    @step(5, verb=("monitor.once", "tick", "settle", "sessions.ls"), worker=WORKERS, fate=FATES)
    def look_after(self, verb, worker, fate):
        """A pass of the monitor, the work of the resident, or a verb that only reads; it may die, too."""
        if self.refused_file is not None:
            answer = self.call(worker, verb)
            assert (answer["error"] or {"code": "edit_refused"})["code"] in BAD_FILE, answer["error"]
            self.mend_file()
        self.recover(verb, fate, worker)

    @step(0)
    def end(self):
        """Everything that is left comes to its end, and a second recovery changes nothing."""
        self.set_clock(0.0, 1.0)
        self.mend_file()
        self.learn()
        self.recover("tick")
        self.recover("settle")
        if (self.root / ".mam" / "state.db").exists():
            self.check_file()
            wait_until(self._is_settled, "I8: every recovery changed something")
        launches = self.root / ".mam" / "launch"
        wait_until(lambda: not list(launches.glob("*")), "I9: a launch file is left")

    def close(self) -> None:
        """End the workers."""
        for worker in (0, 1):
            self.reopen_worker(worker)

    def _is_settled(self) -> bool:
        before = self.machine.everything()
        self.recover("settle")
        return self.machine.everything() == before
