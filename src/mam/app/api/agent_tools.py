"""The verbs of `fleet.agents`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.core.session_row import Row

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]

_VERB_OF_ACT = {"message": "send", "stop": "stop", "resume": "resume", "purge": "stop"}


class Agents(VerbGroup):
    """The verbs for agents that run other agents: their states, their parents, and what they may do."""

    __slots__ = ()

    @reading
    def list(
        self,
        *,
        ids: Sequence[str] = (),
        mine: bool = False,
        parent: str | None = None,
        thorough: bool = False,
    ) -> Documents:
        """Return sessions as `{agent_id, name, state, blocked_on_prompt, …}`: all, some, or the caller's."""
        from mam.app.agent_tools.agent_view import agents

        return agents(self._context, self._caller, ids=ids, mine=mine, parent=parent, thorough=thorough)

    @reading
    def get(self, target: str) -> Document:
        """Return one session as `list` does, with a thorough look at its activity."""
        from mam.app.agent_tools.agent_view import agent

        return agent(self._context, self._caller, target)

    @reading
    def wait(
        self,
        *,
        ids: Sequence[str] = (),
        mine: bool = False,
        state: str = "done",
        timeout: float = 300.0,
        tell: Callable[[Documents], None] = lambda _agents: None,
        pause: Callable[[float], bool] | None = None,
    ) -> Document:
        """Wait until sessions are ready, working, idle, done or in error; return the state of each.

        The wait for a session also ends if the session has ended otherwise or waits at a dialog.
        """
        from mam.app.agent_tools.wait_for_agents import wait_for_agents

        return wait_for_agents(
            self._context,
            self._caller,
            ids=ids,
            mine=mine,
            state=state,
            timeout=timeout,
            tell=tell,
            pause=pause,
        )

    @reading
    def panes(self) -> Document:
        """Return the tmux servers of this root and every pane on them."""
        from mam.app.agent_tools.list_panes import list_panes

        return list_panes(self._context)

    @reading
    def in_pane(self, pane: str) -> str:
        """Return the id of the running session in a pane; raise SessionNotFound without one."""
        from mam.app.agent_tools.list_panes import session_in_pane

        return session_in_pane(self._context, pane)

    def authorize(self, act: str, target: str) -> Row:
        """Return the session if the caller may `message`, `stop`, `resume` or `purge` it; else NotAllowed."""
        from mam.app.context.authority import check

        self._access.check_verb(_VERB_OF_ACT[act])
        return check(self._context, self._caller, act, target)

    def authorize_child(
        self, agent: str, permissions: str | None, usual: str, name: str | None = None
    ) -> str | None:
        """Return the permissions for a child: requested or usual ones, and never above the caller's own."""
        from mam.app.context.authority import check_child

        self._access.check_verb("create")
        return check_child(self._context, self._caller, agent, permissions, usual, name)

    def reachable(self, act: str) -> Names:
        """Return the ids of the sessions to which the caller may do `act`; for a person, all."""
        from mam.app.context.authority import reachable

        self._access.check_verb(_VERB_OF_ACT[act])
        return reachable(self._context, self._caller, act)
