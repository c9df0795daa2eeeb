"""One turn of a job: a session that works on it, and the message that gives it its task.

The message's id follows from job and attempt, so whoever repeats a turn that was cut off sends nothing twice.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs, messages
from mam.app.context import claims
from mam.app.context.authority import check_writer
from mam.app.job_runner.finish import fail
from mam.app.job_runner.submission import message_of
from mam.app.jobs import ledger
from mam.app.jobs.write_files import show
from mam.app.messages.send import send
from mam.app.sessions.create import create
from mam.core import job_event as events
from mam.core.errors import DialogOpen, IllegalTransition, NameTaken, NotReady, UntestedVersion
from mam.core.job import OPEN, JobStatus
from mam.core.message import MessageState
from mam.core.session_row import is_running, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create_options import AllOptions
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def start_session(
    context: Context,
    caller: Caller,
    job_id: str,
    agent: str,
    name: str,
    data: dict[str, Any],
    *,
    child_limit: bool = False,
) -> Row:
    """Start a session for a job, in the job's directory and with what it may do."""
    there = context.for_thread().replace(workspace=data["workdir"])
    try:
        return create_for(
            there,
            caller,
            job_id,
            agent,
            name=name,
            permissions=data.get("permissions") if context.kind(agent).takes_permissions else None,
            trust=data.get("trust") or False,
            args=(data.get("args") or ()) if agent == data["agent"] else (),
            mcp=data.get("mcp") or False,
            child_limit=child_limit,
        )
    finally:
        there.close()


def create_for(
    context: Context, caller: Caller, job_id: str, agent: str | None, **options: Unpack[AllOptions]
) -> Row:
    """Create a session for a job; one that waits at a dialog is as good, its task is held until then."""
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
        raise _taken(context, options.get("name") or "", error) from None


def take_session(context: Context, caller: Caller, job_id: str, target: str) -> Row:
    """Have a session that runs already work on a job, if the caller may write to it."""
    check_writer(context, caller, context.registry.view().find(target))

    def work(draft: Transaction) -> Row:
        row = draft.find(target)
        if not is_running(row):
            raise IllegalTransition(f"'{row['name']}' does not run", hint=f"mam resume {row['name']}")
        busy = jobs.find(draft, row.get("delegate_job_id") or "")
        if busy is not None and busy.id != job_id and busy.status in OPEN:
            raise IllegalTransition(
                f"'{row['name']}' works on job {busy.id}", hint=f"mam job wait {busy.id}, or cancel it"
            )
        return draft.put(merged(row, delegate_job_id=job_id))

    return claims.change(context, work)


def begin(context: Context, caller: Caller, job_id: str, row: Row, task: str | None, **changes: Any) -> None:
    """Give a session its task; from here on its job is this session's. None was told it when it started.

    A later turn is another attempt: what the session before it still says does not count any more.
    """
    is_first = not changes

    def bind(draft: Transaction) -> int:
        job = jobs.find(draft, job_id)
        assert job is not None
        attempt = job.attempt if is_first else job.attempt + 1
        fresh = {
            "message_id": _task_id(job_id, attempt),
            "owner": None,
            "checker": None,
            "prompted_at": draft.now if task is None else None,
            "agent_session": job.data.get("agent_session") or f"tmux:{row['name']}",
            "activity": None,
            "activity_at": None,
            "waiting_for": None,
            "worked_at": None,
            "turn_told": None,
            "nudged_at": None,
            "was_held": None,
        }
        status = job.status if is_first else JobStatus.RUNNING
        job = jobs.update(
            draft, job, session_id=row["id"], attempt=attempt, status=status, data={**fresh, **changes}
        )
        ledger.enter(draft, job, events.LAUNCHED, row["name"], agent=row["agent"], session=row["id"])
        return attempt

    attempt = context.registry.note(bind)
    show(context, job_id)
    if task is not None:
        give(context, caller, job_id, row, attempt, task)


def give(context: Context, caller: Caller, job_id: str, row: Row, attempt: int, task: str) -> None:
    """Send the task of an attempt, or find out what became of it; what cannot be sent ends the job."""
    words, message_id = message_of(context, job_id, attempt, task), _task_id(job_id, attempt)
    receipt = send(context, caller, row["id"], words, message_id=message_id)
    if receipt["state"] == MessageState.FAILED:
        fail(context, job_id, f"the task could not be given: {receipt['reason']}", "undelivered")
    elif receipt["state"] == MessageState.HELD:
        context.warn(f"the task of job {job_id} waits: {receipt['reason']}")
        context.registry.note(lambda draft: _note_held(draft, job_id, attempt))
    else:
        context.registry.note(lambda draft: note_given(draft, job_id, attempt))


def _task_id(job_id: str, attempt: int) -> str:
    return f"m_{job_id}" if attempt == 1 else f"m_{job_id}-{attempt}"


def _note_held(draft: Transaction, job_id: str, attempt: int) -> None:
    """Note that the task of an attempt was not given at once: nobody can tell later when it was."""
    job = jobs.find(draft, job_id)
    if job is not None and job.attempt == attempt:
        jobs.update(draft, job, data={"was_held": True})


def note_given(draft: Transaction, job_id: str, attempt: int) -> None:
    """Note when the task of an attempt was given."""
    job = jobs.find(draft, job_id)
    if job is not None and job.attempt == attempt and job.data.get("prompted_at") is None:
        message = messages.find(draft, job.data["message_id"])
        jobs.update(draft, job, data={"prompted_at": message.created_at if message else draft.now})


def _taken(context: Context, name: str, error: NameTaken) -> NameTaken:
    listing = context.tmux(context.server_name(None)).panes()
    watching = max((pane.attached for pane in listing.panes if pane.session_name == name), default=0)
    said = "1 client is" if watching == 1 else f"{watching} clients are"
    return NameTaken(f"{error.message}; {said} attached to it", hint=error.hint)
