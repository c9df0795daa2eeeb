"""Killing a verb at every call by which it changes a file, and looking at what is left each time."""

from __future__ import annotations

import json
import random
import re
import traceback
from contextlib import suppress
from pathlib import Path

from tests.faults.machine import (
    ENOSPC,
    FAIL_FROM,
    KILL_AFTER,
    KILL_BEFORE,
    LOSE_POWER,
    NEXT_VERBS,
    Machine,
)
from tests.waiting import send_and_wait, wait_for, wait_for_jobs

import mam
from mam.app.jobs.new_job import record_job
from mam.app.jobs.write_job_files import write_files
from mam.app.sessions.death import record_if_dead
from mam.core.errors import NoTranscript

KILLS = (KILL_BEFORE, KILL_AFTER)


class Case:
    """A verb, the state it begins in, and the states that it may leave."""

    verb = ""
    # What may be there after the death and the next verb: name -> status, one of these.
    allowed: tuple[dict[str, str], ...] = ()
    # What may be there besides after a verb that has said that it failed.
    allowed_with_error: tuple[dict[str, str], ...] = ()
    # How the verb is repeated, and what it must lead to from each of the states above.
    again: str | None = None
    goal: dict[str, str] | None = None
    # Whether the verb leaves an agent that works on a job, and reports on it.
    agent_reports = False
    # What recovers from the death of the verb.
    recovery = "settle"
    # Whether `look` can tell all that it has to without the agents that ran.
    needs_no_agent = False
    # Whether the verb had said that it was done, before whatever befell it.
    is_acknowledged = False
    # Whether the verb has said that it failed, or that it was done and nothing could be recorded.
    has_failed = is_unrecorded = False
    # The call that was broken, as the process itself saw it: runs differ a little.
    call = ""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.prepare()

    def prepare(self) -> None:
        """Make the state that every case of this verb begins with, and keep it."""
        self.machine.clear()
        self._stopped("other")
        self.machine.save()

    def check(self) -> dict[str, str]:
        """Check every invariant, and return the status of each session by name."""
        return self.machine.check(agent_reports=self.agent_reports)

    def check_after(self, n: int) -> dict[str, str]:
        """Run the verb that comes after a fault at call n, and check everything then and after a change."""
        self.machine.run_next(NEXT_VERBS[n % len(NEXT_VERBS)], self.is_edited)
        return self.check()

    def check_after_loss(self, n: int) -> None:
        """Run the verb that comes after a loss of power at call n, and check what is there.

        A session whose agent went with the power runs until a pass of the monitor has seen its end. A launch
        file whose launcher went stays for some minutes.
        """
        machine = self.machine
        machine.end_panes()
        machine.run_next(NEXT_VERBS[n % len(NEXT_VERBS)], self.is_edited, is_after_loss=True)
        machine.settle()
        statuses = {name: row["status"] for name, row in machine.rows().items()}
        ended = [_without_panes(each) for each in self.allowed]
        assert _without_panes(statuses) in ended, f"left {json.dumps(statuses)}"
        if self.is_acknowledged:
            assert _without_panes(statuses) == ended[-1], f"I1: acknowledged, and {json.dumps(statuses)}"
        _check_others(self)
        if self.needs_no_agent:
            self.look(statuses)
        with mam.open(str(machine.root)) as fleet:
            if self.is_acknowledged:
                self.look_after_loss(fleet)
            self._record_deaths(fleet)
        for path in (machine.root / ".mam" / "launch").glob("*"):
            path.unlink()
        self.check()

    def _record_deaths(self, fleet: mam.Fleet) -> None:
        """Record the sessions that have died, as a pass of the monitor does."""
        for row in self.machine.rows().values():
            if row["status"] == "running":
                record_if_dead(fleet._access.context, fleet.caller, row)

    def look_after_loss(self, fleet: mam.Fleet) -> None:
        """Check for what only this verb has acknowledged."""

    def is_edited(self) -> bool:
        """Tell whether a person's edit of the file waits to be taken in."""
        return False

    def begin(self) -> None:
        """Bring the state back."""
        self.machine.restore()
        self.before = self.machine.rows()

    def look(self, statuses: dict[str, str]) -> None:
        """Check what only this verb can tell."""

    def _stopped(self, name: str) -> None:
        """Make an ended session with a conversation on disk, as if it had been spoken to."""
        machine = self.machine
        for verb in ("create", "stop"):
            answer = machine.run(verb)
            assert not answer["error"], answer
        machine.begin_conversations()
        if name != "one":
            machine.run("rename-other")


def _without_panes(statuses: dict[str, str]) -> dict[str, str]:
    """Return the statuses where the end of an agent may be recorded, or not yet."""
    return {name: "running" if status == "terminated" else status for name, status in statuses.items()}


def points(names: list[str], step: int, only: str | None) -> list[int]:
    """Return the numbers of the calls to break: every so many, or those of one name."""
    return [n for n in range(1, len(names) + 1, step) if only is None or names[n - 1] == only]


# What the files are that a verb changes: the first pattern that fits the path says it.
CLASSES = (
    (r"\.(queue|lock)$|/\.lock$", "lock"),
    (r"/copy\.db", "copy in a file"),
    (r"/backups/", "copy"),
    (r"/scratch/", "scratch"),
    (r"/kept/", "former state"),
    (r"/\.mam\.new/", "new state"),
    (r"/user\.db", "user state"),
    (r"/state\.db$", "database"),
    (r"/state\.db-", "log of the database"),
    (r"/agent-sessions\.yaml$", "registry file"),
    (r"/agent-sessions\.yaml\.bak$", "former file"),
    (r"/\.agent-sessions\.yaml\.tmp$", "new file"),
    (r"/launch(es)?/", "launch file"),
    (r"/spool/", "hook file"),
    (r"/(jobs|delegate_job_logs)/", "job file"),
    (r"/\.mam-mail/", "mail file"),
    (r"\.md$", "page of a team"),
    (r"/mam-practice/", "conversation"),
)


def class_of(path: str) -> str:
    """Return what kind of file a path names; every other one is a folder."""
    return next((name for pattern, name in CLASSES if re.search(pattern, path)), "folder")


def one_of_each(calls: list[str]) -> list[int]:
    """Return one call for each call and class of file: the middle one, as verbs begin alike."""
    found: dict[tuple[str, str], list[int]] = {}
    for n, call in enumerate(calls, 1):
        name, _, path = call.partition(" ")
        found.setdefault((name, class_of(path)), []).append(n)
    return sorted(numbers[len(numbers) // 2] for numbers in found.values())


def sweep_classes(case: Case) -> int:
    """Kill the verb before one call for each call and class of file; return how many there were."""
    broken = one_of_each(_undisturbed(case)["paths"])
    return break_calls(case, KILL_BEFORE, 0, broken)


def sweep(case: Case, mode: int, number: int = 0, step: int = 1, only: str | None = None) -> int:
    """Break the verb at its calls, one case each; return how many there were."""
    return break_calls(case, mode, number, points(_undisturbed(case)["names"], step, only))


def _undisturbed(case: Case) -> dict:
    """Run the verb without a fault, and return the answer, which has its calls."""
    case.begin()
    answer = case.machine.run(case.verb)
    assert not answer["error"], answer["error"]
    assert case.check() == case.allowed[-1], "the verb itself"
    return answer


def break_calls(case: Case, mode: int, number: int, broken: list[int]) -> int:
    """Break the verb at these calls, one case each; return how many there were."""
    failures = []
    for n in broken:
        case.call = ""
        try:
            case.begin()
            _one(case, n, mode, number)
        except Exception as error:
            failures.append(f"{case.verb}, call {n} ({case.call}): {_told(error)}")
    assert not failures, "\n" + "\n".join(failures)
    return len(broken)


def _told(error: Exception) -> str:
    """Return what an error is and says; of one without words the line where it stands.

    What a case meets when mam is wrong may be any error, such as a name that is not registered.
    """
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error) or f'{where.filename}:{where.lineno}: {where.line}'}"


def lose_power(case: Case, seeds: range) -> int:
    """Let the power go at calls that the seeds choose, of the verb or after its acknowledgement.

    What was not flushed is lost in part, and all agents end. What was acknowledged is there all the same.
    """
    answer = _undisturbed(case)
    calls, of_verb = answer["calls"], answer["calls_of_verb"]
    failures, lost = [], 0
    for seed in seeds:
        dice = random.Random(seed)
        n = dice.randint(1, of_verb) if dice.random() < 0.6 else dice.randint(of_verb + 1, calls + 1)
        case.call = ""
        try:
            case.begin()
            answer = case.machine.run(case.verb, n, LOSE_POWER, seed)
            assert answer["killed"], "the power did not go"
            lost += 1
            case.call, case.is_acknowledged = answer["broken"], answer["acknowledged"]
            case.check_after_loss(n)
        except Exception as error:
            failures.append(f"{case.verb}, seed {seed}, call {n} of {calls} ({case.call}): {_told(error)}")
    assert not failures, "\n" + "\n".join(failures)
    return lost


def sweep_and_go_on(case: Case, number: int = ENOSPC, step: int = 1, only: str | None = None) -> int:
    """Let the disk fail from each call on, mend it, and repeat the verb in the same process."""
    answer = _undisturbed(case)
    names = answer["names"][: answer["calls_of_verb"]]
    failures = []
    broken = points(names, step, only)
    for n in broken:
        try:
            case.begin()
            answer = case.machine.run(case.verb, n, FAIL_FROM, number, again=case.verb)
            case.is_acknowledged = True
            statuses = case.check_after(n)
            assert statuses == case.allowed[-1], f"left {json.dumps(statuses)}; {answer.get('again')}"
            case.look(statuses)
        except Exception as error:
            failures.append(f"{case.verb}, call {n} of {len(names)} ({names[n - 1]}): {_told(error)}")
    assert not failures, "\n" + "\n".join(failures)
    return len(broken)


def sweep_twice(case: Case, step: int, second_step: int, mode: int = KILL_BEFORE, number: int = 0) -> int:
    """Kill the verb, then break the recovery at its calls too, then recover in peace.

    The steps say which calls of the verb, and which of the recovery.
    """
    names = _undisturbed(case)["names"]
    cases, failures = 0, []
    for n in range(1, len(names) + 1, step):
        m, has_run = 1, True
        while has_run:
            has_run = False
            try:
                case.begin()
                case.machine.run(case.verb, n, KILL_BEFORE)
                second = case.machine.run(case.recovery, m, mode, number)
                if not second["killed"] and second["calls"] < m:
                    break
                cases, has_run = cases + 1, True
                statuses = case.check_after(n + m)
                assert statuses in case.allowed, f"left {json.dumps(statuses)}"
                _check_others(case)
                case.look(statuses)
            except Exception as error:
                failures.append(
                    f"{case.verb}, call {n} ({names[n - 1]}), then {m} of the recovery: {_told(error)}"
                )
            m += second_step
    assert not failures, "\n" + "\n".join(failures)
    return cases


def _one(case: Case, n: int, mode: int, number: int) -> None:
    machine = case.machine
    answer = machine.run(case.verb, n, mode, number)
    case.call = answer["broken"]
    case.is_acknowledged = answer["acknowledged"]
    error = answer.get("error")
    case.has_failed = error is not None
    case.is_unrecorded = error is not None and error["code"] == "not_recorded"
    statuses = case.check_after(n)
    if mode in KILLS and not answer["killed"]:
        assert statuses == case.allowed[-1], "not killed, and not done either"
    if case.is_acknowledged:
        assert statuses == case.allowed[-1], f"I1: acknowledged, and {json.dumps(statuses)}"
    allowed = case.allowed + (case.allowed_with_error if case.has_failed else ())
    assert statuses in allowed, f"left {json.dumps(statuses)}"
    _check_others(case)
    case.look(statuses)
    if case.again is not None and statuses != case.goal:
        again = machine.run(case.again)
        assert not again["error"], f"repeated: {again['error']}"
        assert case.check() == case.goal, "repeated, and not there"


def _check_others(case: Case) -> None:
    """I1: what was acknowledged before is still what it was."""
    now = case.machine.rows()
    for name, row in case.before.items():
        if name == "other":
            assert now[name] == row, f"I1: '{name}' was changed"
        for one in row["conversations"]:
            kept = [entry["id"] for other in now.values() for entry in other["conversations"]]
            purged = any(other["termination_mode"] == "purge" for other in now.values())
            assert one["id"] in kept or purged or len(now) < len(case.before), "I1: a conversation was lost"


class Create(Case):
    """A new session."""

    verb = again = "create"
    allowed = ({"other": "stopped"}, {"other": "stopped", "one": "running"})
    goal = allowed[-1]


class CreateFirst(Create):
    """The first session of a root that has nothing yet."""

    allowed = ({}, {"one": "running"})
    goal = allowed[-1]

    def prepare(self) -> None:
        """There is nothing to keep."""

    def begin(self) -> None:
        self.machine.clear()
        self.before = {}


class CreateAnew(Case):
    """A name that has ended, started with a new conversation."""

    verb = again = "create-anew"
    allowed = ({"one": "stopped"}, {"one": "running"})
    goal = allowed[-1]

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("one")
        self.machine.save()


class CreateInDeadPane(CreateAnew):
    """The same where the pane of the old run is still there, dead: that is not what was started."""

    def begin(self) -> None:
        super().begin()
        self.machine.run("resume")
        self.machine.kill_agent("one")
        self.before = self.machine.rows()

    allowed = ({"one": "terminated"}, {"one": "running"})

    def look(self, statuses: dict[str, str]) -> None:
        if statuses["one"] == "terminated":
            assert self.machine.rows()["one"]["practice_session_id_own"] is not None, "I1: an id was erased"


class Resume(CreateAnew):
    """An ended session whose conversation goes on."""

    verb = again = "resume"

    def look(self, statuses: dict[str, str]) -> None:
        row = self.machine.rows()["one"]
        assert [one["id"] for one in row["conversations"]] == [
            one["id"] for one in self.before["one"]["conversations"]
        ]
        wanted = row["conversations"][-1]["id"] if statuses["one"] == "running" else None
        assert row["practice_session_id_own"] in (wanted, self.before["one"]["practice_session_id_own"])


class Running(Case):
    """Something that begins with a live session."""

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("other")
        self._stopped("one")
        self.machine.save()

    def begin(self) -> None:
        self.machine.restore()
        answer = self.machine.run("resume")
        assert not answer["error"], answer
        self.before = self.machine.rows()


class Send(Running):
    """Words to a running session: submitted once, held, or unconfirmed; never glued to others."""

    verb = "send"
    allowed = ({"other": "stopped", "one": "running"},)

    def begin(self) -> None:
        super().begin()
        with mam.open(str(self.machine.root)) as fleet:
            wait_for(fleet.sessions.get("one"), "idle")

    def look_after_loss(self, fleet: mam.Fleet) -> None:
        (state,) = [one["state"] for one in fleet.messages.inbox("one") if one["message_id"] == "m_00000001"]
        assert state == "submitted", f"I1: acknowledged, and {state}"

    def look(self, statuses: dict[str, str]) -> None:
        with mam.open(str(self.machine.root)) as fleet:
            found = {one["message_id"]: one["state"] for one in fleet.messages.inbox("one")}
            state = found.get("m_00000001", "never recorded")
            assert state in ("never recorded", "submitted", "unconfirmed", "held"), state
            send_and_wait(fleet, "one", "the next")
            turns = fleet.sessions.transcript("one")["turns"]
            heard = [turn["text"] for turn in turns if turn["role"] == "user"][1:]
        sent = heard.count("the one message")
        assert set(heard) <= {"the one message", "the next"}, f"glued: {heard}"
        assert sent == 1 if state == "submitted" else sent <= 1, f"{state}, and it was heard {sent} times"


class Stop(Running):
    """A running session is ended."""

    verb = again = "stop"
    allowed = ({"other": "stopped", "one": "running"}, {"other": "stopped", "one": "stopped"})
    goal = allowed[-1]

    def check_after(self, n: int) -> dict[str, str]:
        """Where not even the claim could be recorded, the next pass of the monitor finds the death."""
        with mam.open(str(self.machine.root)) as fleet:
            is_claimed = bool(fleet._access.context.registry.view().intents)
        if not self.is_unrecorded or is_claimed:
            return super().check_after(n)
        self.machine.run_next(NEXT_VERBS[n % len(NEXT_VERBS)], self.is_edited, is_after_loss=True)
        with mam.open(str(self.machine.root)) as fleet:
            self._record_deaths(fleet)
        statuses = self.check()
        # A commit whose flush failed is there all the same.
        assert statuses["one"] in ("stopped", "terminated"), f"not recorded: {json.dumps(statuses)}"
        return {**statuses, "one": "stopped"}


class Purge(Running):
    """A running session is ended and its conversation deleted: both or neither.

    Where the conversation cannot be deleted, the verb says so, and the session is stopped.
    """

    verb = again = "purge"
    allowed = ({"other": "stopped", "one": "running"}, {"other": "stopped", "one": "terminated"})
    allowed_with_error = ({"other": "stopped", "one": "stopped"},)
    goal = allowed[-1]

    def look(self, statuses: dict[str, str]) -> None:
        old = self.before["one"]
        conversation = old["conversations"][-1]["id"]
        path = Path(old["stores"]["XDG_DATA_HOME"]) / "mam-practice" / f"{conversation}.jsonl"
        assert path.exists() == (statuses["one"] != "terminated")
        if statuses["one"] == "terminated":
            assert conversation not in self.machine.former_file(), "the former file names what was purged"


class Rename(Running):
    """A running session and its tmux session get another name: both or neither."""

    verb = again = "rename"
    allowed = ({"other": "stopped", "one": "running"}, {"other": "stopped", "two": "running"})
    goal = allowed[-1]


class Fork(CreateAnew):
    """A second session from a copy of the conversation."""

    verb = again = "fork"
    allowed = ({"one": "stopped"}, {"one": "stopped", "two": "running"})
    goal = allowed[-1]


class Drill(CreateAnew):
    """A fork is run and removed: nothing of it is left, whenever the drill died."""

    verb = again = "drill"
    allowed = ({"one": "stopped"},)
    goal = allowed[-1]


class Archive(CreateAnew):
    """An ended session is put away."""

    needs_no_agent = True
    verb = again = "archive"
    allowed = ({"one": "stopped"}, {"one": "archived"})
    goal = allowed[-1]


class Forget(CreateAnew):
    """The row of an ended session is dropped."""

    needs_no_agent = True
    verb = again = "forget"
    allowed = ({"one": "stopped"}, {})
    goal = allowed[-1]

    def look(self, statuses: dict[str, str]) -> None:
        assert statuses or "name: one\n" not in self.machine.former_file(), "the former file has the row"


class Adopt(Case):
    """A pane that somebody else started gets a row and our mark: both or neither."""

    verb = "adopt"
    allowed = ({"other": "stopped"}, {"other": "stopped", "one": "running"})

    def begin(self) -> None:
        super().begin()
        self.machine.start_foreign("foreign")


class TakeIn(Case):
    """A person's edit is taken in by the next changing verb: a role, a key, a removal, and a comment."""

    needs_no_agent = True
    verb = again = "take-in"
    allowed = ({"other": "stopped"}, {"other": "archived"})
    goal = allowed[-1]

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("other")
        self._stopped("one")
        self.machine.save()

    def begin(self) -> None:
        self.machine.restore()
        path = self.machine.root / ".hermes" / "agent-sessions.yaml"
        text = path.read_text(encoding="utf-8")
        head, _, rest = text.partition("tmux_sessions:\n")
        other, _, _one = rest.partition("- id: ")[2].partition("- id: ")
        edited = other.replace("role: null", "role: tester").replace(
            "  version:", "  mine: [1, x]\n  version:"
        )
        path.write_text(
            f"{head}tmux_sessions:\n# of a person\n- id: {edited}# end of sessions\n", encoding="utf-8"
        )
        self.before = {}

    def is_edited(self) -> bool:
        return all(row["role"] != "tester" for row in self.machine.recorded().values())

    def look(self, statuses: dict[str, str]) -> None:
        row = self.machine.rows()["other"]
        assert (row["role"], row["mine"]) == ("tester", [1, "x"]), "an edit was lost"


class JobEvent(Case):
    """The end of a job is reported: recorded whole or not at all, and its files say what is recorded."""

    needs_no_agent = True
    verb = "job-event"
    allowed = ({"other": "stopped"},)

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("other")
        with mam.open(str(self.machine.root)) as fleet:
            record_job(fleet._access.context, fleet.caller, "1f00ab42", "the task")
        self.machine.save()

    def look(self, statuses: dict[str, str]) -> None:
        with mam.open(str(self.machine.root)) as fleet:
            if fleet.jobs.status("1f00ab42")["status"] == "pending":
                fleet.jobs.event("1f00ab42", "completed", detail="done")
            write_files(fleet._access.context, "1f00ab42")
            found = fleet.jobs.logs("1f00ab42")["events"]
            folder = Path(fleet._access.context.paths.jobs)
        # A second report of the end, by a process that could not know of the first one, is refused.
        assert [one["event"] for one in found if one["event"] != "dropped"] == ["registered", "completed"]
        logs = (
            folder / "1f00ab42.events.log",
            self.machine.root / "delegate_job_logs" / "1f00ab42" / "events.ndjson",
        )
        for log in logs:
            written = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
            assert written == found, f"{log.name} differs"
        record = json.loads((folder / "1f00ab42.json").read_text(encoding="utf-8"))
        assert record["status"] == "completed"


class JobSubmit(Case):
    """A job is submitted: whoever waits next brings it to its one end, and its task is given at most once."""

    verb = "job-submit"
    agent_reports = True
    allowed = ({"other": "stopped"}, {"other": "stopped", "one": "running"})

    def look_after_loss(self, fleet: mam.Fleet) -> None:
        assert len(fleet.jobs.list()) == 1, "I1: acknowledged, and there is no job"

    def look(self, statuses: dict[str, str]) -> None:
        with mam.open(str(self.machine.root)) as fleet:
            wait_for_jobs(fleet)
            found = fleet.jobs.list()
            assert len(found) <= 1
            for job in found:
                names = [one["event"] for one in fleet.jobs.logs(job["job_id"])["events"]]
                assert sum(name in ("completed", "error") for name in names) == 1, names
                unproven = (
                    {one["state"] for one in fleet.messages.inbox("one")} if "one" in statuses else set()
                )
                if self.has_failed and job["reason"] == "bootstrap":
                    # The submission has said that it failed; a session that it had started stays.
                    continue
                # Who died while typing may have typed it: it is not typed again, and time ends the job.
                assert (job["status"] == "completed") == ("one" in statuses) or (
                    job["reason"],
                    "unconfirmed" in unproven,
                ) == ("timeout:idle", True), (job["reason"], statuses, unproven)
            if "one" in statuses and found:
                # Nothing was said where nothing was recorded.
                turns: list[dict[str, str]] = []
                with suppress(NoTranscript):
                    turns = fleet.sessions.transcript("one")["turns"]
                heard = [turn["text"] for turn in turns if turn["role"] == "user"]
                assert sum("the one task" in text for text in heard) <= 1, heard
