"""Register an agent that was started by hand, in its own pane: a row, a role, and its first task."""

from __future__ import annotations

import os

from mam.adapters.agents.catalogue import BUILT_IN
from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.tables import tasks, teams
from mam.adapters.system import process
from mam.app.context.caller import find_caller
from mam.app.observation.pane_look import SHELLS
from mam.app.sessions import adopt
from mam.app.teams import onboarding_steps, team_page
from mam.app.teams.caller_pane import find_caller_pane
from mam.app.teams.rebalance import arrange
from mam.app.teams.task import assign
from mam.app.teams.team_window import find_team_window
from mam.core import names
from mam.core import task_format as task_rules
from mam.core import team_plan as rules
from mam.core.errors import Refused, Usage
from mam.core.root_mark import directory_of
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.app.teams.caller_pane import CallerPane
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
    """Register the agent of the caller's pane; return `{session, team, member, task, session_file}`.

    The pane stays in its tmux session, which keeps its name. With the role `master` the agent gets a row and
    no membership: the teams that it brings up report to it, and so does the team whose master's pane this is.
    """
    parsed_role = task_rules.parse_role(role)
    caller_pane = find_caller_pane(context, caller)
    if caller_pane is None:
        raise Usage("there is no tmux pane to register", hint="run this command in the agent's own pane")
    row = caller_pane.row or _adopt(context, caller, caller_pane, parsed_role, agent=agent, name=name)
    caller = find_caller(context, caller.pid)
    if parsed_role == rules.MASTER:
        context.registry.note(lambda transaction: _become_master(transaction, row))
        return {"session": row, "team": None, "member": None, "task": None, "session_file": None}
    team_window = find_team_window(context, caller, team)
    if team_window.master_pane == caller_pane.pane.id:
        # The agent joins as a member, so its pane cannot be the master's. The new team has no master yet.
        team_window.master_pane = team_window.master_id = None
    by = caller.name
    member, task = context.registry.note(
        lambda transaction: _join(transaction, by, team_window, row, parsed_role)
    )
    onboarding_steps.place_member(context, row, member)
    arrange(context, team_window.team_id)
    team_page.write(context, [team_window.team_id])
    return context.registry.peek(
        lambda transaction: _result(transaction, context, row, task), _only_session(row)
    )


def register_caller(context: Context, caller: Caller) -> Caller:
    """Register a calling agent that was started by hand, so that members can report to it.

    Return the caller: the new session, or the given caller if there is nothing to register.
    """
    caller_pane = find_caller_pane(context, caller)
    if caller_pane is None or caller_pane.row is not None or caller_pane.pane.mark:
        return caller
    kind = _recognise_kind(caller_pane, caller.pid)
    if kind is not None:
        row = _adopt(context, caller, caller_pane, rules.MASTER, agent=kind)
        context.warn(f"mam registered this {kind} as '{row['name']}', and members report to it")
        return find_caller(context, caller.pid)
    return caller


def _adopt(
    context: Context,
    caller: Caller,
    caller_pane: CallerPane,
    role: str,
    *,
    agent: str | None = None,
    name: str | None = None,
) -> Row:
    if caller_pane.pane.mark:
        raise Refused(f"this pane is a session of {directory_of(caller_pane.pane.root) or 'another root'}")
    kind = names.parse_kind(agent) if agent else _recognise_kind(caller_pane, caller.pid)
    if kind is None:
        raise Usage("mam does not recognise the agent in this pane", hint="name it: --agent claude")
    session_name = names.parse_name(name) if name else _free_name(context, role)
    pane = context.tmux(caller_pane.server).pane(caller_pane.pane.id)
    _check_no_shell(pane or caller_pane.pane, kind, caller.pid)
    workspace = pane.path if pane and pane.path else context.workspace
    row = adopt.new_row(
        context, session_name, kind, caller_pane.pane, server=caller_pane.server, workspace=workspace
    )
    row["role"] = role
    return adopt.adopt_pane(context, caller, row, caller_pane.pane, rename=False)


def _become_master(transaction: Transaction, row: Row) -> None:
    """Make a session the master of the team in whose master's pane it is, unless that has a running one."""
    for team in teams.listed(transaction):
        place = (team.server, team.server_pid, team.master_pane)
        recorded = transaction.get(team.master_id) if team.master_id else None
        is_free = recorded is None or not is_running(recorded)
        if is_free and place == (row["tmux_server"], row["pane"].get("server_pid"), row["pane"].get("id")):
            teams.change(transaction, team.id, master_id=row["id"])


def _check_no_shell(pane: Pane, kind: str, pid: int) -> None:
    """Refuse a pane that runs a bare shell: no agent would ever be ready in it."""
    pids = [ancestor.pid for ancestor in process.ancestors(pid)]
    if pane.pid in pids:
        # The caller itself is the foreground program of its shell.
        within = pids[: pids.index(pane.pid) + 1]
        shells = [_bare_shell(ancestor) for ancestor in within]
    else:
        command = pane.command.lstrip("-")
        shells = [command if command in SHELLS else None, _bare_shell(pane.pid)]
    if all(shells):
        raise Refused(
            f"this pane runs {shells[-1]}, and not {kind}",
            hint=f"the agent itself runs mam register in its pane; mam create --agent {kind} starts one",
        )


def _bare_shell(pid: int) -> str | None:
    """Return the name of the shell that a process is, if it runs no script and no command."""
    program, *arguments = process.command_line(pid) or [""]
    name = os.path.basename(program).lstrip("-")
    is_bare = all(argument.startswith("-") for argument in arguments)
    return name if name in SHELLS and is_bare else None


def _recognise_kind(caller_pane: CallerPane, pid: int) -> str | None:
    """Return the kind of the calling agent: a process between the calling process and its pane."""
    pids = [ancestor.pid for ancestor in process.ancestors(pid)]
    if caller_pane.pane.pid not in pids:
        # The caller does not run in this pane, so an agent among its ancestors does not either.
        return None
    for ancestor in pids[: pids.index(caller_pane.pane.pid) + 1]:
        # The second argument is the program where an interpreter runs it: `node /usr/bin/claude`.
        for argument in (process.command_line(ancestor) or [])[:2]:
            kind = names.KIND_ALIASES.get(os.path.basename(argument), os.path.basename(argument))
            if kind in BUILT_IN:
                return kind
    return None


def _free_name(context: Context, role: str) -> str:
    taken = {row["name"] for row in context.registry.view().rows}
    candidates = (names.numbered(role, number) for number in range(1, _MOST_NUMBERS))
    return next((name for name in candidates if name not in taken), names.numbered(role, _MOST_NUMBERS))


def _join(
    transaction: Transaction, by: str, team_window: TeamWindow, row: Row, role: str
) -> tuple[Member, Task | None]:
    current = teams.member(transaction, row["id"])
    if current is not None and teams.is_open(current):
        raise Refused(f"'{row['name']}' is the {current.role} of the team {current.team_id} already")
    team_window.open(transaction, by)
    member = teams.add_member(
        transaction,
        team_id=team_window.team_id,
        session_id=row["id"],
        name=row["name"],
        role=role,
        colour=rules.colour_of(role),
        name_source=rules.MANUAL,
        workspace=row["workspace"],
        state=rules.ACTIVE,
    )
    task = tasks.oldest(transaction, role, team_window.team_id)
    return member, assign(transaction, task, row["id"], row, by=by) if task else None


def _result(transaction: Transaction, context: Context, row: Row, task: Task | None) -> dict[str, Any]:
    member = teams.member(transaction, row["id"])
    assert member is not None
    return {
        "session": transaction.get(row["id"]) or row,
        "team": member.team_id,
        "member": team_page.describe_member(transaction, member),
        "task": team_page.describe_task(transaction, tasks.get(transaction, task.seq)) if task else None,
        "session_file": files.path_of(context.paths, member.team_id),
    }


def _only_session(row: Row) -> dict[str, Any]:
    return {"session": row}
