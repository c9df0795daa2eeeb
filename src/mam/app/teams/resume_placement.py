"""Where a resumed member of a team gets its pane: in the window of its team."""

from __future__ import annotations

from mam.app.teams.team_window import resume_placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Placement
    from mam.core.session_row import Row


class TeamPlacementFinder:
    """The `PlacementFinder` of `sessions.resume` for members of teams."""

    def find(self, context: Context, row: Row) -> Placement | None:
        """Return the team's window, if the session is a member, the team is up and there is room."""
        return resume_placement(context, row)
