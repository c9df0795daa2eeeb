"""The verbs of `fleet.tasks`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, checked, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Tasks(VerbGroup):
    """Tasks for roles. One member claims each."""

    __slots__ = ()

    @checked
    def add(self, text: str, *, role: str, team: str | None = None) -> Document:
        """Add a task for a role; `{task}`. Without a team, any session with the role may claim it."""
        from mam.app.teams.task import add

        return add(self._context, self._caller, text, role=role, team=team)

    @reading
    def list(self, *, role: str | None = None, status: str | None = None) -> Document:
        """Return `{tasks}`, oldest first."""
        from mam.app.teams.task import list_tasks

        return list_tasks(self._context, role=role, status=status)

    @checked
    def claim(
        self, task: str | None = None, *, role: str | None = None, session: str | None = None
    ) -> Document:
        """Claim a task, or the oldest open task of a role; `{task, changed}`.

        If several sessions try, one gets the task. The others get Conflict, or TaskNotFound if no task of
        the role is open.
        """
        from mam.app.teams.task import claim

        return claim(self._context, self._caller, task, role=role, session=session)

    @checked
    def finish(self, task: str, *, result: str | None = None) -> Document:
        """Mark a task as done, without a report; `{task, changed}`."""
        from mam.app.teams.task import finish

        return finish(self._context, self._caller, task, result=result)
