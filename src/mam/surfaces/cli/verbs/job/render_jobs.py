"""Print jobs and their events: as text for people, and as one JSON object per line for programs."""

from __future__ import annotations

from mam.core.job_event import PERMISSION
from mam.core.job_rules import ENDED, EXIT_CODES, JobStatus
from mam.core.safe_text import for_screen
from mam.surfaces.cli.output import write_json, write_lines
from mam.surfaces.cli.render_sessions import clean
from mam.surfaces.cli.table import Column, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

# Status of a job, or name of an event -> style.
_STYLES = {
    JobStatus.PENDING: "blue",
    JobStatus.RUNNING: "cyan",
    JobStatus.CHECKING: "cyan",
    JobStatus.COMPLETED: "green",
    JobStatus.ERROR: "red",
    JobStatus.CANCELLED: "dim",
    JobStatus.PARKED: "yellow",
    "permission_required": "yellow bold",
    "dropped": "red",
    "timeout": "red",
}
_FIELDS = (
    "type",
    "agent",
    "agent_session",
    "workdir",
    "command",
    "created_at",
    "started_at",
    "last_event_at",
    "finished_at",
    "attempt",
    "round",
    "reviewer",
    "timeout_sec",
    "idle_timeout_sec",
    "expected_artifacts",
    "validate",
    "validation",
    "terminal_event",
    "terminal_detail",
    "reason",
)


def line(entry: Document, paint: Paint) -> str:
    """Return an event of a job as one line."""
    name = clean(entry.get("event"))
    detail = clean(entry.get("detail"), 600)
    data = entry.get("data")
    # The line of a log that the original system left, or anybody, may be anything.
    reason = data.get("reason") if isinstance(data, dict) else None
    suffix = f"  ({clean(reason)})" if reason and clean(reason) not in detail else ""
    event = f"job={clean(entry.get('job_id'))} seq={clean(entry.get('seq'))} {paint(name, _STYLES.get(name))}"
    return f"{clean(entry.get('timestamp'))} {event} {'' if detail == '-' else detail}{suffix}".rstrip()


def print_event(call: Invocation, entry: Document) -> None:
    """Print an event as soon as it arrives."""
    call.clear_progress()
    if call.as_json:
        write_json(entry, one_line=True)
    else:
        write_lines([line(entry, call.paint())], flush=True)


class Follower:
    """Prints the events of jobs of this machine, and says once for each job how to answer its agent."""

    def __init__(self, call: Invocation) -> None:
        """Nothing has been said yet."""
        self.call = call
        self._told: set[str] = set()

    def print_event(self, entry: Document) -> None:
        """Print an event as soon as it arrives."""
        print_event(self.call, entry)
        job_id = str(entry.get("job_id"))
        if self.call.as_json or entry.get("event") != PERMISSION or job_id in self._told:
            return
        from mam.surfaces.cli.verbs.answer import how_to_answer

        self._told.add(job_id)
        for name in _sessions_of(self.call, job_id, is_waiting=True):
            self.call.show_note(how_to_answer(name))


def _sessions_of(call: Invocation, job_id: str, *, is_waiting: bool = False) -> list[str]:
    """Return the names of the sessions of a job that run, or of those that wait for a person."""
    listing = call.fleet.sessions.ls(waiting=is_waiting)["sessions"]
    return [
        clean(session["name"])
        for session in listing
        if session.get("delegate_job_id") == job_id and session["status"] == "running"
    ]


def print_ends(call: Invocation, jobs: list[Document]) -> int:
    """Print how jobs ended; return the highest of their exit codes."""
    call.clear_progress()
    for job in jobs:
        if call.as_json:
            write_json({"job": job}, one_line=True)
            continue
        write_lines([summary(job, call.paint())], flush=True)
        if str(job.get("reason") or "").startswith("timeout:") and not job.get("command"):
            for name in _sessions_of(call, job["job_id"]):
                call.show_note(f"session {name} still runs: mam attach {name}, or mam stop {name}")
    return max((EXIT_CODES.get(job["status"], 1) for job in jobs), default=0)


def summary(job: Document, paint: Paint) -> str:
    """Return the status of a job as one line."""
    status = clean(job["status"])
    detail = clean(job.get("terminal_detail"), 600)
    status_line = f"{paint(clean(job['job_id']), 'bold')} {paint(status, _STYLES.get(status))}"
    if _is_set_aside(job):
        return f"{status_line}, set aside: {clean(job['set_aside'], 300)}"
    return status_line if detail == "-" else f"{status_line}: {detail}"


def audit(job: Document) -> str:
    """Return the path of the folder that holds the log of a job."""
    return clean(f"{job['logs_dir']}/{job['job_id']}", 4096)


def table(jobs: list[Document], paint: Paint) -> list[str]:
    """Return a table with a line for each job."""
    if not jobs:
        return ["no jobs"]
    columns = (
        Column("JOB"),
        Column("STATUS"),
        Column("AGENT", least=6, rank=3, may_go=True, worth=2),
        Column("SESSION", may_go=True, worth=4),
        Column("LAST EVENT", may_go=True, worth=1),
        Column("PROMPT", least=12, rank=1, from_end=True, worth=3),
    )
    rows = [
        [
            (clean(job["job_id"]), "bold"),
            (clean(job["status"]) + ("*" if _is_set_aside(job) else ""), _STYLES.get(job["status"])),
            (clean(job["agent"]), None),
            (clean(job["agent_session"]), None),
            (clean(job["last_event_at"]), "dim"),
            (clean(job["prompt"]), None),
        ]
        for job in jobs
    ]
    table_lines = render(columns, rows, paint)
    reasons = [
        f"* mam cannot work on {clean(job['job_id'])}: {clean(job['set_aside'], 300)}"
        for job in jobs
        if _is_set_aside(job)
    ]
    return [*table_lines, *reasons]


def _is_set_aside(job: Document) -> bool:
    return bool(job.get("set_aside")) and job["status"] not in ENDED


def _as_text(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def details(job: Document, paint: Paint) -> list[str]:
    """Return all fields of a job, one a line, and its prompt."""
    lines = [summary(job, paint)]
    for name in _FIELDS:
        if job.get(name) not in (None, "", []):
            lines.append(f"  {paint(f'{name:<19}', 'dim')} {clean(_as_text(job[name]), 600)}")
    prompt = for_screen(str(job.get("prompt") or "")).splitlines()
    return [*lines, "", *prompt] if prompt else lines
