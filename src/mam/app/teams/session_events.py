"""A member of a team that gets another name or another pane keeps its place in the team."""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.core.errors import MamError
from mam.core.session_event import Renamed, Resumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.teams import Member, Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.session_event import SessionEvent


def on_session_event(context: Context, draft: Transaction, event: SessionEvent) -> None:
    """Bring the membership and the team's page in line; a session without a team costs one look."""
    if not isinstance(event, Renamed | Resumed):
        return
    member = teams.member(draft, event.row["id"])
    team = teams.find(draft, member.team_id) if member is not None else None
    if member is None or team is None or team.ended_at is not None:
        return
    if isinstance(event, Renamed):
        teams.update(draft, member, name=event.row["name"])
        draft.after_commit(lambda: _write_page(context, member))
    elif teams.is_open(member):
        draft.after_commit(lambda: _welcome_back(context, event, team))


def _write_page(context: Context, member: Member) -> None:
    from mam.app.teams.team_page import write

    write(context, [member.team_id])


def _welcome_back(context: Context, event: Resumed, team: Team) -> None:
    """Put a member that goes on in its team's window into its place again.

    A new tmux server counts its windows from @0 again, so the server has to be the same one.
    """
    from mam.adapters.tmux.window import pane_of
    from mam.app.teams.onboarding import welcome_back

    row = event.row
    try:
        pane = pane_of(context.tmux(row["tmux_server"]), row["pane"]["id"])
        window = (team.server, team.server_pid, team.window_id)
        if pane is not None and (row["tmux_server"], pane.server_pid, pane.window_id) == window:
            welcome_back(context, row)
    except MamError as error:
        context.warn(f"'{row['name']}' runs, and its window could not be put in order: {error}")
