"""Seeing to open jobs: what is due for each by the clock, by its agent's activity, or by its own word.

The resident does it when it is due, and whoever waits for a job where there is none. Everything is decided
anew under the write lock, so two who tend at once do nothing twice.
"""

from __future__ import annotations

import threading
import time

from mam.adapters.store.tables import jobs, messages
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.app.context import start_resident
from mam.app.job_runner.check import check
from mam.app.job_runner.finish import fail, finish
from mam.app.job_runner.review_loop import task_of
from mam.app.job_runner.submission import command
from mam.app.job_runner.turn import begin, give, note_given
from mam.app.jobs import clock_jump, session_events
from mam.app.jobs.write_files import show
from mam.app.messages.delivery import deliver_all
from mam.app.messages.send import send
from mam.app.observation.hook_intake import take_in
from mam.app.observation.ls import describe
from mam.app.sessions.reconcile import reconcile
from mam.core import job as rules
from mam.core import job_event as events
from mam.core.activity import IDLE, UNKNOWN
from mam.core.errors import MamError
from mam.core.message import MessageState
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    # Sessions as `ls` shows them, by id.
    Known = dict[str, Any]

_NET = 5.0
_LONG = 3600.0
_NET_OF_WAITER = 1.0


class JobTask:
    """Goes along with a resident, and with whoever waits; checks and later turns run beside it."""

    def __init__(self, context: Context, caller: Caller) -> None:
        """Nothing is looked at before the first tick."""
        self.context = context
        self.caller = caller
        self._due = 0.0
        self._threads: dict[str, threading.Thread] = {}
        self._complaints: dict[str, str] = {}

    def due(self) -> float:
        """Return when the next tick is wanted, on the monotonic clock."""
        return self._due

    def handles(self) -> Iterable[int]:
        """Return nothing: what concerns jobs is committed, and that wakes a resident."""
        return ()

    def is_needed(self) -> bool:
        """Tell whether a job is open, so that somebody has to stay awake."""
        return bool(session_events.open_of(self.context))

    def tick(self) -> str:
        """Do what is due. Never ends the watching."""
        none: list[Job] = []
        found = self.context.registry.peek(lambda draft: jobs.listed(draft, only_open=True), none)
        if not found:
            self._due = time.monotonic() + _LONG
            return ""
        if self.context.registry.peek(lambda draft: clock_jump.is_set(self.context, draft), False):
            self.context.registry.note(lambda draft: clock_jump.settle(self.context, draft))
            found = self.context.registry.peek(lambda draft: jobs.listed(draft, only_open=True), none)
        known = _look(self.context, found)
        for job in found:
            if job.status == rules.JobStatus.CHECKING:
                self._check(job.id)
                continue
            try:
                tend(self.context, self.caller, job, known)
            except MamError as error:
                self._complain(job.id, error)
        soon = [
            due
            for job in found
            if (due := _next(self.context, job, known.get(job.session_id or ""))) is not None
        ]
        self._due = time.monotonic() + min([_NET, *soon])
        return ""

    def _complain(self, job_id: str, error: MamError) -> None:
        """Say once what is wrong with a job; the others are seen to all the same."""
        if self._complaints.get(job_id) != error.message:
            self._complaints[job_id] = error.message
            self.context.warn(f"job {job_id} cannot be seen to: {error}")

    def _check(self, job_id: str) -> None:
        running = self._threads.get(job_id)
        if running is not None and running.is_alive():
            return
        thread = threading.Thread(
            target=self._check_apart, args=(self.context.for_thread(), job_id), daemon=True
        )
        self._threads[job_id] = thread
        thread.start()

    def _check_apart(self, context: Context, job_id: str) -> None:
        try:
            check(context, self.caller, job_id)
        except MamError as error:
            self._complain(job_id, error)
        finally:
            context.close()


class Watcher:
    """Sees to open jobs while somebody waits for one, as long as no resident does."""

    def __init__(self, context: Context, caller: Caller) -> None:
        """Take a context that is the waiter's own."""
        self.caller = caller
        self._care = JobTask(context, caller)
        self._lock = start_resident.lock(context)
        self._due = 0.0
        self._complaint = ""

    def due(self) -> float:
        """Return when the next tick is wanted, on the monotonic clock."""
        return self._due

    def _complain(self, error: MamError) -> None:
        if error.message != self._complaint:
            self._complaint = error.message
            self._care.context.warn(error.message)

    def tick(self) -> str:
        """Do what a resident would do, unless there is one."""
        if self._lock.holder() is None:
            try:
                deliver_all(self._care.context)
                reconcile(self._care.context, self.caller)
                self._care.tick()
            except MamError as error:
                # Whoever waits goes on waiting: the end of a job may be reported all the same.
                self._complain(error)
        self._due = time.monotonic() + _NET_OF_WAITER
        return ""


def tend(context: Context, caller: Caller, job: Job, known: Known) -> None:
    """Do what is due for one job that is worked on."""
    owner = Identity.from_json(job.data.get("owner"))
    if owner is not None:
        if not process.is_alive(owner):
            _take_over(context, caller, job)
        return
    if job.session_id and not _is_there(context, job, known):
        return
    if job.data.get("message_id") and job.data.get("prompted_at") is None:
        message = context.registry.peek(lambda draft: messages.find(draft, job.data["message_id"]), None)
        if message is None:
            # Nothing is sent by it twice: an id that is known is looked up.
            _tell_again(context, caller, job, known)
            return
        if message.state == MessageState.FAILED:
            fail(context, job.id, f"the task could not be given: {message.reason}", "undelivered", seen=job)
            return
        # Messages are kept only for a while: that it was given is noted here.
        if context.registry.peek(lambda draft: session_events.prompted_at(draft, job), None) is not None:
            context.registry.note(lambda draft: note_given(draft, job.id, job.attempt))
    one = known.get(job.session_id or "")
    what = context.registry.peek(lambda draft: _overdue(context, draft, job.id, one), None)
    if what in (rules.WALL, rules.QUIET):
        _time_out(context, job, what)
    elif what == rules.NUDGE:
        _nudge(context, caller, job)


def _look(context: Context, found: list[Job]) -> Known:
    """Return what the sessions of jobs are doing, and report what changed of it."""
    wanted = {job.session_id for job in found if job.session_id}
    if not wanted:
        return {}
    take_in(context)
    view, at = context.registry.view(), context.now()
    found_now = describe(context, view, lambda row: row.get("id") in wanted, thorough=True)
    known: Known = {one["id"]: one for one in found_now}
    for one in known.values():
        if is_running(one) and one["tmux_alive"]:
            _hear(context, one, at)
    return known


def _hear(context: Context, one: Any, at: float) -> None:
    """Report what a session was seen to do; `at` is before the look, so that no newer hook is overruled."""
    told: list[str | None] = []
    is_recorded = one["activity"] == IDLE and one["activity_source"] == "transcript"
    ended_at = at - one["activity_age_s"] if is_recorded else None

    def work(draft: Transaction) -> None:
        activity, waiting_for = one["activity"], one["waiting_for"]
        told.append(session_events.hear(context, draft, one, activity, waiting_for, at=at, ended_at=ended_at))

    def is_news(draft: Transaction) -> bool:
        job = jobs.find(draft, one.get("delegate_job_id") or "")
        return job is not None and (
            job.data.get("activity") != one["activity"]
            or session_events.has_unseen_turn(draft, job, ended_at)
        )

    if context.registry.peek(is_news, False):
        context.registry.note(work)
        for job_id in filter(None, told):
            show(context, job_id)


def _is_there(context: Context, job: Job, known: Known) -> bool:
    """Tell whether the job's session runs; one that was forgotten or has ended ends its job."""
    one = known.get(job.session_id or "")
    if one is not None and is_running(one):
        return True
    if one is None:
        fail(context, job.id, "its session was forgotten", "session gone", seen=job)
    else:
        code = one.get("exit_status")
        detail = f"the agent ended without a report (exit {'unknown' if code is None else code})"
        fail(context, job.id, detail, session_events.EXITED, seen=job, exit_status=code)
    return False


def _take_over(context: Context, caller: Caller, job: Job) -> None:
    """Go on where a submission was cut off: give the task to its session, or end a job that has none."""
    # Who is dead now may have handed it over since the job was read.
    current = context.registry.peek(lambda draft: jobs.find(draft, job.id), None)
    if current is None or current.data.get("owner") != job.data["owner"]:
        return
    rows = context.registry.view().rows
    row = next((one for one in rows if one.get("delegate_job_id") == job.id and is_running(one)), None)
    if row is None:
        fail(context, job.id, "the submission was cut off before an agent ran", "submission")
        return
    task = context.registry.peek(lambda draft: jobs.prompt_of(draft, job.id), "")
    if job.data.get("type") == rules.LOOP:
        changes = {"worker_session_id": row["id"]}
        context.registry.note(lambda draft: jobs.update(draft, job, data=changes))
    begin(context, caller, job.id, row, task)


def _tell_again(context: Context, caller: Caller, job: Job, known: Known) -> None:
    """Send a task that was never sent: whoever was to do it died before it was recorded."""
    task = context.registry.peek(lambda draft: task_of(job, jobs.prompt_of(draft, job.id)), "")
    give(context, caller, job.id, known[job.session_id or ""], job.attempt, task)


def _facts(draft: Transaction, job: Job, one: dict[str, Any] | None) -> dict[str, Any]:
    """Return what decides what is due; `one` is the job's session as it was seen just now."""
    data = job.data
    given = session_events.prompted_at(draft, job)
    activity = None if not job.session_id else one["activity"] if one else UNKNOWN
    since = data.get("activity_at") if data.get("activity") == activity else draft.now
    return {
        "began": data.get("began") or job.created_at,
        "timeout": data.get("timeout_sec") or 0.0,
        "idle_timeout": data.get("idle_timeout_sec") or 0.0,
        "last_news": max(job.last_event_at, given or 0.0),
        "activity": activity,
        "activity_at": since or draft.now,
        "may_nudge": given is not None and not data.get("nudged_at"),
        "has_worked": bool(data.get("worked_at")),
    }


def _overdue(context: Context, draft: Transaction, job_id: str, one: dict[str, Any] | None) -> str | None:
    job = jobs.find(draft, job_id)
    if job is None or job.status not in rules.OPEN or job.status == rules.JobStatus.CHECKING:
        return None
    return rules.overdue(now=context.now(), **_facts(draft, job, one))


def _next(context: Context, job: Job, one: dict[str, Any] | None) -> float | None:
    """Return in how many seconds something may be due for a job."""

    def read(draft: Transaction) -> float | None:
        current = jobs.find(draft, job.id)
        return rules.next_due(**_facts(draft, current, one)) if current is not None else None

    at = context.registry.peek(read, None)
    return None if at is None else max(0.1, at - context.now())


def _time_out(context: Context, job: Job, what: str) -> None:
    which = "timeout_sec" if what == rules.WALL else "idle_timeout_sec"
    detail = f"{what} after {job.data.get(which) or 0:g} s"
    finish(context, job.id, events.ERROR, detail, log=(events.TIMEOUT, detail), seen=job, reason=what)


def _nudge(context: Context, caller: Caller, job: Job) -> None:
    """Remind the agent once; that it was is recorded before a key is typed."""

    def work(draft: Transaction) -> bool:
        current = jobs.find(draft, job.id)
        if current is None or current.status not in rules.OPEN or current.data.get("nudged_at"):
            return False
        jobs.update(draft, current, data={"nudged_at": draft.now})
        return True

    if context.registry.note(work):
        words = rules.nudge(job.id, command(context, job.id, job.attempt))
        send(context, caller, job.session_id or "", words, message_id=f"m_{job.id}-{job.attempt}-nudge")
