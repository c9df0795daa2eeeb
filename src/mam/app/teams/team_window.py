"""The window of a team: the caller's window with the caller as master, or a tmux session of its own."""

from __future__ import annotations

import secrets
import time

from mam.adapters.store.tables import teams
from mam.adapters.tmux import window as windows
from mam.app.sessions.launch import Placement
from mam.app.teams.caller_pane import find_caller_pane
from mam.core import team_plan as rules
from mam.core.errors import PaneGone, Refused, TeamNotFound, Usage
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Team
    from mam.app.context.context import Context
    from mam.app.teams.caller_pane import CallerPane
    from mam.core.caller import Caller
    from mam.core.session_row import Row


class TeamWindow:
    """The window of a team that is up, or of a new team that is recorded with its first member."""

    def __init__(self, *, team_id: str, name: str | None, server: str, layout: str) -> None:
        """Begin without a window."""
        self.team_id = team_id
        self.name = name
        self.server = server
        self.layout = layout
        self.window_id: str | None = None
        self.server_pid: int | None = None
        self.master_pane: str | None = None
        self.master_id: str | None = None
        # Whether this object recorded a new team, so that its master still needs its name.
        self.needs_master_name = False

    def use_caller_window(self, caller_pane: CallerPane) -> None:
        """Use the caller's window, with the caller's pane as the master."""
        self.server = caller_pane.server
        self.window_id = caller_pane.pane.window_id
        self.server_pid = caller_pane.pane.server_pid
        self.master_pane = caller_pane.pane.id
        self.master_id = caller_pane.row["id"] if caller_pane.row else None

    def open(self, transaction: Transaction, by: str) -> None:
        """Record the team with its first member, or join a team that began in this window meanwhile."""
        team = teams.find(transaction, self.team_id) or self._team_of_window(transaction)
        if team is None:
            teams.add(
                transaction,
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
            self.needs_master_name = True
        else:
            self.team_id = team.id
            if team.ended_at is not None:
                raise Refused(f"the team {team.id} is down", hint="mam team up starts another team")

    def forget_closed_window(self, context: Context) -> None:
        """Forget the team's own window if tmux closed it with its last pane."""
        if self.master_pane is not None or self.window_id is None:
            return
        if windows.show(context.tmux(self.server), self.window_id) is None:
            self.window_id = self.server_pid = None

    def _team_of_window(self, transaction: Transaction) -> Team | None:
        if self.window_id is None:
            return None
        return next((team for team in teams.listed(transaction) if _is_in(team, self)), None)


def window_of_team(team: Team) -> TeamWindow:
    """Return the window of a team that is up."""
    team_window = TeamWindow(team_id=team.id, name=team.name, server=team.server, layout=team.layout)
    team_window.window_id, team_window.server_pid = team.window_id, team.server_pid
    team_window.master_pane, team_window.master_id = team.master_pane, team.master_id
    return team_window


def find_team_window(
    context: Context,
    caller: Caller,
    team_id: str | None = None,
    *,
    name: str | None = None,
    layout: str | None = None,
) -> TeamWindow:
    """Return the window of the named team, else that of the caller's team, else a new one.

    Outside of tmux the caller's team is the last one that the same caller began outside of tmux.
    """
    if team_id is not None:
        return window_of_team(find_team(context, caller, team_id))
    caller_pane = find_caller_pane(context, caller)
    team = _find_open_team(context, caller, caller_pane)
    if team is not None:
        return window_of_team(team)
    day = time.strftime("%Y-%m-%d", time.gmtime(context.now()))
    team_window = TeamWindow(
        team_id=rules.team_id(day, name or "by hand", secrets.token_hex(2)),
        name=name,
        server=context.server_name(None),
        layout=layout or rules.LAYOUTS["left"],
    )
    if caller_pane is not None:
        team_window.use_caller_window(caller_pane)
    return team_window


def find_team(context: Context, caller: Caller, team_id: str | None = None) -> Team:
    """Return the named team, else the team of the caller's window, else the only team that is up."""
    no_teams: list[Team] = []
    open_teams = context.registry.peek(teams.listed, no_teams)
    if team_id is not None:
        team = next((team for team in open_teams if team_id in (team.id, team.name)), None)
        if team is None:
            raise TeamNotFound(f"no team '{one_line(team_id, 80)}' is up", hint="mam team list --all")
        return team
    team = _find_open_team(context, caller, find_caller_pane(context, caller))
    if team is not None:
        return team
    if not open_teams:
        raise TeamNotFound("no team is up", hint="mam team up PRESET")
    if len(open_teams) > 1:
        raise Usage("several teams are up", hint=f"name one: {', '.join(team.id for team in open_teams[:6])}")
    return open_teams[0]


def find_ended_team(context: Context, team_id: str | None) -> Team | None:
    """Return the named team, else the last team, if no team of that name is up and it has ended."""
    no_teams: list[Team] = []
    listed = context.registry.peek(lambda transaction: teams.listed(transaction, ended=True), no_teams)
    candidates = [team for team in listed if team_id is None or team_id in (team.id, team.name)]
    if any(team.ended_at is None for team in candidates):
        return None
    return max(candidates, key=lambda team: team.ended_at or 0.0, default=None)


def _find_open_team(context: Context, caller: Caller, caller_pane: CallerPane | None) -> Team | None:
    no_teams: list[Team] = []
    open_teams = context.registry.peek(teams.listed, no_teams)
    if caller_pane is not None:
        return next((team for team in open_teams if _is_at(team, caller_pane)), None)
    caller_name = caller.name
    outside = [team for team in open_teams if team.master_pane is None and team.by == caller_name]
    return next((team for team in reversed(outside) if _live_window(context, team) is not None), None)


def _is_at(team: Team, caller_pane: CallerPane) -> bool:
    window = (caller_pane.server, caller_pane.pane.server_pid, caller_pane.pane.window_id)
    return (team.server, team.server_pid, team.window_id) == window


def _is_in(team: Team, team_window: TeamWindow) -> bool:
    window = (team_window.server, team_window.server_pid, team_window.window_id)
    return (team.server, team.server_pid, team.window_id) == window


def _live_window(context: Context, team: Team) -> windows.Window | None:
    if team.window_id is None or context.tmux(team.server).server_pid() != team.server_pid:
        return None
    return windows.show(context.tmux(team.server), team.window_id)


def resume_placement(context: Context, row: Row) -> Placement | None:
    """Return the team's window as the placement of a resumed member; None if there is no room."""
    member = context.registry.peek(lambda transaction: teams.member(transaction, row["id"]), None)
    if member is None or not teams.is_open(member):
        return None
    team = context.registry.peek(lambda transaction: teams.find(transaction, member.team_id), None)
    if team is None or team.ended_at is not None or _live_window(context, team) is None:
        return None
    try:
        check_room(context, window_of_team(team))
    except Refused as error:
        context.warn(f"'{row['name']}' gets a tmux session of its own: {error}")
        return None
    return Placement(window_id=team.window_id, keeps_pane=True)


def check_room(context: Context, team_window: TeamWindow) -> None:
    """Refuse another pane if the panes would be too small to show an agent's input box."""
    if team_window.window_id is None:
        return
    window = windows.show(context.tmux(team_window.server), team_window.window_id)
    if window is None:
        raise PaneGone(
            f"the window of the team {team_window.team_id} is gone", hint="mam team down ends the team"
        )
    pane_count = len(window.panes)
    is_beside = team_window.layout == rules.LAYOUTS["left"]
    lines = window.height // pane_count - 1 if is_beside else window.height // 2 - 1
    columns = window.width // 2 if is_beside else window.width // pane_count - 1
    if lines < rules.LEAST_LINES or columns < rules.LEAST_COLUMNS:
        raise Refused(
            f"the window has no room for one more agent ({window.width}x{window.height}, {pane_count} panes)",
            hint="make the terminal larger, or close a member first",
        )
