"""Bring a team up and down, and list the teams."""

from __future__ import annotations

from threading import Thread

from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.files import team_presets
from mam.adapters.store.tables import tasks, teams
from mam.adapters.tmux import window as windows
from mam.app.sessions.forget import remove_dead_pane
from mam.app.sessions.stop import stop
from mam.app.teams import onboarding, register, team_page
from mam.app.teams.caller_pane import here
from mam.app.teams.close import check_may, mark_closed
from mam.app.teams.spawn import Spawn
from mam.app.teams.team_window import find_site, find_team
from mam.core.errors import Broken, MamError, NotAllowed, Refused
from mam.core.session_row import is_running
from mam.core.task import parse_text, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar, Unpack

    from mam.adapters.store.tables.teams import Member, Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.teams.spawn import MemberOptions
    from mam.core.caller import Caller
    from mam.core.team import RolePlan

    T = TypeVar("T")

_AT_ONCE = 4


def up(
    context: Context, caller: Caller, what: str, *, work: str | None = None, **options: Unpack[MemberOptions]
) -> dict[str, Any]:
    """Start every role of a preset or file; `{team, members, permissions, session_file}`.

    All of it or nothing: where one role does not start, the others are ended again. One that shows a dialog
    has started; what it is to be told is held until somebody answers it. `work` becomes a task of the first
    role; the other options are those of spawn, for every role.
    """
    plan = team_presets.load(what, context.environ)
    caller = register.know_caller(context, caller)
    site = find_site(context, caller, name=plan.name, layout=plan.layout)
    known = context.registry.peek(lambda draft: teams.find(draft, site.team_id), None)
    if known is not None:
        raise Refused(f"the team {known.id} is up here", hint="mam team down, or mam spawn adds to it")
    crew = [
        Spawn(
            context,
            caller,
            site,
            role.role,
            colour=role.colour,
            prompt=role.prompt,
            **_options_of(role, options),
        )
        for role in plan.roles
    ]
    if work is not None:
        crew[0].task = parse_text(work)
    members = _bring_up(context, caller, crew)
    return {
        "team": context.registry.peek(lambda draft: _describe(draft, site.team_id), None),
        "members": members,
        "permissions": sorted({one.permissions for one in crew}),
        "session_file": files.path_of(context.paths, site.team_id),
    }


def _options_of(role: RolePlan, options: MemberOptions) -> MemberOptions:
    """Return the options of one member: what is asked for all comes before what its role says."""
    return {
        **options,
        "agent": options.get("agent") or role.agent,
        "permissions": options.get("permissions") or role.permissions,
        "model": options.get("model") or role.model,
    }


def _bring_up(context: Context, caller: Caller, crew: list[Spawn]) -> list[dict[str, Any]]:
    """Start the panes one after the other, in their order; wait for the agents at the same time."""
    try:
        for one in crew:
            context.progress(f"starting {one.role}")
            one.start()
        onboarding.name_master(context, crew[0].site)
        done = _side_by_side(context, crew, _see_through)
        failed = next((error for error in done if isinstance(error, BaseException)), None)
        if failed is not None:
            raise failed
    except MamError:
        for one in crew:
            one.take_back()
        raise
    return [document for document in done if isinstance(document, dict)]


def _see_through(context: Context, one: Spawn) -> dict[str, Any]:
    one.context = context
    one.run(is_started=True)
    return one.finish()


def down(
    context: Context, caller: Caller, team_id: str | None = None, *, force: bool = False
) -> dict[str, Any]:
    """End every member, each with its own exit first; `{team, closed, failed, unfinished}`.

    What was not finished waits again for its role. Never the pane of the caller, never the master's.
    """
    team = find_team(context, caller, team_id)
    _check_down(context, caller, team)
    nothing: list[Member] = []
    members = context.registry.peek(lambda draft: teams.members(draft, team.id), nothing)
    left = [one for one in members if teams.is_open(one)]
    done = _side_by_side(context, left, lambda twin, one: _end(twin, caller, team, one, force))
    failed = [
        {"session": one.name, "error": error.message}
        for one, error in zip(left, done, strict=True)
        if isinstance(error, MamError)
    ]
    unfinished = [shown(number) for numbers in done if isinstance(numbers, list) for number in numbers]
    if not failed:
        _end_team(context, team, members)
    team_page.write(context, [team.id])
    strange = next(
        (one for one in done if isinstance(one, BaseException) and not isinstance(one, MamError)), None
    )
    if strange is not None:
        raise Broken(f"a member could not be ended: {strange}") from strange
    closed = [one.name for one in left if one.name not in [bad["session"] for bad in failed]]
    return {
        "team": context.registry.peek(lambda draft: _describe(draft, team.id), None),
        "closed": closed,
        "failed": failed,
        "unfinished": unfinished,
    }


def _check_down(context: Context, caller: Caller, team: Team) -> None:
    who, place = caller.name, here(context, caller)
    nothing: list[Member] = []
    members = context.registry.peek(lambda draft: teams.members(draft, team.id), nothing)
    panes = {one.pane for one in members if teams.is_open(one)}
    is_inside = place is not None and place.pane.server_pid == team.server_pid and place.pane.id in panes
    if who in {one.session_id for one in members} or is_inside:
        raise NotAllowed(f"a member does not end the team {team.id}", hint="run it in the master's pane")
    if who not in ("user", team.master_id, team.by):
        raise NotAllowed(f"only the master ends the team {team.id}")


def _end(context: Context, caller: Caller, team: Team, member: Member, force: bool) -> list[int]:
    row = context.registry.view().by_id(member.session_id)
    if row is not None and is_running(row):
        check_may(context, caller, row, team)
        stop(context, caller, row["id"], reason="team down", force=force)
    elif row is not None:
        remove_dead_pane(context, row)
    return mark_closed(context, caller, member)


def _end_team(context: Context, team: Team, members: list[Member]) -> None:
    context.registry.note(lambda draft: teams.change(draft, team.id, ended_at=draft.now))
    tmux = context.tmux(team.server)
    if team.window_id is None or tmux.server_pid() != team.server_pid:
        return
    panes = [team.master_pane] if team.master_pane else []
    windows.undress(tmux, team.window_id, [*panes, *(one.pane for one in members if one.pane)])


def listing(context: Context, *, ended: bool = False) -> dict[str, Any]:
    """Return `{teams, presets}`: the teams that are up, or all, each with its members. Reads only."""

    def read(draft: Transaction) -> list[dict[str, Any]]:
        return [
            {
                **team_page.describe_team(draft, team),
                "members": [team_page.describe(draft, one) for one in teams.members(draft, team.id)],
                "tasks": len(tasks.listed(draft, team_id=team.id)),
                "session_file": files.path_of(context.paths, team.id),
            }
            for team in teams.listed(draft, ended=ended)
        ]

    nothing: list[dict[str, Any]] = []
    return {"teams": context.registry.peek(read, nothing), "presets": team_presets.presets(context.environ)}


def _describe(draft: Transaction, team_id: str) -> dict[str, Any] | None:
    found = teams.find(draft, team_id)
    return team_page.describe_team(draft, found) if found else None


def _side_by_side(context: Context, jobs: Sequence[T], work: Callable[[Context, T], Any]) -> list[Any]:
    """Do the same to each, a few at a time, each with a world of its own; an error stands in its place."""
    results: list[Any] = [None] * len(jobs)
    waiting = list(enumerate(jobs))[::-1]

    def labour() -> None:
        twin = context.for_thread()
        try:
            while waiting:
                try:
                    at, job = waiting.pop()
                except IndexError:
                    return
                try:
                    results[at] = work(twin, job)
                except Exception as error:
                    results[at] = error
        finally:
            twin.close()

    threads = [Thread(target=labour, daemon=True) for _ in range(min(_AT_ONCE, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
