"""How jobs and their events look to a person, and as one object per line to a program."""

from __future__ import annotations

from mam.core.job import EXIT_CODES, JobStatus
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

# Of a status, or of an event.
_STYLES = {
    JobStatus.PENDING: "blue",
    JobStatus.RUNNING: "cyan",
    JobStatus.CHECKING: "cyan",
    JobStatus.COMPLETED: "green",
    JobStatus.ERROR: "red",
    JobStatus.CANCELLED: "dim",
    "permission_required": "yellow bold",
    "dropped": "red",
    "timeout": "red",
}
_FIELDS = (
    "type",
    "agent",
    "agent_session",
    "workdir",
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
    """Return an entry of a log in one line."""
    name = clean(entry.get("event"))
    detail = clean(entry.get("detail"), 600)
    reason = (entry.get("data") or {}).get("reason")
    more = f"  ({clean(reason)})" if reason and clean(reason) not in detail else ""
    said = f"job={clean(entry.get('job_id'))} seq={clean(entry.get('seq'))} {paint(name, _STYLES.get(name))}"
    return f"{clean(entry.get('timestamp'))} {said} {'' if detail == '-' else detail}{more}".rstrip()


def tell(call: Invocation, entry: Document) -> None:
    """Print an entry when it is heard."""
    call.quiet()
    if call.as_json:
        write_json(entry, one_line=True)
    else:
        write_lines([line(entry, call.paint())], flush=True)


def ended(call: Invocation, done: list[Document]) -> int:
    """Print how jobs ended; return the exit code: the highest of all."""
    call.quiet()
    for one in done:
        if call.as_json:
            write_json({"job": one}, one_line=True)
        else:
            write_lines([summary(one, call.paint())], flush=True)
    return max((EXIT_CODES.get(one["status"], 1) for one in done), default=0)


def summary(job: Document, paint: Paint) -> str:
    """Return in one line how a job stands."""
    status = clean(job["status"])
    detail = clean(job.get("terminal_detail"), 600)
    said = f"{paint(clean(job['job_id']), 'bold')} {paint(status, _STYLES.get(status))}"
    return said if detail == "-" else f"{said}: {detail}"


def audit(job: Document) -> str:
    """Return where everything about a job is written down."""
    return clean(f"{job['logs_dir']}/{job['job_id']}", 4096)


def table(jobs: list[Document], paint: Paint) -> list[str]:
    """Return a line for each job."""
    if not jobs:
        return ["no jobs"]
    columns = (
        Column("JOB"),
        Column("STATUS"),
        Column("AGENT", least=6, rank=3, may_go=True),
        Column("SESSION", least=12, rank=2, may_go=True),
        Column("LAST EVENT", may_go=True),
        Column("PROMPT", least=12, rank=1, from_end=True),
    )
    rows = [
        [
            (clean(one["job_id"]), "bold"),
            (clean(one["status"]), _STYLES.get(one["status"])),
            (clean(one["agent"]), None),
            (clean(one["agent_session"]), None),
            (clean(one["last_event_at"]), "dim"),
            (clean(one["prompt"]), None),
        ]
        for one in jobs
    ]
    return render(columns, rows, paint)


def _said(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def whole(job: Document, paint: Paint) -> list[str]:
    """Return everything about one job, one field a line, and its prompt."""
    lines = [summary(job, paint)]
    for name in _FIELDS:
        if job.get(name) not in (None, "", []):
            lines.append(f"  {paint(f'{name:<19}', 'dim')} {clean(_said(job[name]), 600)}")
    prompt = for_screen(str(job.get("prompt") or "")).splitlines()
    return [*lines, "", *prompt] if prompt else lines
