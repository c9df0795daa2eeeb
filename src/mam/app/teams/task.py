"""Tasks of roles: add, list, claim, done. Of any number who claim a task one gets it."""

from __future__ import annotations

from mam.adapters.store.tables import tasks, teams
from mam.app.context.caller import calling_row
from mam.app.teams import team_page
from mam.app.teams.team_window import find_team
from mam.core import task as rules
from mam.core.errors import Conflict, NotAllowed, TaskNotFound, Usage
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def add(context: Context, caller: Caller, text: str, *, role: str, team: str | None = None) -> dict[str, Any]:
    """Add a task for a role, of one team or of whoever has that role; `{task}`."""
    words, wanted, by = rules.parse_text(text), rules.parse_role(role), caller.name
    team_id = find_team(context, caller, team).id if team is not None else None

    def work(draft: Transaction) -> dict[str, Any]:
        made = tasks.add(draft, role=wanted, text=words, by=by, team_id=team_id)
        draft.log(by, "task add", None, task=rules.shown(made.seq), role=wanted)
        return team_page.described(draft, made)

    done = context.registry.note(work)
    team_page.write(context)
    return {"task": done}


def list_tasks(context: Context, *, role: str | None = None, status: str | None = None) -> dict[str, Any]:
    """Return `{tasks}`, oldest first. Reads only."""
    if status is not None and status not in rules.STATUSES:
        raise Usage(f"a task is {', '.join(rules.STATUSES)}")
    wanted = rules.parse_role(role) if role else None

    def read(draft: Transaction) -> list[dict[str, Any]]:
        found = tasks.listed(draft, role=wanted, status=status)
        return [team_page.described(draft, one) for one in found]

    nothing: list[dict[str, Any]] = []
    return {"tasks": context.registry.peek(read, nothing)}


def claim(
    context: Context,
    caller: Caller,
    which: str | None = None,
    *,
    role: str | None = None,
    session: str | None = None,
) -> dict[str, Any]:
    """Claim a task, or the oldest that waits for a role; `{task, changed}`.

    For the caller, or for a session. Raises TaskNotFound where nothing waits, Conflict where another has it.
    """
    row = context.registry.view().find(session) if session else calling_row(context, caller)
    by = caller.name
    who = row["id"] if row else by
    number = rules.parse(which) if which else None
    wanted = rules.parse_role(role or (row.get("role") if row else None)) if number is None else None

    def work(draft: Transaction) -> tuple[dict[str, Any], bool]:
        team_id = team_of(draft, who)
        if number is None:
            found = tasks.oldest(draft, wanted or "", team_id)
            if found is None:
                raise TaskNotFound(f"no task waits for the role '{wanted}'", hint="mam task list")
        else:
            found = _known(draft, number)
            if found.status == rules.CLAIMED and found.claimed_by == who:
                return team_page.described(draft, found), False
            _check_free(draft, found)
        done = take(draft, found, who, row, by=by)
        return team_page.described(draft, done), True

    done, changed = context.registry.note(work)
    team_page.write(context)
    return {"task": done, "changed": changed}


def take(draft: Transaction, found: Task, who: str, row: Row | None, *, by: str) -> Task:
    """Give a task that is free to somebody, in the transaction that found it free."""
    done = tasks.claim(draft, found.seq, who, (row.get("pane") or {}).get("id") if row else None)
    draft.log(by, "task claim", row, task=rules.shown(found.seq))
    return done


def finish(context: Context, caller: Caller, which: str, *, result: str | None = None) -> dict[str, Any]:
    """Say that a task is done; `{task, changed}`. Only who has it, who gave it, or a person may."""
    number, who = rules.parse(which), caller.name

    def work(draft: Transaction) -> tuple[dict[str, Any], bool]:
        found = _known(draft, number)
        if found.status == rules.DONE:
            return team_page.described(draft, found), False
        _check_mine(draft, found, who)
        done = tasks.finish(draft, number, rules.parse_result(result), None)
        draft.log(who, "task done", None, done.result, task=rules.shown(number))
        return team_page.described(draft, done), True

    done, changed = context.registry.note(work)
    team_page.write(context)
    return {"task": done, "changed": changed}


def team_of(draft: Transaction, who: str) -> str | None:
    """Return the team that somebody is in now."""
    found = teams.member(draft, who)
    return found.team_id if found and teams.is_open(found) else None


def _known(draft: Transaction, number: int) -> Task:
    found = tasks.find(draft, number)
    if found is None:
        raise TaskNotFound(f"there is no {rules.shown(number)}", hint="mam task list")
    return found


def _check_free(draft: Transaction, found: Task) -> None:
    """Refuse a task that is done, or that somebody has who is still there."""
    if found.status == rules.DONE:
        raise Conflict(f"{rules.shown(found.seq)} is done")
    if found.status == rules.CLAIMED:
        holder = draft.get(found.claimed_by or "")
        if holder is None and found.claimed_by != "user":
            return
        if holder is None or is_running(holder):
            name = holder["name"] if holder else "a person"
            raise Conflict(f"{rules.shown(found.seq)} is claimed by {name}", hint="mam task list")


def _check_mine(draft: Transaction, found: Task, who: str) -> None:
    holder = draft.get(found.claimed_by or "")
    may = (found.claimed_by, found.created_by, (holder or {}).get("parent"), "user")
    if who not in may:
        name = holder["name"] if holder else found.claimed_by or "nobody"
        raise NotAllowed(f"{rules.shown(found.seq)} is claimed by {name}, and not yours to end")
