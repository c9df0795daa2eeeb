"""The verbs of `fleet.agents`."""

from __future__ import annotations

from mam.app.api.access import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.core.session_row import Row

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Agents(Group):
    """What agents that run other agents ask: how each one is, who started whom, what they may do."""

    __slots__ = ()

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

    def get(self, target: str) -> Document:
        """Return one session in these words, looked at thoroughly."""
        from mam.app.agent_tools.agent_view import agent

        return agent(self._context, self._caller, target)

    def wait(
        self,
        *,
        ids: Sequence[str] = (),
        mine: bool = False,
        state: str = "done",
        timeout: float = 300.0,
        tell: Callable[[Documents], None] = lambda _found: None,
        pause: Callable[[float], bool] | None = None,
    ) -> Document:
        """Wait until sessions are ready, working, idle, done or in error; return how each is then.

        One that ended otherwise, or that asks somebody something, is not waited for any longer.
        """
        from mam.app.agent_tools.wait_for_agents import gather

        return gather(
            self._context,
            self._caller,
            ids=ids,
            mine=mine,
            state=state,
            timeout=timeout,
            tell=tell,
            pause=pause,
        )

    def panes(self) -> Document:
        """Return the tmux servers of this root and every pane on them."""
        from mam.app.agent_tools.list_panes import surfaces

        return surfaces(self._context)

    def in_pane(self, pane: str) -> str:
        """Return the id of the session in a pane of the tmux server in use; SessionNotFound."""
        from mam.app.agent_tools.list_panes import in_pane

        return in_pane(self._context, pane)

    def authorize(self, act: str, target: str) -> Row:
        """Return the session that the caller may `message`, `stop`, `resume` or `purge`; else NotAllowed."""
        from mam.app.context.authority import check

        return check(self._context, self._caller, act, target)

    def authorize_child(
        self, agent: str, permissions: str | None, usual: str, name: str | None = None
    ) -> str | None:
        """Return the permissions of a child of the caller: as asked or as usual, and never above its own."""
        from mam.app.context.authority import check_child

        return check_child(self._context, self._caller, agent, permissions, usual, name)

    def reachable(self, act: str) -> Names:
        """Return the ids of the sessions to which the caller may do that; a person may to all."""
        from mam.app.context.authority import reachable

        return reachable(self._context, self._caller, act)
