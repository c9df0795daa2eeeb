"""Runs a review loop: worker and reviewer take turns until the reviewer accepts or no round is left."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.job_runner.begin_attempt import begin_attempt, create_session_from_record
from mam.app.job_runner.command_attempt import start_round
from mam.app.job_runner.finish import fail
from mam.core import job_rules as rules
from mam.core import names
from mam.core.errors import MamError
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def advance(context: Context, caller: Caller, job: Job) -> bool:
    """Begin the turn that follows from the last one; return True if the reviewer has accepted the work."""
    claim, number = job.data.get("claim") or "", job.data.get("round") or 1
    task = context.registry.peek(lambda transaction: jobs.prompt_of(transaction, job.id), "")
    if job.data.get("turn") != rules.REVIEWER:
        _begin_turn(context, caller, job, rules.REVIEWER, rules.review(task, claim, number), number)
        return False
    if rules.says_pass(claim):
        return True
    most = job.data.get("max_rounds") or rules.MOST_ROUNDS
    if number >= most:
        fail(context, job.id, f"not passed after {number} rounds: {claim}", "rounds")
        return False
    rework = rules.rework(task, claim, number + 1, reports=not job.data.get("command"))
    _begin_turn(context, caller, job, rules.WORKER, rework, number + 1)
    return False


def task_of(job: Job, prompt: str) -> str:
    """Return the task of the current turn."""
    claim, number = job.data.get("claim") or "", job.data.get("round") or 1
    if job.data.get("turn") == rules.REVIEWER:
        return rules.review(prompt, claim, number)
    return rules.rework(prompt, claim, number) if job.data.get("turn") == rules.WORKER else prompt


def _begin_turn(context: Context, caller: Caller, job: Job, turn: str, task: str, number: int) -> None:
    try:
        is_command = turn == rules.WORKER and bool(job.data.get("command"))
        row = start_round(context, caller, job, task) if is_command else _session(context, caller, job, turn)
        changes = {"turn": turn, "round": number, f"{turn}_session_id": row["id"]}
        begin_attempt(
            context,
            caller,
            job.id,
            row,
            None if is_command else task,
            is_first=False,
            is_started=is_command,
            changes=changes,
        )
    except MamError as error:
        fail(context, job.id, f"the {turn} could not begin round {number}: {error.message}", turn)


def _session(context: Context, caller: Caller, job: Job, turn: str) -> Row:
    """Return the session of a turn: the one of the earlier rounds if it still runs, or else a new one."""
    session_id = job.data.get(f"{turn}_session_id")
    row = context.registry.view().by_id(session_id)
    if row is not None and is_running(row):
        return row
    agent = job.data["reviewer"] if turn == rules.REVIEWER else job.data["agent"]
    requested_name = (
        (job.data.get("reviewer_session") or "").removeprefix("tmux:") if turn == rules.REVIEWER else ""
    )
    label = f"{job.id}-review" if turn == rules.REVIEWER else f"{job.id}-again"
    name = requested_name or names.default_name(job.data["workdir"], agent, label=label)
    return create_session_from_record(context, caller, job.id, agent, name, job.data)
