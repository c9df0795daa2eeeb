"""Where a member of a team goes on when it is resumed: in the window of its team."""

from __future__ import annotations

from mam.app.teams.team_window import home_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Where
    from mam.core.session_row import Row


class TeamHome:
    """The home of `sessions.resume` for the members of teams; other sessions have none."""

    def find(self, context: Context, row: Row) -> Where | None:
        """Return the window of the team, if the session is a member, the team is up and there is room."""
        return home_of(context, row)
