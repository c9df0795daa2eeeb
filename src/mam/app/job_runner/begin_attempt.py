"""Begins one attempt of a job: gets a session for it, and sends the session its task.

The id of the message is derived from job and attempt, so that repeating an interrupted attempt sends
nothing twice.
"""

from __future__ import annotations

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs, messages
from mam.app.context import claims
from mam.app.context.authority import check_sender
from mam.app.job_runner.finish import fail
from mam.app.job_runner.task_message import message_of
from mam.app.job_runner.tellable_kind import check_tellable
from mam.app.jobs import ledger_writer
from mam.app.jobs.write_job_files import write_files
from mam.app.messages.send import send
from mam.app.sessions.create import check_create, create
from mam.core import job_event as events
from mam.core.errors import DialogOpen, IllegalTransition, NameTaken, NotReady, UntestedVersion
from mam.core.job_rules import OPEN, JobStatus, task_message_id
from mam.core.message_rules import MessageState
from mam.core.session_row import is_running, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Unpack

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create_options import AllOptions
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def create_session_from_record(
    context: Context,
    caller: Caller,
    job_id: str,
    agent: str,
    name: str,
    data: dict[str, Any],
    *,
    child_limit: bool = False,
) -> Row:
    """Create a session for a job, with the directory, permissions and arguments of the job's record."""
    options = session_options(context, agent, name, data, child_limit=child_limit)
    return create_session_for_job(
        context.replace(workspace=data["workdir"]), caller, job_id, agent, **options
    )


def session_options(
    context: Context, agent: str, name: str | None, data: Mapping[str, Any], *, child_limit: bool = False
) -> AllOptions:
    """Return the options of `create` for the session of a job's record."""
    return {
        "name": name,
        "permissions": data.get("permissions") if context.kind(agent).takes_permissions else None,
        "trust": data.get("trust") or False,
        "args": (data.get("args") or ()) if agent == data["agent"] else (),
        "mcp": data.get("mcp") or False,
        "child_limit": child_limit,
    }


def check_new_session(
    context: Context, caller: Caller, agent: str | None, **options: Unpack[AllOptions]
) -> None:
    """Raise what `create_session_for_job` would raise before it changes anything."""
    try:
        check_create(context, caller, agent, **options)
    except NameTaken as error:
        raise _name_taken(context, options.get("name") or "", error) from None


def create_session_for_job(
    context: Context, caller: Caller, job_id: str, agent: str | None, **options: Unpack[AllOptions]
) -> Row:
    """Create a session for a job.

    A session that waits at a dialog counts as created: its task is held until the dialog is answered.
    """
    try:
        options["job"] = job_id
        return create(context, caller, agent, **options)
    except (DialogOpen, NotReady, UntestedVersion) as error:
        row: Row | None = error.session
        if row is None or not is_running(row):
            raise
        context.warn(error.message)
        return row
    except NameTaken as error:
        raise _name_taken(context, options.get("name") or "", error) from None


def take_session(context: Context, caller: Caller, job_id: str, target: str) -> Row:
    """Assign a job to a running session, if the caller may message it."""
    check_session(context, caller, target)

    def work(transaction: Transaction) -> Row:
        row = transaction.find(target)
        _refuse_busy(transaction, row, job_id)
        return transaction.put(merged(row, delegate_job_id=job_id))

    return claims.change(context, work)


def check_session(context: Context, caller: Caller, target: str) -> None:
    """Raise what `take_session` would raise, without changing anything."""
    session = context.registry.view().find(target)
    check_sender(context, caller, session)
    check_tellable(context, session["agent"])
    context.registry.peek(lambda transaction: _refuse_busy(transaction, session, None), None)


def _refuse_busy(transaction: Transaction, row: Row, job_id: str | None) -> None:
    """Refuse a session that does not run, or that works on another job."""
    if not is_running(row):
        raise IllegalTransition(f"'{row['name']}' does not run", hint=f"mam resume {row['name']}")
    other_job = jobs.find(transaction, row.get("delegate_job_id") or "")
    if other_job is not None and other_job.id != job_id and other_job.status in OPEN:
        raise IllegalTransition(
            f"'{row['name']}' works on job {other_job.id}",
            hint=f"mam job wait {other_job.id}, or cancel it",
        )


def begin_attempt(
    context: Context,
    caller: Caller,
    job_id: str,
    row: Row,
    task: str | None,
    *,
    is_first: bool = True,
    is_started: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Bind a job to a session and send the task; a task of None was already given at the start.

    From now on the resident, or whoever waits, follows the job. A later attempt has a number of its own, so
    that reports of the previous attempt's session are refused. `is_started` logs the start of a command.
    `changes` are further fields of the record.
    """

    def bind(transaction: Transaction) -> int:
        job = jobs.find(transaction, job_id)
        assert job is not None
        attempt = job.attempt if is_first else job.attempt + 1
        reset = {
            "message_id": task_message_id(job_id, attempt),
            "owner": None,
            "checker": None,
            "prompted_at": transaction.now if task is None else None,
            "agent_session": job.data.get("agent_session") or f"tmux:{row['name']}",
            "activity": None,
            "activity_at": None,
            "waiting_for": None,
            "asks": None,
            "worked_at": None,
            "turn_told": None,
            "nudged_at": None,
            "was_held": None,
        }
        status = job.status if is_first else JobStatus.RUNNING
        job = jobs.update(
            transaction,
            job,
            session_id=row["id"],
            attempt=attempt,
            status=status,
            data={**reset, **(changes or {})},
        )
        job = ledger_writer.enter(
            transaction, job, events.LAUNCHED, row["name"], agent=row["agent"], session=row["id"]
        )
        if is_started:
            token = job_files.signing_token(context.paths.jobs, job_id)
            ledger_writer.emit(transaction, job, events.STARTED, token, data={"by": "mam"})
        return attempt

    attempt = context.registry.note(bind)
    write_files(context, job_id)
    if task is not None:
        send_task(context, caller, job_id, row, attempt, task)


def send_task(context: Context, caller: Caller, job_id: str, row: Row, attempt: int, task: str) -> None:
    """Send the task of an attempt, or look up its receipt; end the job if the task cannot be sent."""
    text, message_id = message_of(context, job_id, attempt, task), task_message_id(job_id, attempt)
    receipt = send(context, caller, row["id"], text, message_id=message_id)
    if receipt["state"] == MessageState.FAILED:
        fail(context, job_id, f"the task could not be given: {receipt['reason']}", "undelivered")
    elif receipt["state"] == MessageState.HELD:
        context.warn(f"the task of job {job_id} is held: {receipt['reason']}")
        context.registry.note(lambda transaction: _note_held(transaction, job_id, attempt))
    else:
        context.registry.note(lambda transaction: note_task_given(transaction, job_id, attempt))


def _note_held(transaction: Transaction, job_id: str, attempt: int) -> None:
    """Record that the task of an attempt was held: later, mam does not know when it was given."""
    job = jobs.find(transaction, job_id)
    if job is not None and job.attempt == attempt:
        jobs.update(transaction, job, data={"was_held": True})


def note_task_given(transaction: Transaction, job_id: str, attempt: int) -> None:
    """Record when the task of an attempt was given."""
    job = jobs.find(transaction, job_id)
    if job is not None and job.attempt == attempt and job.data.get("prompted_at") is None:
        message = messages.find(transaction, job.data["message_id"])
        jobs.update(
            transaction, job, data={"prompted_at": message.created_at if message else transaction.now}
        )


def _name_taken(context: Context, name: str, error: NameTaken) -> NameTaken:
    listing = context.tmux(context.server_name(None)).panes()
    attached = max((pane.attached for pane in listing.panes if pane.session_name == name), default=0)
    clients = "1 client is" if attached == 1 else f"{attached} clients are"
    return NameTaken(f"{error.message}; {clients} attached to it", hint=error.hint)
