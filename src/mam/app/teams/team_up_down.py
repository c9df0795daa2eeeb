"""Bring a team up and down, and list the teams."""

from __future__ import annotations

from threading import Thread

from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.files import team_presets
from mam.adapters.store.tables import tasks, teams
from mam.adapters.tmux import window as windows
from mam.app.sessions.forget import remove_dead_pane
from mam.app.sessions.stop import stop
from mam.app.teams import onboarding_steps, register, team_page
from mam.app.teams.caller_pane import find_caller_pane, is_master
from mam.app.teams.close import check_may_close, mark_closed
from mam.app.teams.spawn import Spawn
from mam.app.teams.team_window import find_ended_team, find_team, find_team_window
from mam.core.errors import Broken, MamError, NotAllowed, Refused
from mam.core.session_row import is_running
from mam.core.task_format import parse_text, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar, Unpack

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Member, Team
    from mam.app.context.context import Context
    from mam.app.teams.spawn import MemberOptions
    from mam.core.caller import Caller
    from mam.core.team_plan import RolePlan

    T = TypeVar("T")

_AT_ONCE = 4


def up(
    context: Context,
    caller: Caller,
    preset: str,
    *,
    work: str | None = None,
    **options: Unpack[MemberOptions],
) -> dict[str, Any]:
    """Start every role of a preset or file; return `{team, members, permissions, session_file}`.

    If one role does not start, all others end again. A member that shows a dialog counts as started; its
    messages are held until somebody answers the dialog. `work` becomes a task of the first role. The other
    options are those of spawn, for every role.
    """
    plan = team_presets.load(preset, context.environ)
    caller = register.register_caller(context, caller)
    team_window = find_team_window(context, caller, name=plan.name, layout=plan.layout)
    running_team = context.registry.peek(
        lambda transaction: teams.find(transaction, team_window.team_id), None
    )
    if running_team is not None and running_team.ended_at is None:
        raise Refused(
            f"the team {running_team.id} is already up",
            hint="end it with mam team down, or add a member with mam spawn",
        )
    spawns = [
        Spawn(
            context,
            caller,
            team_window,
            role.role,
            colour=role.colour,
            prompt=role.prompt,
            **_options_of(role, options),
        )
        for role in plan.roles
    ]
    if work is not None:
        spawns[0].task = parse_text(work)
    members = _bring_up(context, caller, spawns)
    return {
        "team": context.registry.peek(lambda transaction: _describe(transaction, team_window.team_id), None),
        "members": members,
        "permissions": sorted({spawn.permissions for spawn in spawns}),
        "session_file": files.path_of(context.paths, team_window.team_id),
    }


def _options_of(role: RolePlan, options: MemberOptions) -> MemberOptions:
    """Return the options of one member. The options for all members override those of its role."""
    return {
        **options,
        "agent": options.get("agent") or role.agent,
        "permissions": options.get("permissions") or role.permissions,
        "model": options.get("model") or role.model,
    }


def _bring_up(context: Context, caller: Caller, spawns: list[Spawn]) -> list[dict[str, Any]]:
    """Start the panes one after another, in their order; then wait for all agents in parallel."""
    try:
        for spawn in spawns:
            context.progress(f"starting {spawn.role}")
            spawn.start()
        onboarding_steps.name_master(context, spawns[0].team_window)
        results = _run_in_parallel(context, spawns, _wait_and_finish)
        failure = next((error for error in results if isinstance(error, BaseException)), None)
        if failure is not None:
            raise failure
    except MamError:
        for spawn in spawns:
            spawn.undo()
        raise
    return [document for document in results if isinstance(document, dict)]


def _wait_and_finish(context: Context, spawn: Spawn) -> dict[str, Any]:
    spawn.context = context
    spawn.run(is_started=True)
    return spawn.finish()


def down(
    context: Context, caller: Caller, team_id: str | None = None, *, force: bool = False
) -> dict[str, Any]:
    """Stop every member of a team; return `{team, closed, failed, unfinished, changed}`.

    Unfinished tasks wait again for their role. The panes of the caller and of the master stay. Nothing is to
    be done if the team is down already.
    """
    ended_team = find_ended_team(context, caller, team_id)
    if ended_team is not None:
        return _down_document(context, ended_team, changed=False)
    team = find_team(context, caller, team_id)
    _check_down(context, caller, team)
    no_members: list[Member] = []
    members = context.registry.peek(lambda transaction: teams.members(transaction, team.id), no_members)
    open_members = [member for member in members if teams.is_open(member)]
    results = _run_in_parallel(
        context,
        open_members,
        lambda thread_context, member: _end_member(thread_context, caller, team, member, force),
    )
    failed = [
        {"session": member.name, "error": error.message}
        for member, error in zip(open_members, results, strict=True)
        if isinstance(error, MamError)
    ]
    unfinished = [shown(number) for numbers in results if isinstance(numbers, list) for number in numbers]
    if not failed:
        _end_team(context, team, members)
    team_page.write(context, [team.id])
    unexpected = next(
        (
            result
            for result in results
            if isinstance(result, BaseException) and not isinstance(result, MamError)
        ),
        None,
    )
    if unexpected is not None:
        raise Broken(f"a member could not be ended: {unexpected}") from unexpected
    closed = [
        member.name
        for member in open_members
        if member.name not in [failure["session"] for failure in failed]
    ]
    return _down_document(context, team, changed=True, closed=closed, failed=failed, unfinished=unfinished)


def _down_document(
    context: Context,
    team: Team,
    *,
    changed: bool,
    closed: Sequence[str] = (),
    failed: Sequence[dict[str, str]] = (),
    unfinished: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "team": context.registry.peek(lambda transaction: _describe(transaction, team.id), None),
        "closed": [*closed],
        "failed": [*failed],
        "unfinished": [*unfinished],
        "changed": changed,
    }


def _check_down(context: Context, caller: Caller, team: Team) -> None:
    caller_name, caller_pane = caller.name, find_caller_pane(context, caller)
    no_members: list[Member] = []
    members = context.registry.peek(lambda transaction: teams.members(transaction, team.id), no_members)
    panes = {member.pane for member in members if teams.is_open(member)}
    is_inside = (
        caller_pane is not None
        and caller_pane.pane.server_pid == team.server_pid
        and caller_pane.pane.id in panes
    )
    if caller_name in {member.session_id for member in members} or is_inside:
        raise NotAllowed(f"a member may not end the team {team.id}", hint="run it in the master's pane")
    if caller_name not in ("user", team.by) and not is_master(context, caller, team):
        raise NotAllowed(
            f"only the master may end the team {team.id}",
            hint="run it in the master's pane, or in a shell that is no session",
        )


def _end_member(context: Context, caller: Caller, team: Team, member: Member, force: bool) -> list[int]:
    row = context.registry.view().by_id(member.session_id)
    if row is not None and is_running(row):
        check_may_close(context, caller, row, team)
        stop(context, caller, row["id"], reason="team down", force=force)
    elif row is not None:
        remove_dead_pane(context, row)
    return mark_closed(context, caller, member)


def _end_team(context: Context, team: Team, members: list[Member]) -> None:
    context.registry.note(lambda transaction: teams.change(transaction, team.id, ended_at=transaction.now))
    tmux = context.tmux(team.server)
    if team.window_id is None or tmux.server_pid() != team.server_pid:
        return
    panes = [team.master_pane] if team.master_pane else []
    windows.remove_labels(tmux, team.window_id, [*panes, *(member.pane for member in members if member.pane)])


def listing(context: Context, *, ended: bool = False) -> dict[str, Any]:
    """Return `{teams, presets}`: the teams that are up, or all, each with its members. Reads only."""

    def read(transaction: Transaction) -> list[dict[str, Any]]:
        return [
            {
                **team_page.describe_team(transaction, team),
                "members": [
                    team_page.describe_member(transaction, member)
                    for member in teams.members(transaction, team.id)
                ],
                "tasks": len(tasks.listed(transaction, team_id=team.id)),
                "session_file": files.path_of(context.paths, team.id),
            }
            for team in teams.listed(transaction, ended=ended)
        ]

    context.warn_of_root()
    no_teams: list[dict[str, Any]] = []
    return {"teams": context.registry.peek(read, no_teams), "presets": team_presets.presets(context.environ)}


def _describe(transaction: Transaction, team_id: str) -> dict[str, Any] | None:
    team = teams.find(transaction, team_id)
    return team_page.describe_team(transaction, team) if team else None


def _run_in_parallel(context: Context, jobs: Sequence[T], work: Callable[[Context, T], Any]) -> list[Any]:
    """Run `work` for each job, a few at a time, each thread with its own context.

    The result of a job that fails is its error.
    """
    results: list[Any] = [None] * len(jobs)
    pending = list(enumerate(jobs))[::-1]

    def run_jobs() -> None:
        thread_context = context.for_thread()
        try:
            while pending:
                try:
                    position, job = pending.pop()
                except IndexError:
                    return
                try:
                    results[position] = work(thread_context, job)
                except Exception as error:
                    results[position] = error
        finally:
            thread_context.close()

    threads = [Thread(target=run_jobs, daemon=True) for _ in range(min(_AT_ONCE, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
