"""The verbs of `fleet.tasks`."""

from __future__ import annotations

from mam.app.api.access import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Tasks(Group):
    """Lines of work that roles claim."""

    __slots__ = ()

    def add(self, text: str, *, role: str, team: str | None = None) -> Document:
        """Add a task for a role; `{task}`. Without a team, whoever has that role may claim it."""
        from mam.app.teams.task import add

        return add(self._context, self._caller, text, role=role, team=team)

    def list(self, *, role: str | None = None, status: str | None = None) -> Document:
        """Return `{tasks}`, oldest first."""
        from mam.app.teams.task import list_tasks

        return list_tasks(self._context, role=role, status=status)

    def claim(
        self, task: str | None = None, *, role: str | None = None, session: str | None = None
    ) -> Document:
        """Claim a task, or the oldest that waits for a role; `{task, changed}`.

        Of any number who try one gets it: the others get Conflict, or TaskNotFound where nothing waits.
        """
        from mam.app.teams.task import claim

        return claim(self._context, self._caller, task, role=role, session=session)

    def finish(self, task: str, *, result: str | None = None) -> Document:
        """Say that a task is done, without a report; `{task, changed}`."""
        from mam.app.teams.task import finish

        return finish(self._context, self._caller, task, result=result)
