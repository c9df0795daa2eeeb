"""A process that listens like a tmux server, and records what a client sends before it ends."""

from __future__ import annotations

import socket
import threading
from pathlib import Path


class RecordingServer:
    """A listener on a socket; `received` is what the first client sent, up to its command."""

    def __init__(self, path: object, last_word: bytes = b"list-panes") -> None:
        """`last_word` is in the command, which a client sends after its environment."""
        self.path = str(path)
        self.received = b""
        self._last_word = last_word
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> RecordingServer:
        """Serve one client."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End, also if no client came."""
        # This wakes a thread that waits for a client; closing the socket would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        Path(self.path).unlink()

    def _serve(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        # The next client finds no server, so that mam does not ask again.
        self._listener.shutdown(socket.SHUT_RDWR)
        with client:
            while self._last_word not in self.received and (data := client.recv(65536)):
                self.received += data
