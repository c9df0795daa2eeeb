"""The verbs of `fleet.demo`, with which the guided tour uses its own tmux server."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, checked


def server_name(pid: int) -> str:
    """Return the name of the tmux server that the demonstration of one process has for itself."""
    from mam.app.sessions import demo_view_and_shutdown

    return demo_view_and_shutdown.server_name(pid)


class Demo(VerbGroup):
    """The tmux server of a demonstration."""

    __slots__ = ()

    @checked
    def show(self, server: str) -> None:
        """Attach this terminal to the running sessions, and return when the person detaches."""
        from mam.app.sessions.demo_view_and_shutdown import show

        show(self._context, server)

    @checked
    def end(self, server: str) -> None:
        """End the server and every process in it; raise StopUnconfirmed if a process stays."""
        from mam.app.sessions.demo_view_and_shutdown import end

        end(self._context, server)
