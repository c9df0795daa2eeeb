"""Submits a job: records it, starts the resident, then starts the agent, then sends the task.

The order matters: whatever a crash leaves behind, the resident finds the record and finishes or ends the job.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.context import resident_start_and_lock
from mam.app.job_runner.begin_attempt import (
    begin_attempt,
    check_new_session,
    check_session,
    create_session_for_job,
    create_session_from_record,
    session_options,
    take_session,
)
from mam.app.job_runner.command_attempt import argv_of, check_caller, command_options, start_command
from mam.app.job_runner.failed_submission import end_failed
from mam.app.job_runner.script_copy import keep_copy
from mam.app.job_runner.submission import Submission
from mam.app.job_runner.task_message import message_of
from mam.app.jobs.find import document
from mam.app.jobs.new_job import new_id, record_job
from mam.core.command_template import takes_stdin
from mam.core.errors import MamError, NameTaken, NotReady, Usage
from mam.core.job_rules import EXEC, HUMAN, LOOP
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.app.context.context import Context
    from mam.app.job_runner.submission import AllJobOptions
    from mam.app.sessions.create_options import AllOptions
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Document = dict[str, Any]


def preview(context: Context, prompt: str | None, **options: Unpack[AllJobOptions]) -> Document:
    """Return the message that a submission would send, without starting or writing anything.

    For a command it is the prompt alone, beside the whole command and whether the prompt is its stdin.
    """
    submission, job_id = Submission(context, prompt, **options), new_id()
    facts = submission.facts(job_id)
    document = {"job_id": job_id, "agent": submission.agent, "agent_session": facts["agent_session"]}
    if submission.command is not None:
        argv = argv_of(context, job_id, 1, facts, submission.prompt)
        is_stdin = takes_stdin(submission.command)
        return {**document, "instructions": submission.prompt, "argv": argv, "stdin": is_stdin}
    return {**document, "instructions": message_of(context, job_id, 1, submission.prompt)}


def submit(
    context: Context, caller: Caller, prompt: str | None, **options: Unpack[AllJobOptions]
) -> Document:
    """Record a job and give it to an agent; return the job's record.

    What can be refused is refused before the job is recorded. An error after that ends the job with an error,
    and is raised.
    """
    submission, job_id = Submission(context, prompt, **options), new_id()
    if submission.command is not None:
        check_caller(context, caller)
    facts = {**submission.facts(job_id), "owner": process.me().as_json()}
    _check_sessions(context, caller, job_id, submission, facts)
    job = record_job(context, caller, job_id, submission.prompt, **facts)
    try:
        if submission.validate is not None and submission.script is not None:
            # The job is open already, so that no other submission forgets this copy.
            keep_copy(context, job_id, submission.validate, submission.script)
        resident_start_and_lock.ensure(context)
        if submission.type == HUMAN:
            context.registry.note(
                lambda transaction: jobs.update(transaction, _job(transaction, job_id), data={"owner": None})
            )
        elif submission.command is not None:
            _run_command(context, caller, job, submission)
        else:
            _delegate(context, caller, job_id, submission, facts)
    except MamError as error:
        failure, is_new = _failure(submission, error), not submission.existing
        end_failed(context, job_id, failure, is_new_session=is_new)
        raise
    return document(context, job_id)


def create_with_job(
    context: Context, caller: Caller, agent: str | None, task: str, **options: Unpack[AllOptions]
) -> Row:
    """Create a session as `create` does, and give it a job as its first message; return its row."""
    if options.pop("prompt", None) is not None or not options.get("wait", True):
        raise Usage(
            "the job is the first message of the session, sent once the agent is ready",
            hint="omit the prompt, and wait for the agent",
        )
    name = options.get("name")
    registered_agent = next(
        (row["agent"] for row in context.registry.view().rows if name and row["name"] == name), None
    )
    submission, job_id = Submission(context, task, agent=agent or registered_agent or "claude"), new_id()
    facts = {**submission.facts(job_id), "agent_session": None, "owner": process.me().as_json()}
    # mam types nothing to a kind without an input box (a person in a pane): it shows its task at the start.
    gets_task_at_start = not context.kind(submission.agent).takes_prompt
    check_new_session(context, caller, agent, **options)
    record_job(context, caller, job_id, submission.prompt, **facts)
    try:
        prompt = message_of(context, job_id, 1, submission.prompt) if gets_task_at_start else None
        options["prompt"] = prompt
        row = create_session_for_job(context, caller, job_id, agent, **options)
        facts_of_row = {"workdir": row["workspace"], "permissions": row.get("permissions")}
        task_to_send = None if gets_task_at_start else submission.prompt
        begin_attempt(context, caller, job_id, row, task_to_send, changes=facts_of_row)
    except MamError as error:
        end_failed(context, job_id, _failure(submission, error), is_new_session=True)
        raise
    return context.registry.view().find(row["id"])


def _check_sessions(
    context: Context, caller: Caller, job_id: str, submission: Submission, facts: dict[str, Any]
) -> None:
    """Refuse a session that cannot take the job, and a new session that could not be created."""
    in_workdir = context.replace(workspace=submission.workdir)
    limit = submission.child_limit
    if submission.type == HUMAN:
        return
    if submission.existing:
        check_session(context, caller, submission.existing)
    elif submission.command is not None:
        options = command_options(submission.name(job_id), facts, submission.command, child_limit=limit)
        check_new_session(in_workdir, caller, EXEC, **options)
    else:
        agent = submission.agent
        options = session_options(context, agent, submission.name(job_id), facts, child_limit=limit)
        try:
            check_new_session(in_workdir, caller, agent, **options)
        except NameTaken as error:
            raise _with_hint_of_session(context, submission.name(job_id), error) from None
    if submission.reviewer:
        options = session_options(context, submission.reviewer, submission.reviewer_name, facts)
        check_new_session(in_workdir, caller, submission.reviewer, **options)


def _with_hint_of_session(context: Context, name: str, error: NameTaken) -> NameTaken:
    """Say that a running session can get the job as well."""
    is_registered = any(row["name"] == name and is_running(row) for row in context.registry.view().rows)
    if not is_registered:
        return error
    return NameTaken(error.message, hint=f"mam job submit --session {name}, or choose another name")


def _delegate(
    context: Context, caller: Caller, job_id: str, submission: Submission, facts: dict[str, Any]
) -> None:
    changes: dict[str, Any] = {}
    if submission.existing:
        row = take_session(context, caller, job_id, submission.existing)
        changes = {key: row.get(key) for key in ("agent", "permissions")}
        changes["agent_session"] = f"tmux:{row['name']}"
    else:
        row = create_session_from_record(
            context,
            caller,
            job_id,
            submission.agent,
            submission.name(job_id),
            facts,
            child_limit=submission.child_limit,
        )
    if submission.type == LOOP:
        changes["worker_session_id"] = row["id"]
    begin_attempt(context, caller, job_id, row, submission.prompt, changes=changes)


def _run_command(context: Context, caller: Caller, job: jobs.Job, submission: Submission) -> None:
    row = start_command(
        context,
        caller,
        job.id,
        submission.name(job.id),
        job.data,
        submission.prompt,
        child_limit=submission.child_limit,
    )
    changes = {"worker_session_id": row["id"]} if submission.type == LOOP else None
    begin_attempt(context, caller, job.id, row, None, is_started=True, changes=changes)


def _failure(submission: Submission, error: MamError) -> tuple[str, str]:
    """Return detail and reason of the event that ends a job whose start failed."""
    if submission.existing:
        return error.message, "refused"
    row: Row | None = error.session if isinstance(error, NotReady) else None
    code = row.get("exit_status") if row else None
    return f"agent bootstrap failed (exit {error.exit_code if code is None else code}): {error.message}", (
        "bootstrap"
    )


def _job(transaction: Any, job_id: str) -> jobs.Job:
    job = jobs.find(transaction, job_id)
    assert job is not None
    return job
