"""The resident task for teams: it finishes interrupted spawns and keeps the team pages up to date."""

from __future__ import annotations

import time

from mam.adapters.store.tables import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.teams import Team
    from mam.app.context.context import Context

_SELDOM = 3600.0


class TeamTask:
    """A resident task: `tick()` runs after each pass and handles the teams that are up."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def due(self) -> float:
        """Ask for no tick of its own: every change of a team causes a pass."""
        return time.monotonic() + _SELDOM

    def handles(self) -> tuple[int, ...]:
        """Watch no file descriptors."""
        return ()

    def is_needed(self) -> bool:
        """Do not keep the resident running: a team without running sessions needs no resident."""
        return False

    def tick(self) -> str:
        """Finish interrupted spawns, and write the team pages with the messages that did not arrive."""
        no_teams: list[Team] = []
        if self.context.registry.peek(teams.listed, no_teams):
            from mam.app.teams.onboarding_steps import finish_spawns
            from mam.app.teams.team_page import write

            finish_spawns(self.context)
            write(self.context)
        return ""
