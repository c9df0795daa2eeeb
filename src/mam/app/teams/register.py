"""Register an agent that was started by hand, in its own pane: a row, a role, and its first task."""

from __future__ import annotations

import os

from mam.adapters.agents.catalogue import BUILT_IN
from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.tables import tasks, teams
from mam.adapters.system import process
from mam.app.context.caller import find_caller
from mam.app.sessions import adopt
from mam.app.teams import onboarding, team_page
from mam.app.teams.caller_pane import here
from mam.app.teams.rebalance import arrange
from mam.app.teams.task import take
from mam.app.teams.team_window import find_site
from mam.core import names
from mam.core import task as task_rules
from mam.core import team as rules
from mam.core.errors import Refused, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.teams.caller_pane import Here
    from mam.app.teams.team_window import TeamWindow
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_MOST_NUMBERS = 100


def register(
    context: Context,
    caller: Caller,
    role: str,
    *,
    agent: str | None = None,
    name: str | None = None,
    team: str | None = None,
) -> dict[str, Any]:
    """Register the agent of the caller's pane; `{session, team, member, task, session_file}`.

    It keeps its name and its tmux session. As `master` it gets a row and no membership: teams that it
    brings up report to it.
    """
    wanted = task_rules.parse_role(role)
    place = here(context, caller)
    if place is None:
        raise Usage("there is no tmux pane to register", hint="run it in the agent's own pane")
    row = place.row or _adopt(context, caller, place, wanted, agent=agent, name=name)
    caller = find_caller(context, caller.pid)
    if wanted == rules.MASTER:
        return {"session": row, "team": None, "member": None, "task": None, "session_file": None}
    site = find_site(context, caller, team)
    if site.master_pane == place.pane.id:
        # Nobody brought the team up from here: it has no master yet.
        site.master_pane = site.master_id = None
    by = caller.name
    member, found = context.registry.note(lambda draft: _join(draft, by, site, row, wanted))
    onboarding.settle_in(context, row, member)
    arrange(context, site.team_id)
    team_page.write(context, [site.team_id])
    return context.registry.peek(lambda draft: _answer(draft, context, row, found), _nothing(row))


def know_caller(context: Context, caller: Caller) -> Caller:
    """Give a row to an agent that was started by hand and calls for the first time: others report to it.

    Return who calls; from then on that is this session.
    """
    place = here(context, caller)
    if place is None or place.row is not None or place.pane.mark:
        return caller
    kind = _recognise(place, caller.pid)
    if kind is not None:
        row = _adopt(context, caller, place, rules.MASTER, agent=kind)
        context.warn(f"this {kind} is registered as '{row['name']}': reports go to it")
        return find_caller(context, caller.pid)
    return caller


def _adopt(
    context: Context,
    caller: Caller,
    place: Here,
    role: str,
    *,
    agent: str | None = None,
    name: str | None = None,
) -> Row:
    if place.pane.mark:
        raise Refused(f"this pane is a session of {place.pane.root or 'another root'}")
    kind = names.parse_kind(agent) if agent else _recognise(place, caller.pid)
    if kind is None:
        raise Usage("mam does not recognise the agent in this pane", hint="name it: --agent claude")
    wanted = names.parse_name(name) if name else _free_name(context, role)
    pane = context.tmux(place.server).pane(place.pane.id)
    workspace = pane.path if pane and pane.path else context.workspace
    row = adopt.new_row(context, wanted, kind, place.pane, server=place.server, workspace=workspace)
    row["role"] = role
    return adopt.take(context, caller, row, place.pane, rename=False)


def _recognise(place: Here, pid: int) -> str | None:
    """Return the kind of the agent that calls: a process between the calling one and its pane."""
    pids = [one.pid for one in process.ancestors(pid)]
    if place.pane.pid not in pids:
        # Whoever calls is somewhere else: an agent further up is not the pane's.
        return None
    for one in pids[: pids.index(place.pane.pid) + 1]:
        for word in (process.command_line(one) or [])[:2]:
            kind = names.KIND_ALIASES.get(os.path.basename(word), os.path.basename(word))
            if kind in BUILT_IN:
                return kind
    return None


def _free_name(context: Context, role: str) -> str:
    taken = {row["name"] for row in context.registry.view().rows}
    found = (names.numbered(role, number) for number in range(1, _MOST_NUMBERS))
    return next((one for one in found if one not in taken), names.numbered(role, _MOST_NUMBERS))


def _join(draft: Transaction, by: str, site: TeamWindow, row: Row, role: str) -> tuple[Member, Task | None]:
    current = teams.member(draft, row["id"])
    if current is not None and teams.is_open(current):
        raise Refused(f"'{row['name']}' is the {current.role} of the team {current.team_id} already")
    site.open(draft, by)
    member = teams.join(
        draft,
        team_id=site.team_id,
        session_id=row["id"],
        name=row["name"],
        role=role,
        colour=rules.colour_of(role),
        name_source=rules.MANUAL,
        workspace=row["workspace"],
        state=rules.ACTIVE,
    )
    found = tasks.oldest(draft, role, site.team_id)
    return member, take(draft, found, row["id"], row, by=by) if found else None


def _answer(draft: Transaction, context: Context, row: Row, found: Task | None) -> dict[str, Any]:
    member = teams.member(draft, row["id"])
    assert member is not None
    return {
        "session": draft.get(row["id"]) or row,
        "team": member.team_id,
        "member": team_page.describe(draft, member),
        "task": team_page.described(draft, tasks.get(draft, found.seq)) if found else None,
        "session_file": files.path_of(context.paths, member.team_id),
    }


def _nothing(row: Row) -> dict[str, Any]:
    return {"session": row}
