"""The verbs of `fleet.mcp`: where the MCP server of a root listens, and who its clients are."""

from __future__ import annotations

from mam.app.api.access import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from mam.app.agent_tools.connected_client import ConnectedClient
    from mam.app.agent_tools.listener import Listener


class Mcp(Group):
    """What the MCP surface needs of a root."""

    __slots__ = ()

    @property
    def state(self) -> str:
        """The folder of the root's state, by which a client says which root it means."""
        return self._context.paths.state

    def is_hosted(self) -> bool:
        """Tell whether a resident serves this root, or may be started to."""
        from mam.app.agent_tools.listener import is_hosted

        return is_hosted(self._context)

    def connect(self) -> socket | None:
        """Return a connection to the server of this root; None if none listens, or not yet."""
        from mam.app.agent_tools.listener import enter

        return enter(self._context)

    def start_resident(self) -> None:
        """Have a resident started that waits for a client."""
        from mam.app.context.start_resident import ensure

        ensure(self._context, for_client=True)

    def listen(self) -> Listener:
        """Return the socket of the server; only the resident has it."""
        from mam.app.agent_tools.listener import Listener

        return Listener(self._context)

    def client(self, line: socket, said: Mapping[str, object]) -> ConnectedClient:
        """Return who is at the other end of a connection; NotAllowed where it is nobody of ours."""
        from mam.app.agent_tools.connected_client import ConnectedClient

        return ConnectedClient(self._context, line, said)

    def warn(self, text: str) -> None:
        """Say what deserves attention and stops nothing."""
        self._context.warn(text)
