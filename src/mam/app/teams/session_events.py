"""Keep the membership and the page of a team up to date when a session is renamed, ends or is resumed."""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.core.errors import MamError
from mam.core.session_event import Died, Renamed, Resumed, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Member, Team
    from mam.app.context.context import Context
    from mam.core.session_event import SessionEvent


def on_session_event(context: Context, transaction: Transaction, event: SessionEvent) -> None:
    """Update the membership and the team page of a session that was renamed, has ended or was resumed."""
    if not isinstance(event, Renamed | Resumed | Stopped | Died):
        return
    member = teams.member(transaction, event.row["id"])
    team = teams.find(transaction, member.team_id) if member is not None else None
    if member is None or team is None or team.ended_at is not None:
        return
    if isinstance(event, Renamed):
        teams.update(transaction, member, name=event.row["name"])
    elif not teams.is_open(member):
        return
    elif isinstance(event, Resumed):
        transaction.after_commit(lambda: _place_resumed_member(context, event, team))
    # The page shows whether a member runs.
    transaction.after_commit(lambda: _write_page(context, member))


def _write_page(context: Context, member: Member) -> None:
    from mam.app.teams.team_page import write

    write(context, [member.team_id])


def _place_resumed_member(context: Context, event: Resumed, team: Team) -> None:
    """Put a member that was resumed in its team's window into its place.

    A new tmux server numbers its windows from @0 again, so the server must be the same, too.
    """
    from mam.adapters.tmux.window import pane_of
    from mam.app.teams.onboarding_steps import place_resumed_member

    row = event.row
    try:
        pane = pane_of(context.tmux(row["tmux_server"]), row["pane"]["id"])
        window = (team.server, team.server_pid, team.window_id)
        if pane is not None and (row["tmux_server"], pane.server_pid, pane.window_id) == window:
            place_resumed_member(context, row)
    except MamError as error:
        context.warn(f"'{row['name']}' runs, but its window could not be arranged: {error}")
