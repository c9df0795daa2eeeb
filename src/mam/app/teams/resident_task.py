"""The resident's part in teams: it greets whom a dead spawner left, and keeps the team pages true."""

from __future__ import annotations

import time

from mam.adapters.store.tables import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.teams import Team
    from mam.app.context.context import Context

_SELDOM = 3600.0


class TeamTask:
    """Goes along with the resident: after each pass it looks at the teams that are up."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def due(self) -> float:
        """Never on its own account: what happens to a team is a change that makes a pass."""
        return time.monotonic() + _SELDOM

    def handles(self) -> tuple[int, ...]:
        """It watches nothing of its own."""
        return ()

    def is_needed(self) -> bool:
        """A team without a session that runs needs nobody."""
        return False

    def tick(self) -> str:
        """Finish what was cut off, and write what is new, a message that did not arrive too."""
        nothing: list[Team] = []
        if self.context.registry.peek(teams.listed, nothing):
            from mam.app.teams.onboarding import finish_spawns
            from mam.app.teams.team_page import write

            finish_spawns(self.context)
            write(self.context)
        return ""
