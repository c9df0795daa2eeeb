"""A job of the type loop: worker, reviewer, worker, until the reviewer passes it or the rounds are spent."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.job_runner.finish import fail
from mam.app.job_runner.turn import begin, start_session
from mam.core import job as rules
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
    """Go on with what the last turn came to; True if the reviewer has passed the work."""
    said, number = job.data.get("claim") or "", job.data.get("round") or 1
    task = context.registry.peek(lambda draft: jobs.prompt_of(draft, job.id), "")
    if job.data.get("turn") != rules.REVIEWER:
        _next(context, caller, job, rules.REVIEWER, rules.review(task, said, number), number)
        return False
    if rules.says_pass(said):
        return True
    most = job.data.get("max_rounds") or rules.MOST_ROUNDS
    if number >= most:
        fail(context, job.id, f"not passed after {number} rounds: {said}", "rounds")
        return False
    _next(context, caller, job, rules.WORKER, rules.rework(task, said, number + 1), number + 1)
    return False


def task_of(job: Job, prompt: str) -> str:
    """Return the task of the turn that is under way, as it was given or is still to be."""
    said, number = job.data.get("claim") or "", job.data.get("round") or 1
    if job.data.get("turn") == rules.REVIEWER:
        return rules.review(prompt, said, number)
    return rules.rework(prompt, said, number) if job.data.get("turn") == rules.WORKER else prompt


def _next(context: Context, caller: Caller, job: Job, turn: str, task: str, number: int) -> None:
    try:
        row = _session(context, caller, job, turn)
        begin(
            context, caller, job.id, row, task, turn=turn, round=number, **{f"{turn}_session_id": row["id"]}
        )
    except MamError as error:
        fail(context, job.id, f"the {turn} could not begin round {number}: {error.message}", turn)


def _session(context: Context, caller: Caller, job: Job, turn: str) -> Row:
    """Return the session of a turn: the one that had it before, or for a first review a new one."""
    known = job.data.get(f"{turn}_session_id")
    row = context.registry.view().by_id(known)
    if row is not None and is_running(row):
        return row
    agent = job.data["reviewer"] if turn == rules.REVIEWER else job.data["agent"]
    asked = (job.data.get("reviewer_session") or "").removeprefix("tmux:") if turn == rules.REVIEWER else ""
    label = f"{job.id}-review" if turn == rules.REVIEWER else f"{job.id}-again"
    name = asked or names.default_name(job.data["workdir"], agent, label=label)
    return start_session(context, caller, job.id, agent, name, job.data)
