"""The verbs of the API that are made for agents who run others."""

from __future__ import annotations

from mam.app.api.observation import ObservationVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.core.session_row import Row

    Document = dict[str, Any]


class AgentToolVerbs(ObservationVerbs):
    """Sessions in the words of agents, and what a session may do to another."""

    def agents(
        self,
        *,
        ids: Sequence[str] = (),
        mine: bool = False,
        parent: str | None = None,
        thorough: bool = False,
    ) -> list[Document]:
        """Return sessions as `{agent_id, name, state, blocked_on_prompt, …}`: all, some, or the caller's."""
        from mam.app.agent_tools.agent_view import agents

        return agents(self.context, self.caller, ids=ids, mine=mine, parent=parent, thorough=thorough)

    def agent(self, target: str) -> Document:
        """Return one session in these words, looked at thoroughly."""
        from mam.app.agent_tools.agent_view import agent

        return agent(self.context, self.caller, target)

    def gather(
        self,
        *,
        ids: Sequence[str] = (),
        mine: bool = False,
        state: str = "done",
        timeout: float = 300.0,
        tell: Callable[[list[Document]], None] = lambda _found: None,
        pause: Callable[[float], bool] | None = None,
    ) -> Document:
        """Wait until sessions are ready, working, idle, done or in error; return how each is then.

        One that ended otherwise, or that asks somebody something, is not waited for any longer.
        """
        from mam.app.agent_tools.wait_for_agents import gather

        return gather(
            self.context,
            self.caller,
            ids=ids,
            mine=mine,
            state=state,
            timeout=timeout,
            tell=tell,
            pause=pause,
        )

    def surfaces(self) -> Document:
        """Return the tmux servers of this root and every pane on them."""
        from mam.app.agent_tools.list_panes import surfaces

        return surfaces(self.context)

    def in_pane(self, pane: str) -> str:
        """Return the id of the session in a pane of the tmux server in use; SessionNotFound."""
        from mam.app.agent_tools.list_panes import in_pane

        return in_pane(self.context, pane)

    def skills_install(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Write the skills of this version where an agent looks for them; `{directory, skills}`.

        A file that a person has changed is kept.
        """
        from mam.app.agent_tools.skills import install

        return install(self.context, folder, agent)

    def skills_list(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Return the skills, and whether each is absent, current, older or changed there."""
        from mam.app.agent_tools.skills import list_skills

        return list_skills(self.context, folder, agent)

    def skills_uninstall(self, *, folder: str | None = None, agent: str | None = None) -> Document:
        """Remove what was installed and nobody has changed."""
        from mam.app.agent_tools.skills import uninstall

        return uninstall(self.context, folder, agent)

    def is_member(self, target: str) -> bool:
        """Tell whether a session is a member of a team that is up."""
        from mam.app.teams.close import is_member

        return is_member(self.context, target)

    def authorize(self, act: str, target: str) -> Row:
        """Return the session that the caller may `message`, `stop`, `resume` or `purge`; else NotAllowed."""
        from mam.app.context.authority import check

        return check(self.context, self.caller, act, target)

    def authorize_child(
        self, agent: str, permissions: str | None, usual: str, name: str | None = None
    ) -> str | None:
        """Return the permissions of a child of the caller: as asked or as usual, and never above its own."""
        from mam.app.context.authority import check_child

        return check_child(self.context, self.caller, agent, permissions, usual, name)

    def reachable(self, act: str) -> list[str]:
        """Return the ids of the sessions to which the caller may do that; a person may to all."""
        from mam.app.context.authority import reachable

        return reachable(self.context, self.caller, act)

    def change_model(self, target: str, model: str) -> Document:
        """Have a running agent go on with another model; returns the receipt of the command."""
        from mam.app.messages.change_model import change_model
        from mam.app.sessions.begin_change import settle

        settle(self.context, self.caller)
        return change_model(self.context, self.caller, target, model)
