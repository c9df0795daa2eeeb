"""The window of a team: the caller's window with the caller as master, or a tmux session of its own."""

from __future__ import annotations

import secrets
import time

from mam.adapters.store.files import team_page_file
from mam.adapters.store.tables import teams
from mam.adapters.tmux import window as windows
from mam.app.sessions.launch import Placement
from mam.app.teams.caller_pane import find_caller_pane
from mam.core import team_plan as rules
from mam.core.errors import PaneGone, Refused, TeamNotFound, Usage
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.root_paths import RootPaths
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
        # Set if the environment names the team: its page is in a session folder, and it may go on after it
        # has ended.
        self.session_paths: RootPaths | None = None
        self._made_folders: list[str] = []
        self._former_end: float | None = None

    def use_caller_window(self, caller_pane: CallerPane) -> None:
        """Use the caller's window, with the caller's pane as the master."""
        self.server = caller_pane.server
        self.window_id = caller_pane.pane.window_id
        self.server_pid = caller_pane.pane.server_pid
        self.master_pane = caller_pane.pane.id
        self.master_id = caller_pane.row["id"] if caller_pane.row else None

    def open(self, transaction: Transaction, by: str) -> None:
        """Record the team with its first member, or join a team that began in this window meanwhile.

        A team that the environment names goes on after its end. It does not share the window of another one.
        """
        named_team, other_team = teams.find(transaction, self.team_id), self._team_of_window(transaction)
        facts = {
            "server": self.server,
            "server_pid": self.server_pid,
            "window_id": self.window_id,
            "master_pane": self.master_pane,
            "master_id": self.master_id,
            "layout": self.layout,
            "by": by,
        }
        is_up = named_team is not None and named_team.ended_at is None
        if self.session_paths is not None and not is_up and other_team is not None:
            raise Refused(
                f"this window has the team {other_team.id}, and not {self.team_id}",
                hint=f"use another window, or unset {rules.SESSION_VARIABLE}",
            )
        team = named_team or other_team
        if team is None:
            teams.add(transaction, id=self.team_id, name=self.name, **facts)
            self.needs_master_name = True
        elif team.ended_at is None:
            self.team_id = team.id
        elif self.session_paths is not None:
            self._former_end = team.ended_at
            teams.change(transaction, team.id, ended_at=None, name=self.name or team.name, **facts)
            self.needs_master_name = True
        else:
            raise Refused(f"the team {team.id} is down", hint="mam team up starts another team")
        if self.session_paths is not None:
            self._made_folders += team_page_file.make_session_folder(self.session_paths, self.team_id)

    def undo_open(self, transaction: Transaction) -> None:
        """Remove a team whose first member did not start, or end it again."""
        if any(teams.is_open(member) for member in teams.members(transaction, self.team_id)):
            return
        teams.remove(transaction, self.team_id)
        if self._former_end is not None:
            teams.change(transaction, self.team_id, ended_at=self._former_end)

    def remove_made_folders(self) -> None:
        """Remove the folders that this object made for the team page, as far as they are empty."""
        team_page_file.remove_session_folder(self._made_folders)
        self._made_folders = []

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

    The team of a caller that is a member is its own. The environment may name the team of another caller.
    Outside of tmux the caller's team is the last one that the same caller began outside of tmux.
    """
    if team_id is not None:
        return window_of_team(find_team(context, caller, team_id))
    caller_pane = find_caller_pane(context, caller)
    session_id = _session_id(context, caller)
    team = (
        _find_open_team(context, caller, caller_pane)
        if session_id is None
        else _open_team(context, session_id)
    )
    team_window = (
        window_of_team(team) if team else _new_window(context, caller_pane, session_id, name, layout)
    )
    if session_id is not None:
        team_window.session_paths = context.paths
        session_file = team_page_file.session_file_of_person(context.paths, session_id)
        if session_file is not None:
            page = team_page_file.path_of(context.paths, session_id)
            context.warn(f"mam did not write {session_file} and leaves it as it is; the team page is {page}")
    return team_window


def _new_window(
    context: Context,
    caller_pane: CallerPane | None,
    session_id: str | None,
    name: str | None,
    layout: str | None,
) -> TeamWindow:
    day = time.strftime("%Y-%m-%d", time.gmtime(context.now()))
    team_window = TeamWindow(
        team_id=session_id or rules.team_id(day, name or "by hand", secrets.token_hex(2)),
        name=name,
        server=context.server_name(None),
        layout=layout or rules.LAYOUTS["left"],
    )
    if caller_pane is not None:
        team_window.use_caller_window(caller_pane)
    return team_window


def find_team(context: Context, caller: Caller, team_id: str | None = None) -> Team:
    """Return the named team, else the team of the caller's window, else the only team that is up.

    The environment may name a team, too; one that is not up is ignored here.
    """
    no_teams: list[Team] = []
    open_teams = context.registry.peek(teams.listed, no_teams)
    if team_id is not None:
        team = next((team for team in open_teams if team_id in (team.id, team.name)), None)
        if team is None:
            raise TeamNotFound(f"no team '{one_line(team_id, 80)}' is up", hint="mam team list --all")
        return team
    session_id = _session_id(context, caller)
    team = _open_team(context, session_id) if session_id is not None else None
    team = team or _find_open_team(context, caller, find_caller_pane(context, caller))
    if team is not None:
        return team
    if not open_teams:
        raise TeamNotFound("no team is up", hint="mam team up PRESET")
    if len(open_teams) > 1:
        raise Usage("several teams are up", hint=f"name one: {', '.join(team.id for team in open_teams[:6])}")
    return open_teams[0]


def find_ended_team(context: Context, caller: Caller, team_id: str | None) -> Team | None:
    """Return the team that `find_team` would look for, if it is down already.

    Without a name it is the team that the environment names, else that of the caller's window, else the last
    one of all, as long as none of these is up.
    """
    no_teams: list[Team] = []
    listed = context.registry.peek(lambda transaction: teams.listed(transaction, ended=True), no_teams)
    if team_id is not None:
        candidates = [team for team in listed if team_id in (team.id, team.name)]
    else:
        session_id, caller_pane = _session_id(context, caller), find_caller_pane(context, caller)
        candidates = (
            [team for team in listed if team.id == session_id]
            or [team for team in listed if caller_pane is not None and _is_at(team, caller_pane)]
            or listed
        )
    if any(team.ended_at is None for team in candidates):
        return None
    return max(candidates, key=lambda team: team.ended_at or 0.0, default=None)


def _session_id(context: Context, caller: Caller) -> str | None:
    """Return the id of the team that the environment names; None for a member, which has a team already."""
    session_id, calling_session = rules.session_id(context.environ), caller.session_id
    if session_id is None or calling_session is None:
        return session_id
    member = context.registry.peek(lambda transaction: teams.member(transaction, calling_session), None)
    return None if member is not None and teams.is_open(member) else session_id


def _open_team(context: Context, team_id: str) -> Team | None:
    team = context.registry.peek(lambda transaction: teams.find(transaction, team_id), None)
    return team if team is not None and team.ended_at is None else None


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
