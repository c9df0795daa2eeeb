"""A job: its states, how events change them, its timeouts, and the text that its agent gets. Pure."""

from __future__ import annotations

import re

from mam.core import job_event as events
from mam.core.activity import IDLE, WAITING
from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class JobStatus(StrEnum):
    """The state of a job."""

    PENDING = "pending"
    RUNNING = "running"
    CHECKING = "checking"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    # Kept, and not continued before a person releases it.
    PARKED = "parked"


OPEN = (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CHECKING)
ENDED = (JobStatus.COMPLETED, JobStatus.ERROR, JobStatus.CANCELLED)
# Nothing happens to a job in one of these states by itself.
AT_REST = (*ENDED, JobStatus.PARKED)
EXIT_CODES = {JobStatus.COMPLETED: 0, JobStatus.ERROR: 1, JobStatus.CANCELLED: 1, JobStatus.PARKED: 4}
ONCE, LOOP, HUMAN = TYPES = ("once", "loop", "human")
# A job is carried out by an agent, or by a command that runs once, on this machine.
AGENT, EXEC = RUNNERS = ("agent", "exec")
PLACES = ("here",)
WORKER, REVIEWER = "worker", "reviewer"
TIMEOUT_SECONDS, IDLE_SECONDS, MOST_ROUNDS = 3600.0, 120.0, 3
# An agent that ended its turn without a report gets a reminder after this time. The time is longer if mam has
# not observed the agent at work: then the agent may not have started yet.
GRACE_SECONDS, BLIND_GRACE_SECONDS = 3.0, 30.0
WALL, QUIET, NUDGE = "timeout:wall", "timeout:idle", "nudge"
_PASS = re.compile(r"\W*(?:result|verdict|review)?\W*PASS(?:ED)?\b", re.IGNORECASE)


def task_message_id(job_id: str, attempt: int) -> str:
    """Return the id of the message that gives the task of an attempt."""
    return f"m_{job_id}" if attempt == 1 else f"m_{job_id}-{attempt}"


def reminder_id(job_id: str, attempt: int) -> str:
    """Return the id of the message that reminds the agent of an attempt."""
    return f"m_{job_id}-{attempt}-nudge"


def is_message_of(job_id: str, message_id: str) -> bool:
    """Tell whether a message gave the task of a job, or reminded of it, by its id."""
    return bool(re.fullmatch(rf"m_{re.escape(job_id)}(?:-[0-9]+(?:-nudge)?)?", message_id))


def runs_command(data: Mapping[str, Any]) -> bool:
    """Tell whether the current attempt of a job is a command; the reviewer of a loop is an agent."""
    return bool(data.get("command")) and data.get("turn") != REVIEWER


def status_after(status: JobStatus, name: str, data: dict[str, Any]) -> JobStatus:
    """Return the status of a job after an entry of its log; the status of an ended job never changes."""
    if status in ENDED:
        return status
    if name == events.COMPLETED:
        return JobStatus.CANCELLED if data.get("stopped") else JobStatus.COMPLETED
    if name == events.ERROR:
        return JobStatus.CANCELLED if data.get("reason") == JobStatus.CANCELLED else JobStatus.ERROR
    if status == JobStatus.PARKED:
        return status
    if name == events.CHECKING:
        return JobStatus.CHECKING
    return JobStatus.RUNNING if name in events.ON_THE_WIRE and status == JobStatus.PENDING else status


def overdue(
    *,
    now: float,
    began: float,
    timeout: float,
    idle_timeout: float,
    last_news: float,
    activity: str | None,
    activity_at: float,
    may_nudge: bool,
    has_worked: bool,
) -> str | None:
    """Return what is due for an open job: WALL or QUIET for a timeout, NUDGE for a reminder, or None.

    `last_news` is the time of the newest event. `activity` is None for a job without an agent. An agent that
    is working, or whose activity is unknown, never counts as idle. A timeout of 0 means no timeout. With
    `may_nudge`, an idle agent that has not reported gets a reminder.
    """
    if timeout and now >= began + timeout:
        return WALL
    if activity not in (None, IDLE, WAITING):
        return None
    if idle_timeout and now >= last_news + idle_timeout:
        return QUIET
    grace = GRACE_SECONDS if has_worked else BLIND_GRACE_SECONDS
    return NUDGE if may_nudge and activity == IDLE and now >= activity_at + grace else None


def next_due(
    *,
    began: float,
    timeout: float,
    idle_timeout: float,
    last_news: float,
    activity: str | None,
    activity_at: float,
    may_nudge: bool,
    has_worked: bool,
) -> float | None:
    """Return the earliest time at which `overdue` returns something, if nothing changes until then."""
    times = [began + timeout] if timeout else []
    if activity in (None, IDLE, WAITING):
        times += [last_news + idle_timeout] if idle_timeout else []
        if activity == IDLE and may_nudge:
            times.append(activity_at + (GRACE_SECONDS if has_worked else BLIND_GRACE_SECONDS))
    return min(times, default=None)


def after_clock_jump(at: float, jump: float, now: float) -> float:
    """Return a recorded time, corrected for a clock that was set by `jump` seconds and now shows `now`.

    The time may have been recorded after the jump, and nothing tells which. So no time is moved into the
    future, and a time that is already past is not moved back.
    """
    return min(at + jump, now) if jump > 0 or at > now else at


def says_pass(detail: str) -> bool:
    """Tell whether a reviewer's result begins with PASS; anything else asks for another round."""
    return bool(_PASS.match(detail))


def instructions(job_id: str, command: str, *, summary: str = "<one-line summary>") -> str:
    """Return the text before an agent's task: its job id, and the exact commands that report on the job."""
    return f"""\
Your job_id is "{job_id}". It was made for THIS task: do not use a job_id from earlier work.
Report on the job with these commands, exactly, in your shell:

On start run:
  {command} --event started
When you need a permission or a tool asks for one:
  {command} --event permission_required --detail '<tool>:<what>'
On progress (optional):
  {command} --event progress --detail '<short status>'
On success, as the last thing you do:
  {command} --event completed --detail '{summary}'
On failure:
  {command} --event error --detail '<one-line reason>'

Your completed or error event ends the job; without one it is still open. Exit codes: 0 recorded,
1 refused (it says why), 2 not finished: it says whether it was recorded; repeat it only if it was not."""


def prompt(header: str, task: str) -> str:
    """Return the whole message for the agent. The task comes last and is not changed."""
    return f"{header}\n\nTask:\n{task}"


def nudge(job_id: str, command: str) -> str:
    """Return the only reminder that an agent gets after it ended its turn without a report."""
    return (
        f"Job {job_id} is still open: you ended your turn without reporting on it. If the work is done run "
        f"`{command} --event completed --detail '<one-line summary>'`, if it failed run "
        f"`{command} --event error --detail '<one-line reason>'`, otherwise go on with the task."
    )


def review(task: str, result: str, number: int) -> str:
    """Return a reviewer's task."""
    return f"""\
Review the work that another agent has just finished in this directory (round {number}). Change nothing.
If it does what was asked, report completed with a detail that begins with PASS.
If not, report completed with a detail that begins with FAIL and says in one line what has to be changed.

What was asked:
{task}

What the worker reported:
{result}"""


def rework(task: str, finding: str, number: int, *, reports: bool = True) -> str:
    """Return a worker's task after a review that did not pass; a command does not report."""
    then = ", then report again" if reports else ""
    return f"""\
A reviewer looked at your work and it did not pass. Do what the finding says{then}
(round {number}).

The finding:
{finding}

What was asked:
{task}"""
