"""The verbs of the API that concern teams and their tasks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.world import World

    Document = dict[str, Any]


class Teams:
    """What can be done with roles, panes and tasks."""

    world: World

    def task_add(self, text: str, *, role: str, team: str | None = None) -> Document:
        """Add a task for a role; `{task}`. Without a team, whoever has that role may claim it."""
        from mam.app.task import add

        return add(self.world, text, role=role, team=team)

    def task_list(self, *, role: str | None = None, status: str | None = None) -> Document:
        """Return `{tasks}`, oldest first."""
        from mam.app.task import list_tasks

        return list_tasks(self.world, role=role, status=status)

    def task_claim(
        self, task: str | None = None, *, role: str | None = None, session: str | None = None
    ) -> Document:
        """Claim a task, or the oldest that waits for a role; `{task, changed}`.

        Of any number who try one gets it: the others get Conflict, or TaskNotFound where nothing waits.
        """
        from mam.app.task import claim

        return claim(self.world, task, role=role, session=session)

    def task_done(self, task: str, *, result: str | None = None) -> Document:
        """Say that a task is done, without a report; `{task, changed}`."""
        from mam.app.task import finish

        return finish(self.world, task, result=result)
