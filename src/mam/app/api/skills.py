"""The verbs of `fleet.skills`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Skills(VerbGroup):
    """Skills that teach agents these verbs."""

    __slots__ = ()

    @checked
    def install(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Write the skills of this version into the folder that an agent reads; `{directory, skills}`.

        A file that a person has changed is not overwritten.
        """
        from mam.app.agent_tools.skills import install

        return install(self._context, folder, agent)

    def list(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Return the skills, and whether each is absent, current, older or changed in the folder."""
        from mam.app.agent_tools.skills import list_skills

        return list_skills(self._context, folder, agent)

    @checked
    def uninstall(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Remove the installed skills that nobody has changed."""
        from mam.app.agent_tools.skills import uninstall

        return uninstall(self._context, folder, agent)
