"""The tools for jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mam.surfaces.mcp.result_types import Job, Reported
from mam.surfaces.mcp.tool import CHANGE, READ, ToolCall, make
from mam.surfaces.mcp.tools.agents import Permissions, requested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.api.jobs import JobOptions

JobId = Annotated[str, Field(description="8 of 0-9 and a-f; empty: your own job", max_length=40)]


def submit_job(
    call: ToolCall,
    *,
    prompt: Annotated[str, Field(description="the whole task, and how it is judged", min_length=1)],
    cli: Annotated[str, Field(description="claude, codex, gemini, opencode, …, practice")] = "claude",
    agent_id: Annotated[str, Field(description="an agent that runs already, instead of a new one")] = "",
    cwd: Annotated[str, Field(description="its directory; yours if empty")] = "",
    expect: Annotated[list[str] | None, Field(description="files that must be there at the end")] = None,
    permissions: Permissions = "usual",
    mcp: Annotated[bool, Field(description="give it these tools, too")] = False,
    timeout_s: Annotated[int, Field(description="after which it is an error", ge=1, le=86_400)] = 3600,
) -> Job:
    """Delegate a job: it is recorded, an agent is started for it and told, and it goes on by itself. wait_for
    with its job_id waits for the end."""
    fleet = call.fleet.in_directory(cwd) if cwd else call.fleet
    options: JobOptions = {"agent": cli, "expect": expect or [], "timeout": float(timeout_s), "mcp": mcp}
    if agent_id:
        options["session"] = fleet.agents.authorize("message", agent_id)["id"]
    else:
        usual = fleet.settings.job_permissions
        options["permissions"] = fleet.agents.authorize_child(cli, requested(permissions), usual)
    return _job_result(fleet.jobs.submit(prompt, **options))


def job_status(call: ToolCall, job_id: JobId = "") -> Job:
    """Return a job: pending, running, checking, completed, error or cancelled, with its record."""
    return _job_result(call.fleet.jobs.status(job_id or None))


def job_event(
    call: ToolCall,
    event: Annotated[
        Literal["started", "permission_required", "progress", "completed", "error"],
        Field(description="what happened"),
    ],
    job_id: JobId = "",
    detail: Annotated[str, Field(description="one line about it", max_length=500)] = "",
) -> Reported:
    """Report on your own job; completed or error ends it."""
    return call.fleet.jobs.event(job_id or None, event, detail=detail)  # type: ignore[return-value]


def _job_result(job: dict[str, Any]) -> Job:
    return {
        "job_id": job["job_id"],
        "status": job["status"],
        "agent_session": job.get("agent_session"),
        "job": job,
    }


TOOLS = [
    make(submit_job, CHANGE, open_world=True),
    make(job_status, READ),
    make(job_event, CHANGE, open_world=True),
]
