"""The place of a team: the caller's window with the caller as its master, or a tmux session of its own."""

from __future__ import annotations

import secrets
import time

from mam.adapters.store.tables import teams
from mam.adapters.tmux import window as windows
from mam.app.sessions.launch import Where
from mam.app.teams.caller_pane import here
from mam.core import team as rules
from mam.core.errors import PaneGone, Refused, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.teams import Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.teams.caller_pane import Here
    from mam.core.caller import Caller
    from mam.core.session_row import Row


class TeamWindow:
    """A team that is up, or one that begins with its first member."""

    def __init__(self, *, team_id: str, name: str | None, server: str, layout: str) -> None:
        """Begin outside of tmux, with no window yet."""
        self.team_id = team_id
        self.name = name
        self.server = server
        self.layout = layout
        self.window_id: str | None = None
        self.server_pid: int | None = None
        self.master_pane: str | None = None
        self.master_id: str | None = None
        # Whether the team was begun here, so that the master is still to be named.
        self.is_uncrowned = False

    def enter(self, place: Here) -> None:
        """Take the caller's window, with its pane as the master."""
        self.server = place.server
        self.window_id = place.pane.window_id
        self.server_pid = place.pane.server_pid
        self.master_pane = place.pane.id
        self.master_id = place.row["id"] if place.row else None

    def open(self, draft: Transaction, by: str) -> None:
        """Record the team with its first member; who was faster in the same window has made it."""
        found = teams.find(draft, self.team_id) or self._of_window(draft)
        if found is None:
            teams.add(
                draft,
                id=self.team_id,
                name=self.name,
                server=self.server,
                server_pid=self.server_pid,
                window_id=self.window_id,
                master_pane=self.master_pane,
                master_id=self.master_id,
                layout=self.layout,
                by=by,
            )
            self.is_uncrowned = True
        else:
            self.team_id = found.id
            if found.ended_at is not None:
                raise Refused(f"the team {found.id} is down", hint="mam team up makes another")

    def look_again(self, context: Context) -> None:
        """Forget a window of the team's own that ended with its last pane."""
        if self.master_pane is not None or self.window_id is None:
            return
        if windows.show(context.tmux(self.server), self.window_id) is None:
            self.window_id = self.server_pid = None

    def _of_window(self, draft: Transaction) -> Team | None:
        if self.window_id is None:
            return None
        return next((one for one in teams.listed(draft) if _is_in(one, self)), None)


def of_team(team: Team) -> TeamWindow:
    """Return the site of a team that is up."""
    found = TeamWindow(team_id=team.id, name=team.name, server=team.server, layout=team.layout)
    found.window_id, found.server_pid = team.window_id, team.server_pid
    found.master_pane, found.master_id = team.master_pane, team.master_id
    return found


def find_site(
    context: Context,
    caller: Caller,
    team_id: str | None = None,
    *,
    name: str | None = None,
    layout: str | None = None,
) -> TeamWindow:
    """Return where a new member belongs: to the team that is named, else to that of the caller's window.

    Outside of tmux that is the last team which somebody outside began, else a new one.
    """
    if team_id is not None:
        return of_team(find_team(context, caller, team_id))
    place = here(context, caller)
    found = _known(context, caller, place)
    if found is not None:
        return of_team(found)
    day = time.strftime("%Y-%m-%d", time.gmtime(context.now()))
    fresh = TeamWindow(
        team_id=rules.team_id(day, name or "by hand", secrets.token_hex(2)),
        name=name,
        server=context.server_name(None),
        layout=layout or rules.LAYOUTS["left"],
    )
    if place is not None:
        fresh.enter(place)
    return fresh


def find_team(context: Context, caller: Caller, team_id: str | None = None) -> Team:
    """Return the team that is named, that of the caller's window, or the only one that is up."""
    nothing: list[Team] = []
    up = context.registry.peek(teams.listed, nothing)
    if team_id is not None:
        found = next((one for one in up if team_id in (one.id, one.name)), None)
        if found is None:
            raise Usage(f"no team '{team_id[:80]}' is up", hint="mam team list")
        return found
    found = _known(context, caller, here(context, caller))
    if found is not None:
        return found
    if len(up) != 1:
        hint = f"name one: {', '.join(one.id for one in up[:6])}" if up else "mam team up PRESET"
        raise Usage("which team is meant?" if up else "no team is up", hint=hint)
    return up[0]


def _known(context: Context, caller: Caller, place: Here | None) -> Team | None:
    nothing: list[Team] = []
    up = context.registry.peek(teams.listed, nothing)
    if place is not None:
        return next((one for one in up if _is_at(one, place)), None)
    me = caller.name
    outside = [one for one in up if one.master_pane is None and one.by == me]
    return next((one for one in reversed(outside) if _window(context, one) is not None), None)


def _is_at(team: Team, place: Here) -> bool:
    where = (place.server, place.pane.server_pid, place.pane.window_id)
    return (team.server, team.server_pid, team.window_id) == where


def _is_in(team: Team, site: TeamWindow) -> bool:
    where = (site.server, site.server_pid, site.window_id)
    return (team.server, team.server_pid, team.window_id) == where


def _window(context: Context, team: Team) -> windows.Window | None:
    if team.window_id is None or context.tmux(team.server).server_pid() != team.server_pid:
        return None
    return windows.show(context.tmux(team.server), team.window_id)


def home_of(context: Context, row: Row) -> Where | None:
    """Return where a member of a team that is up goes on: in its window, if that has room for it."""
    member = context.registry.peek(lambda draft: teams.member(draft, row["id"]), None)
    if member is None or not teams.is_open(member):
        return None
    team = context.registry.peek(lambda draft: teams.find(draft, member.team_id), None)
    if team is None or team.ended_at is not None or _window(context, team) is None:
        return None
    try:
        check_room(context, of_team(team))
    except Refused as error:
        context.warn(f"'{row['name']}' goes on in a tmux session of its own: {error}")
        return None
    return Where(window_id=team.window_id, keeps_pane=True)


def check_room(context: Context, site: TeamWindow) -> None:
    """Refuse a pane more where no agent's input box would be seen in it any more."""
    if site.window_id is None:
        return
    seen = windows.show(context.tmux(site.server), site.window_id)
    if seen is None:
        raise PaneGone(f"the window of the team {site.team_id} is gone", hint="mam team down ends the team")
    others = len(seen.panes)
    is_beside = site.layout == rules.LAYOUTS["left"]
    lines = seen.height // others - 1 if is_beside else seen.height // 2 - 1
    columns = seen.width // 2 if is_beside else seen.width // others - 1
    if lines < rules.LEAST_LINES or columns < rules.LEAST_COLUMNS:
        raise Refused(
            f"the window has no room for one more agent ({seen.width}x{seen.height}, {others} panes)",
            hint="make the terminal larger, or close somebody first",
        )
