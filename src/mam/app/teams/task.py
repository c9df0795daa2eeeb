"""Tasks of roles: add, list, claim and finish. If several claim one task, exactly one gets it."""

from __future__ import annotations

from mam.adapters.store.tables import tasks, teams
from mam.app.context.caller import calling_row
from mam.app.teams import team_page
from mam.app.teams.team_window import find_team
from mam.core import task_format as rules
from mam.core.errors import Conflict, NotAllowed, TaskNotFound, Usage
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.tasks import Task
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def add(context: Context, caller: Caller, text: str, *, role: str, team: str | None = None) -> dict[str, Any]:
    """Add a task for a role, in one team or for any member with that role; return `{task}`."""
    task_text, task_role, by = rules.parse_text(text), rules.parse_role(role), caller.name
    team_id = find_team(context, caller, team).id if team is not None else None

    def work(transaction: Transaction) -> dict[str, Any]:
        task = tasks.add(transaction, role=task_role, text=task_text, by=by, team_id=team_id)
        transaction.log(by, "task add", None, task=rules.shown(task.seq), role=task_role)
        return team_page.describe_task(transaction, task)

    document = context.registry.note(work)
    team_page.write(context)
    no_names: list[str] = []
    for name in context.registry.peek(lambda transaction: _idle(transaction, task_role, team_id), no_names):
        command = f"mam send {name} 'there is a task for you: run mam task claim'"
        context.warn(f"'{name}' is idle and was not told of {document['id']}: {command}")
    return {"task": document}


def _idle(transaction: Transaction, role: str, team_id: str | None) -> list[str]:
    """Return the names of the running members of a role that have no task."""
    return [
        row["name"]
        for team in teams.listed(transaction)
        for member in teams.members(transaction, team.id)
        if team_id in (None, team.id) and member.role == role and teams.is_open(member)
        if (row := transaction.get(member.session_id)) is not None
        if is_running(row) and not tasks.claimed(transaction, row["id"])
    ]


def warn_if_untold(context: Context, caller: Caller, row: Row | None, task: dict[str, Any]) -> None:
    """Say how a session learns of its task, if somebody else claimed the task for it."""
    if row is not None and caller.session_id != row["id"]:
        command = f"mam send {row['name']} 'your task is {task['id']}; mam task list shows it'"
        context.warn(f"'{row['name']}' was not told of {task['id']}: {command}")


def list_tasks(context: Context, *, role: str | None = None, status: str | None = None) -> dict[str, Any]:
    """Return `{tasks}`, oldest first. Reads only."""
    if status is not None and status not in rules.STATUSES:
        raise Usage(f"the status of a task must be one of {', '.join(rules.STATUSES)}")
    task_role = rules.parse_role(role) if role else None

    def read(transaction: Transaction) -> list[dict[str, Any]]:
        listed_tasks = tasks.listed(transaction, role=task_role, status=status)
        return [team_page.describe_task(transaction, task) for task in listed_tasks]

    context.warn_of_root()
    no_tasks: list[dict[str, Any]] = []
    return {"tasks": context.registry.peek(read, no_tasks)}


def claim(
    context: Context,
    caller: Caller,
    task_id: str | None = None,
    *,
    role: str | None = None,
    session: str | None = None,
) -> dict[str, Any]:
    """Claim a task, or the oldest task that waits for a role; return `{task, changed}`.

    The claimant is the caller, or `session`. Raise TaskNotFound if no task waits, Conflict if another has it.
    """
    row = context.registry.view().find(session) if session else calling_row(context, caller)
    by = caller.name
    claimant = row["id"] if row else by
    number = rules.parse(task_id) if task_id else None
    task_role = rules.parse_role(role or (row.get("role") if row else None)) if number is None else None

    def work(transaction: Transaction) -> tuple[dict[str, Any], bool]:
        team_id = team_of(transaction, claimant)
        if number is None:
            task = tasks.oldest(transaction, task_role or "", team_id)
            if task is None:
                raise TaskNotFound(f"no task waits for the role '{task_role}'", hint="mam task list")
        else:
            task = _get_task(transaction, number)
            if task.status == rules.CLAIMED and task.claimed_by == claimant:
                return team_page.describe_task(transaction, task), False
            _check_free(transaction, task)
        claimed_task = assign(transaction, task, claimant, row, by=by)
        return team_page.describe_task(transaction, claimed_task), True

    document, changed = context.registry.note(work)
    team_page.write(context)
    if changed:
        warn_if_untold(context, caller, row, document)
    return {"task": document, "changed": changed}


def assign(transaction: Transaction, task: Task, claimant: str, row: Row | None, *, by: str) -> Task:
    """Assign a free task, in the transaction that found it free."""
    claimed_task = tasks.claim(
        transaction, task.seq, claimant, (row.get("pane") or {}).get("id") if row else None
    )
    transaction.log(by, "task claim", row, task=rules.shown(task.seq))
    return claimed_task


def finish(context: Context, caller: Caller, task_id: str, *, result: str | None = None) -> dict[str, Any]:
    """Record that a task is done; return `{task, changed}`.

    Only its claimant, the claimant's parent, its creator, or a person may do this.
    """
    number, caller_name = rules.parse(task_id), caller.name

    def work(transaction: Transaction) -> tuple[dict[str, Any], bool]:
        task = _get_task(transaction, number)
        if task.status == rules.DONE:
            return team_page.describe_task(transaction, task), False
        _check_may_finish(transaction, task, caller_name)
        finished_task = tasks.finish(transaction, number, rules.parse_result(result), None)
        transaction.log(caller_name, "task done", None, finished_task.result, task=rules.shown(number))
        return team_page.describe_task(transaction, finished_task), True

    document, changed = context.registry.note(work)
    team_page.write(context)
    return {"task": document, "changed": changed}


def team_of(transaction: Transaction, claimant: str) -> str | None:
    """Return the id of the team that a session is a member of now."""
    member = teams.member(transaction, claimant)
    return member.team_id if member and teams.is_open(member) else None


def _get_task(transaction: Transaction, number: int) -> Task:
    task = tasks.find(transaction, number)
    if task is None:
        raise TaskNotFound(f"there is no {rules.shown(number)}", hint="mam task list")
    return task


def _check_free(transaction: Transaction, task: Task) -> None:
    """Refuse a task that is done, or whose claimant still runs."""
    if task.status == rules.DONE:
        raise Conflict(f"{rules.shown(task.seq)} is done")
    if task.status == rules.CLAIMED:
        holder = transaction.get(task.claimed_by or "")
        if holder is None and task.claimed_by != "user":
            return
        if holder is None or is_running(holder):
            name = holder["name"] if holder else "a person"
            raise Conflict(f"{rules.shown(task.seq)} is claimed by {name}", hint="mam task list")


def _check_may_finish(transaction: Transaction, task: Task, caller_name: str) -> None:
    holder = transaction.get(task.claimed_by or "")
    allowed = (task.claimed_by, task.created_by, (holder or {}).get("parent"), "user")
    if caller_name not in allowed:
        name = holder["name"] if holder else task.claimed_by or "nobody"
        raise NotAllowed(f"{rules.shown(task.seq)} is claimed by {name}, so the caller may not finish it")
