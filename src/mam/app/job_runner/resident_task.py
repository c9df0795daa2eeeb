"""Advances open jobs: gives tasks, notices timeouts and dead agents, reminds agents, and starts checks.

The resident runs it as a task. Without a resident, whoever waits for a job runs it (`waiter_task.py`). Each
step decides again under the write lock, so that two processes do nothing twice.
"""

from __future__ import annotations

import threading
import time

from mam.adapters.store.files import exec_files
from mam.adapters.store.tables import jobs, messages, set_aside
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.app.context import setting_aside
from mam.app.job_runner.begin_attempt import begin_attempt, note_task_given, send_task
from mam.app.job_runner.check import check
from mam.app.job_runner.command_attempt import follow_command, runs_on
from mam.app.job_runner.finish import fail, finish
from mam.app.job_runner.review_loop import task_of
from mam.app.job_runner.task_message import report_command
from mam.app.jobs import clock_jump
from mam.app.jobs.command_end import end_of_session
from mam.app.jobs.find import open_job_ids
from mam.app.jobs.report_activity import has_unseen_turn, prompted_at, report_activity
from mam.app.jobs.session_events import EXITED
from mam.app.jobs.write_job_files import write_files
from mam.app.messages.send import send
from mam.app.observation.hook_intake import take_in
from mam.app.observation.ls import describe
from mam.app.sessions.stop import stop
from mam.core import job_event as events
from mam.core import job_rules as rules
from mam.core.activity import IDLE, UNKNOWN, WAITING
from mam.core.errors import MamError
from mam.core.message_rules import MessageState
from mam.core.session_row import EXEC, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    # Sessions by id, as `ls` describes them.
    Sessions = dict[str, Any]

_NET = 5.0
_LONG = 3600.0


class JobTask:
    """The resident task for jobs. Checks and the later turns of review loops run in threads of their own."""

    def __init__(self, context: Context, caller: Caller) -> None:
        """Prepare the task; the first tick reads the jobs."""
        self.context = context
        self.caller = caller
        self._due = 0.0
        self._threads: dict[str, threading.Thread] = {}
        self._stops: dict[str, threading.Thread] = {}
        self._warnings: dict[str, str] = {}
        self._aside: set[str] = set()

    def due(self) -> float:
        """Return when the next tick is due, on the monotonic clock."""
        return self._due

    def handles(self) -> Iterable[int]:
        """Return no handles: changes of jobs are commits, and a commit wakes the resident anyway."""
        return ()

    def is_needed(self) -> bool:
        """Tell whether mam can work on an open job: then the resident must keep running."""
        return bool(open_job_ids(self.context)) and bool(self._jobs_to_advance())

    def tick(self) -> str:
        """Do what is due for each open job; never end the resident.

        A job on which mam fails is set aside, and tried again once it has changed.
        """
        open_jobs = self._jobs_to_advance()
        if not open_jobs:
            self._stop_commands()
            self._due = time.monotonic() + _LONG
            return ""
        if self.context.registry.peek(
            lambda transaction: clock_jump.needs_adjusting(self.context, transaction), False
        ):
            self.context.registry.note(lambda transaction: clock_jump.adjust_times(self.context, transaction))
            open_jobs = self._jobs_to_advance()
        sessions = self._look(open_jobs)
        soon = [due for job in open_jobs if (due := self._advance(job, sessions)) is not None]
        self._stop_commands()
        self._due = time.monotonic() + min([_NET, *soon])
        return ""

    def _jobs_to_advance(self) -> list[Job]:
        """Return the open jobs, except those that stay set aside."""

        def read(transaction: Transaction) -> list[Job]:
            aside = {item.key: item for item in set_aside.listed(transaction, setting_aside.JOB)}
            self._aside = set(aside)
            open_jobs = jobs.listed(transaction, only_open=True)
            return [job for job in open_jobs if not setting_aside.is_left(aside.get(job.id), job.stamp)]

        none: list[Job] = []
        return self.context.registry.peek(read, none)

    def _advance(self, job: Job, sessions: Sessions) -> float | None:
        """Do what is due for one job; return in how many seconds something may be due again."""
        try:
            if job.flaw is not None:
                raise setting_aside.Flawed(job.flaw)
            if job.status == rules.JobStatus.CHECKING:
                self._check(job.id)
            else:
                advance_job(self.context, self.caller, job, sessions)
            due = _seconds_until_due(self.context, job, sessions.get(job.session_id or ""))
        except Exception as error:
            self._handle(self.context, job.id, error)
            return None
        if job.id in self._aside:
            setting_aside.take_up(self.context, setting_aside.JOB, job.id)
        return due

    def _handle(self, context: Context, job_id: str, error: Exception) -> None:
        """Set a job aside on which mam failed; after any other error it is tried again."""
        if setting_aside.is_of_item(error):
            _set_aside(context, job_id, error)
        else:
            self._warn_once(job_id, error, f"mam cannot advance job {job_id} now")

    def _look(self, open_jobs: list[Job]) -> Sessions:
        """Return the sessions of jobs with their activity, and report changed activity to the jobs."""
        sessions, at = _sessions_of(self.context, open_jobs)
        for session in sessions.values():
            if is_running(session) and session["tmux_alive"]:
                try:
                    _report_observed_activity(self.context, session, at)
                except Exception as error:
                    self._handle(self.context, session.get("delegate_job_id") or "", error)
        return sessions

    def join(self) -> None:
        """Wait until the commands of ended jobs have been stopped."""
        for thread in self._stops.values():
            thread.join()

    def _stop_commands(self) -> None:
        """Stop each command that runs although its job has ended: by a timeout, or by a cancel that died."""
        none: list[Row] = []
        self._stops = {key: thread for key, thread in self._stops.items() if thread.is_alive()}
        for row in self.context.registry.peek(
            lambda transaction: _commands_without_job(self.context, transaction), none
        ):
            if row["id"] not in self._stops:
                context = self.context.for_thread()
                thread = threading.Thread(target=self._stop_in_thread, args=(context, row), daemon=True)
                self._stops[row["id"]] = thread
                thread.start()

    def _stop_in_thread(self, context: Context, row: Row) -> None:
        try:
            stop(context, self.caller, row["id"], reason="its job has ended")
        except Exception as error:
            problem = f"mam cannot stop '{row['name']}', whose job has ended"
            self._warn_once(row["id"], error, problem)
        finally:
            context.close()

    def _warn_once(self, key: str, error: Exception, problem: str) -> None:
        """Warn of the problem of a job or a session once; other jobs are advanced regardless."""
        reason = setting_aside.reason_of(error)
        if self._warnings.get(key) != reason:
            self._warnings[key] = reason
            self.context.warn(f"{problem}: {error if isinstance(error, MamError) else reason}")

    def _check(self, job_id: str) -> None:
        running = self._threads.get(job_id)
        if running is not None and running.is_alive():
            return
        thread = threading.Thread(
            target=self._check_in_thread, args=(self.context.for_thread(), job_id), daemon=True
        )
        self._threads[job_id] = thread
        thread.start()

    def _check_in_thread(self, context: Context, job_id: str) -> None:
        try:
            check(context, self.caller, job_id)
        except Exception as error:
            self._handle(context, job_id, error)
        finally:
            context.close()


def advance_job(context: Context, caller: Caller, job: Job, sessions: Sessions) -> None:
    """Do what is due for one open job that is not being checked."""
    owner = Identity.from_json(job.data.get("owner"))
    if owner is not None:
        if not process.is_alive(owner):
            _take_over(context, caller, job)
        return
    if not _session_runs(context, job, sessions):
        return
    if job.data.get("message_id") and job.data.get("prompted_at") is None:
        message = context.registry.peek(
            lambda transaction: messages.find(transaction, job.data["message_id"]), None
        )
        if message is None:
            # This cannot send the task twice: `send` looks up a message id that exists already.
            _send_task_again(context, caller, job, sessions)
            return
        if message.state == MessageState.FAILED:
            fail(
                context,
                job.id,
                f"the task could not be given: {message.reason}",
                "undelivered",
                decided_on=job,
            )
            return
        # Messages are deleted after a while, so the job itself keeps when its task was given.
        if context.registry.peek(lambda transaction: prompted_at(transaction, job), None) is not None:
            context.registry.note(lambda transaction: note_task_given(transaction, job.id, job.attempt))
    session = sessions.get(job.session_id or "")
    due = context.registry.peek(lambda transaction: _overdue(context, transaction, job.id, session), None)
    if due in (rules.WALL, rules.QUIET):
        _time_out(context, job, due)
    elif due == rules.NUDGE:
        _nudge(context, caller, job)


def _set_aside(context: Context, job_id: str, error: Exception) -> None:
    """Set a job aside as it is now, and warn of it once."""
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    stamp = None if job is None else job.stamp
    problem = f"mam cannot work on job {job_id}"
    setting_aside.note(context, setting_aside.JOB, job_id, error, problem, stamp=stamp)


def _sessions_of(context: Context, open_jobs: list[Job]) -> tuple[Sessions, float]:
    """Return the sessions of jobs with their activity, and a time before their screens were read."""
    session_ids = {job.session_id for job in open_jobs if job.session_id}
    if not session_ids:
        return {}, context.now()
    take_in(context)
    view, at = context.registry.view(), context.now()
    listing = describe(context, view, lambda row: row.get("id") in session_ids, thorough=True)
    sessions: Sessions = {session["id"]: session for session in listing}
    if any(session["activity"] == WAITING for session in listing):
        # The hook that names what an agent asks for comes before the dialog that was just seen.
        take_in(context)
    return sessions, at


def _report_observed_activity(context: Context, session: Any, at: float) -> None:
    """Report a session's activity to its job.

    `at` is a time before the screen was read, so that the report does not overrule a newer hook.
    """
    changed: list[str | None] = []
    activity, waiting_for = session["activity"], session["waiting_for"]
    is_recorded = activity == IDLE and session["activity_source"] == "transcript"
    ended_at = at - session["activity_age_s"] if is_recorded else None

    def work(transaction: Transaction) -> None:
        changed.append(
            report_activity(context, transaction, session, activity, waiting_for, at=at, ended_at=ended_at)
        )

    def is_news(transaction: Transaction) -> bool:
        job = jobs.find(transaction, session.get("delegate_job_id") or "")
        return job is not None and (
            job.data.get("activity") != activity or has_unseen_turn(transaction, job, ended_at)
        )

    if context.registry.peek(is_news, False):
        context.registry.note(work)
        for job_id in filter(None, changed):
            write_files(context, job_id)


def _session_runs(context: Context, job: Job, sessions: Sessions) -> bool:
    """Tell whether the job's session runs; end the job if the session was forgotten or has ended.

    A job without a session is for a person.
    """
    session = sessions.get(job.session_id or "")
    if rules.runs_command(job.data):
        return follow_command(context, job, session)
    if not job.session_id:
        return True
    if session is not None and is_running(session):
        return True
    if session is None:
        fail(context, job.id, "the session of the job was forgotten", "session gone", decided_on=job)
    else:
        code = session.get("exit_status")
        detail = f"the agent ended without a report (exit {'unknown' if code is None else code})"
        fail(context, job.id, detail, EXITED, decided_on=job, exit_status=code)
    return False


def _take_over(context: Context, caller: Caller, job: Job) -> None:
    """Finish a submission whose process died: give the task to its session, or end a job without session."""
    # The process may have handed the job over between our read and its death.
    current = context.registry.peek(lambda transaction: jobs.find(transaction, job.id), None)
    if current is None or current.data.get("owner") != job.data["owner"]:
        return
    rows = context.registry.view().rows
    is_command = rules.runs_command(job.data)
    # A command may have ended since; an agent that has ended cannot be given the task.
    row = next(
        (
            candidate
            for candidate in rows
            if candidate.get("delegate_job_id") == job.id and (is_command or is_running(candidate))
        ),
        None,
    )
    if row is None:
        fail(context, job.id, "the submission was cut off before an agent ran", "submission")
        return
    task = context.registry.peek(lambda transaction: jobs.prompt_of(transaction, job.id), "")
    changes = {"worker_session_id": row["id"]} if job.data.get("type") == rules.LOOP else None
    task_to_send = None if is_command else task
    begin_attempt(context, caller, job.id, row, task_to_send, is_started=is_command, changes=changes)


def _send_task_again(context: Context, caller: Caller, job: Job, sessions: Sessions) -> None:
    """Send a task that was never sent, because the process died before it recorded the message."""
    task = context.registry.peek(lambda transaction: task_of(job, jobs.prompt_of(transaction, job.id)), "")
    send_task(context, caller, job.id, sessions[job.session_id or ""], job.attempt, task)


def _facts(
    context: Context, transaction: Transaction, job: Job, session: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the facts that decide what is due; `session` is the job's session as just observed."""
    data = job.data
    if rules.runs_command(data):
        return _facts_of_command(context, job)
    task_given_at = prompted_at(transaction, job)
    activity = None if not job.session_id else session["activity"] if session else UNKNOWN
    since = data.get("activity_at") if data.get("activity") == activity else transaction.now
    return {
        "began": data.get("began") or job.created_at,
        "timeout": data.get("timeout_sec") or 0.0,
        "idle_timeout": data.get("idle_timeout_sec") or 0.0,
        "last_news": max(job.last_event_at, task_given_at or 0.0),
        "activity": activity,
        "activity_at": since or transaction.now,
        "may_nudge": task_given_at is not None and not data.get("nudged_at"),
        "has_worked": bool(data.get("worked_at")),
    }


def _facts_of_command(context: Context, job: Job) -> dict[str, Any]:
    """Return the facts about a command: its output is its news, and nobody reminds it."""
    last_output_at = exec_files.last_output_at(context.paths.jobs, job.id, job.attempt) or 0.0
    return {
        "began": job.data.get("began") or job.created_at,
        "timeout": job.data.get("timeout_sec") or 0.0,
        "idle_timeout": job.data.get("idle_timeout_sec") or 0.0,
        "last_news": max(job.last_event_at, min(last_output_at, context.now())),
        "activity": None,
        "activity_at": job.last_event_at,
        "may_nudge": False,
        "has_worked": True,
    }


def _commands_without_job(context: Context, transaction: Transaction) -> list[Row]:
    """Return the sessions of commands that run although their job has ended.

    A runner lives a little longer than its command. If it has recorded the end, the command ended by itself.
    """
    unended_ids = jobs.unended_ids(transaction)
    return [
        row
        for row in transaction.rows()
        if row["agent"] == EXEC
        and row.get("delegate_job_id") not in unended_ids
        and runs_on(row)
        and end_of_session(context, transaction, row) is None
    ]


def _overdue(
    context: Context, transaction: Transaction, job_id: str, session: dict[str, Any] | None
) -> str | None:
    job = jobs.find(transaction, job_id)
    if job is None or job.status not in rules.OPEN or job.status == rules.JobStatus.CHECKING:
        return None
    return rules.overdue(now=context.now(), **_facts(context, transaction, job, session))


def _seconds_until_due(context: Context, job: Job, session: dict[str, Any] | None) -> float | None:
    """Return in how many seconds something may be due for a job."""

    def read(transaction: Transaction) -> float | None:
        current = jobs.find(transaction, job.id)
        return (
            rules.next_due(**_facts(context, transaction, current, session)) if current is not None else None
        )

    at = context.registry.peek(read, None)
    return None if at is None else max(0.1, at - context.now())


def _time_out(context: Context, job: Job, timeout: str) -> None:
    which = "timeout_sec" if timeout == rules.WALL else "idle_timeout_sec"
    detail = f"{timeout} after {job.data.get(which) or 0:g} s"
    finish(
        context, job.id, events.ERROR, detail, log=(events.TIMEOUT, detail), decided_on=job, reason=timeout
    )


def _nudge(context: Context, caller: Caller, job: Job) -> None:
    """Remind the agent once. The reminder is recorded before a key is typed, so that a crash repeats none."""

    def work(transaction: Transaction) -> bool:
        current = jobs.find(transaction, job.id)
        if current is None or current.status not in rules.OPEN or current.data.get("nudged_at"):
            return False
        jobs.update(transaction, current, data={"nudged_at": transaction.now})
        return True

    if context.registry.note(work):
        text = rules.nudge(job.id, report_command(context, job.id, job.attempt))
        send(context, caller, job.session_id or "", text, message_id=rules.reminder_id(job.id, job.attempt))
