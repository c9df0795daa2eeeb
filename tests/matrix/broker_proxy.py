"""A proxy in front of a broker, on the loopback device, that can be closed, blocked, slow or broken."""

from __future__ import annotations

import select
import socket
import threading
import time

OPEN, CLOSED, CUT, BLOCKED = "open", "closed", "cut", "blocked"


class BrokerProxy:
    """Passes the bytes of each connection on to the broker, as its mode says.

    `closed`: nobody listens. `cut`: a connection ends as soon as it asks for something after its greeting.
    `blocked`: after the greeting nothing is read or answered any more. `delay` holds back each piece.
    """

    def __init__(self, broker_port: int) -> None:
        self.mode = OPEN
        self.delay = 0.0
        # So many connections are cut at once.
        self.to_cut = 0
        self.connections = 0
        self._broker_port = broker_port
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def set(self, mode: str) -> None:
        """Change the mode; new connections see it at once."""
        if mode == CLOSED:
            self.close()
        elif self.mode == CLOSED:
            self._listener = self._listen(self.port)
        self.mode = mode

    def close(self) -> None:
        """Listen no more."""
        # Without a shutdown, the thread that accepts keeps the port open.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.to_cut > 0:
                self.to_cut -= 1
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._broker_port)) as broker:
            has_greeted = False
            while True:
                for source in select.select([client, broker], [], [])[0]:
                    is_client = source is client
                    if is_client and has_greeted and self.mode == CUT:
                        return
                    if has_greeted and self.mode == BLOCKED:
                        # The other side sees a connection on which nothing happens.
                        self._wait_for_the_end()
                        return
                    time.sleep(self.delay)
                    try:
                        data = source.recv(1 << 16)
                        if not data:
                            return
                        (broker if is_client else client).sendall(data)
                    except OSError:
                        return
                    has_greeted = has_greeted or not is_client

    def _wait_for_the_end(self) -> None:
        while self.mode == BLOCKED:
            time.sleep(0.02)
