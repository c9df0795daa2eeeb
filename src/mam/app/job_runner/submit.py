"""Submit a job: the record first, then who watches it, then the agent, then its task."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.context import start_resident
from mam.app.job_runner.finish import fail
from mam.app.job_runner.submission import Submission, message_of
from mam.app.job_runner.turn import begin, create_for, start_session, take_session
from mam.app.jobs.create import new_id, register
from mam.app.jobs.find import document
from mam.core.errors import MamError, NotReady, Usage
from mam.core.job import HUMAN, LOOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.app.context.context import Context
    from mam.app.job_runner.submission import AllJobOptions
    from mam.app.sessions.create_options import AllOptions
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Document = dict[str, Any]


def preview(context: Context, prompt: str, **options: Unpack[AllJobOptions]) -> Document:
    """Return what a submission would tell its agent. Nothing is started, and nothing is written."""
    order, job_id = Submission(context, prompt, **options), new_id()
    session = order.facts(job_id)["agent_session"]
    said = message_of(context, job_id, 1, order.prompt)
    return {"job_id": job_id, "agent": order.agent, "agent_session": session, "instructions": said}


def submit(context: Context, caller: Caller, prompt: str, **options: Unpack[AllJobOptions]) -> Document:
    """Record a job and have an agent begin with it; return it as its record shows it.

    Whatever goes wrong after the record was made ends the job with an error, and is raised.
    """
    order, job_id = Submission(context, prompt, **options), new_id()
    facts = {**order.facts(job_id), "owner": process.me().as_json()}
    register(context, caller, job_id, order.prompt, **facts)
    try:
        start_resident.ensure(context)
        if order.type == HUMAN:
            context.registry.note(lambda draft: jobs.update(draft, _job(draft, job_id), data={"owner": None}))
        else:
            _delegate(context, caller, job_id, order, facts)
    except MamError as error:
        fail(context, job_id, *_failure(order, error))
        context.warn(f"job {job_id} has ended with an error: mam job logs {job_id}")
        raise
    return document(context, job_id)


def create_with_job(
    context: Context, caller: Caller, agent: str | None, task: str, **options: Unpack[AllOptions]
) -> Row:
    """Create a session as `create` does, and give it a job as its first message; return its row."""
    if options.pop("prompt", None) is not None or not options.get("wait", True):
        raise Usage(
            "a job is given as the first message, once the agent is ready", hint="leave the prompt, and wait"
        )
    name = options.get("name")
    known = next((one["agent"] for one in context.registry.view().rows if name and one["name"] == name), None)
    order, job_id = Submission(context, task, agent=agent or known or "claude"), new_id()
    facts = {**order.facts(job_id), "agent_session": None, "owner": process.me().as_json()}
    # A session that a person sits at is told when it starts.
    is_told = not context.kind(order.agent).takes_prompt
    register(context, caller, job_id, order.prompt, **facts)
    try:
        prompt = message_of(context, job_id, 1, order.prompt) if is_told else None
        options["prompt"] = prompt
        row = create_for(context, caller, job_id, agent, **options)
        where = {"workdir": row["workspace"], "permissions": row.get("permissions")}
        context.registry.note(lambda draft: jobs.update(draft, _job(draft, job_id), data=where))
        begin(context, caller, job_id, row, None if is_told else order.prompt)
    except MamError as error:
        fail(context, job_id, *_failure(order, error))
        raise
    return context.registry.view().find(row["id"])


def _delegate(
    context: Context, caller: Caller, job_id: str, order: Submission, facts: dict[str, Any]
) -> None:
    changes: dict[str, Any] = {}
    if order.existing:
        row = take_session(context, caller, job_id, order.existing)
        changes = {key: row.get(key) for key in ("agent", "permissions")}
        changes["agent_session"] = f"tmux:{row['name']}"
    else:
        row = start_session(
            context,
            caller,
            job_id,
            order.agent,
            order.name(job_id),
            facts,
            child_limit=order.child_limit,
        )
    if order.type == LOOP:
        changes["worker_session_id"] = row["id"]
    if changes:
        context.registry.note(lambda draft: jobs.update(draft, _job(draft, job_id), data=changes))
    begin(context, caller, job_id, row, order.prompt)


def _failure(order: Submission, error: MamError) -> tuple[str, str]:
    """Return what the job's last event says of a start that failed."""
    if order.existing:
        return error.message, "refused"
    row: Row | None = error.session if isinstance(error, NotReady) else None
    code = row.get("exit_status") if row else None
    return f"agent bootstrap failed (exit {error.exit_code if code is None else code}): {error.message}", (
        "bootstrap"
    )


def _job(draft: Any, job_id: str) -> jobs.Job:
    found = jobs.find(draft, job_id)
    assert found is not None
    return found
