"""The verbs of `fleet.demo`: what the guided tour does with its own tmux server."""

from __future__ import annotations

from mam.app.api.access import Group


class Demo(Group):
    """The tmux server of a demonstration."""

    __slots__ = ()

    def show(self, server: str) -> None:
        """Show the running sessions to the person at this terminal, and return when they have left."""
        from mam.app.sessions.demo_server import show

        show(self._context, server)

    def end(self, server: str) -> None:
        """End the server and every process in it; StopUnconfirmed if one stays."""
        from mam.app.sessions.demo_server import end

        end(self._context, server)
