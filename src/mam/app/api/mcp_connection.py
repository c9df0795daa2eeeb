"""The verbs of `fleet.mcp`: the socket of a root's MCP server, and the identity of its clients."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from mam.app.agent_tools.connected_client import ConnectedClient
    from mam.app.agent_tools.mcp_socket import Listener

# The MCP surface takes the types of what the verbs return from here.
__all__ = ["ConnectedClient", "Listener", "Mcp"]


class Mcp(VerbGroup):
    """The verbs that the MCP surface needs."""

    __slots__ = ()

    @property
    def state(self) -> str:
        """The folder of the root's state; a client names it, so that the server can refuse another root's."""
        return self._context.paths.state

    def is_hosted(self) -> bool:
        """Tell whether a resident serves this root, or the settings allow to start one."""
        from mam.app.agent_tools.mcp_socket import has_server

        return has_server(self._context)

    def connect(self) -> socket | None:
        """Return a connection to the MCP server of this root; None if no server listens."""
        from mam.app.agent_tools.mcp_socket import connect

        return connect(self._context)

    def start_resident(self) -> None:
        """Start a resident that waits for a client."""
        from mam.app.context.resident_start_and_lock import ensure

        ensure(self._context, for_client=True)

    def listen(self) -> Listener:
        """Return the listening socket of the server; only the resident calls this."""
        from mam.app.agent_tools.mcp_socket import Listener

        return Listener(self._context)

    def client(self, connection: socket, introduction: Mapping[str, object]) -> ConnectedClient:
        """Return the client of a connection; raise NotAllowed for another user or another root."""
        from mam.app.agent_tools.connected_client import ConnectedClient

        return ConnectedClient(self._context, connection, introduction)

    def allowed(self, introduction: Mapping[str, object]) -> tuple[str, ...]:
        """Return the guarded tools that the server would give to this process as a client."""
        if not introduction.get("allow") and not self._context.settings().mcp["allow"]:
            return ()
        from socket import socketpair

        # The peer of this connection is this process, so the answer is that of the server.
        ours, theirs = socketpair()
        with ours, theirs:
            return self.client(ours, introduction).allowed()

    def warn(self, text: str) -> None:
        """Warn of a problem that does not stop the server."""
        self._context.warn(text)
