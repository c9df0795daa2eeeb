"""Ears on tmux servers: one control client per server says when sessions and windows come and go.

Only on servers that a control client cannot crash; of the others the full pass finds out.
"""

from __future__ import annotations

from mam.adapters.tmux.control import ControlClient
from mam.adapters.tmux.failures import ControlUnsafe
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Hubs:
    """The control clients of one resident, by server and the server's process."""

    def __init__(self, *, unsafe: bool = False) -> None:
        """`unsafe` connects to any server: for tests on servers of their own."""
        self._unsafe = unsafe
        self._clients: dict[tuple[str, int], ControlClient] = {}
        self._refused: set[tuple[str, int]] = set()

    def keep(self, servers: Mapping[str, int], environ: Mapping[str, str]) -> None:
        """Listen to these servers and to no others; one that was refused is asked again once restarted."""
        wanted = set(servers.items())
        for key in self._clients.keys() - wanted:
            self._clients.pop(key).close()
        self._refused &= wanted
        for key in sorted(wanted - self._clients.keys() - self._refused):
            try:
                self._clients[key] = ControlClient(key[0], environ=environ, unsafe=self._unsafe)
            except ControlUnsafe:
                self._refused.add(key)
            except MamError:
                continue  # it ended just now, or does not answer: the next full pass tries again

    def handles(self) -> list[int]:
        """Return what is readable when a server speaks."""
        return [client.fileno() for client in self._clients.values()]

    def heard(self) -> bool:
        """Tell whether something came or went; a server that ended is let go."""
        is_news = False
        for key, client in list(self._clients.items()):
            is_news = bool(client.events(0)) or is_news
            if not client.alive:
                self._clients.pop(key).close()
        return is_news

    def close(self) -> None:
        """Leave every server."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
