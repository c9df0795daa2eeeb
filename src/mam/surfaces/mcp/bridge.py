"""The bridge: the process that an MCP client starts, which forwards lines to the server in the resident.

It uses only the standard library, because every agent runs one. If the resident dies, the bridge starts
another one, repeats the client's introduction and goes on. It repeats calls that only read. It never repeats
a call that changes something, but answers that the outcome is unconfirmed.
"""

from __future__ import annotations

import json
import os
import select
import time

from mam.core.errors import Unavailable, Unconfirmed, Usage
from mam.surfaces.mcp.read_only_tool_names import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from typing import Any

    from mam.core.errors import MamError

    Message = dict[str, Any]

# Bytes of the longest line that the server takes: a message of 1 MB may be six times as long in JSON.
LONGEST_LINE = 16 * 1024 * 1024
_CHUNK = 65536
# Seconds until a resident must answer, between two attempts to start one, and between two connects.
_PATIENCE, _AGAIN, _STEP = 30.0, 3.0, 0.02
_INTRODUCTION = "mam-bridge"
_INTERNAL_ERROR = -32603


class Bridge:
    """Forwards between one client and the server, and replaces a server that ends."""

    def __init__(
        self,
        connect: Callable[[], socket | None],
        start_resident: Callable[[], None],
        hello: Message,
        *,
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """`hello` introduces the client to the server; `source` and `sink` are the client's descriptors."""
        self.connect = connect
        self.start_resident = start_resident
        self.hello = _line(hello)
        self.source = source
        self.sink = sink
        self.server: socket | None = None
        self.from_client = Lines()
        self.from_server = Lines()
        # The client's `initialize` request, and the requests that have no answer yet, by id.
        self.initialize_request: Message | None = None
        self.is_initialized = False
        self.open: dict[str, Request] = {}
        # The ids of requests of this server to the client. An answer to a request of an earlier server is
        # dropped, because this server does not know it.
        self.server_requests: set[str] = set()

    def run(self) -> None:
        """Forward until the client is gone."""
        try:
            self._forward()
        finally:
            self._disconnect()

    def _forward(self) -> None:
        self._connect_server()
        while True:
            poll = select.poll()
            poll.register(self.source, select.POLLIN)
            if self.server is not None:
                poll.register(self.server, select.POLLIN)
            for handle, _ in poll.poll():
                if handle == self.source:
                    if not self._read_client():
                        return
                elif self.server is not None and handle == self.server.fileno():
                    self._read_server()

    def _read_client(self) -> bool:
        data = os.read(self.source, _CHUNK)
        if not data:
            return False
        for line in self.from_client.take(data):
            if len(line) <= LONGEST_LINE:
                self._forward_to_server(line)
            else:
                self._refuse(line)
        return True

    def _refuse(self, line: bytes) -> None:
        """Answer a line that is too long. The server would disconnect, and the bridge would repeat it."""
        message = _parse(line)
        if _key(message) is not None and "method" in message:
            self._answer(message, _too_long_error())

    def _forward_to_server(self, line: bytes) -> None:
        """Forward a line of the client; remember a request until it is answered."""
        message = _parse(line)
        method, key = message.get("method"), _key(message)
        request = None
        if method is None and key is not None:
            if key not in self.server_requests:
                return
            self.server_requests.discard(key)
        elif method == "notifications/initialized":
            self.is_initialized = True
        elif method == "notifications/cancelled":
            self.open.pop(json.dumps(_params(message).get("requestId")), None)
        elif key is not None:
            if method == "initialize":
                self.initialize_request = message
            request = self.open[key] = Request(message, line)
        if self.server is None:
            # Connecting sends every open request.
            self._connect_server()
        elif request is not None:
            self._send_request(request)
        else:
            self._send_to_server(line)

    def _send_request(self, request: Request) -> None:
        request.is_sent = True
        self._send_to_server(request.line)

    def _send_to_server(self, line: bytes) -> None:
        try:
            if self.server is not None:
                self.server.sendall(line)
        except OSError:
            # The loop notices the end of the connection, and connects to another server.
            return

    def _read_server(self) -> None:
        data = self._receive()
        if not data:
            self._disconnect()
            self._connect_server()
            return
        for line in self.from_server.take(data):
            message = _parse(line)
            key = _key(message)
            if key is not None and "method" in message:
                self.server_requests.add(key)
            elif key is not None:
                self.open.pop(key, None)
            self._send_to_client(line)

    def _receive(self) -> bytes:
        try:
            return self.server.recv(_CHUNK) if self.server is not None else b""
        except OSError:
            return b""

    def _disconnect(self) -> None:
        if self.server is not None:
            self.server.close()
        self.server = None
        self.from_server = Lines()
        self.server_requests.clear()

    def _connect_server(self) -> None:
        """Connect to a server, introduce the client, and repeat or answer the open requests."""
        unconfirmed = [
            request for request in self.open.values() if request.is_sent and not _may_repeat(request.message)
        ]
        try:
            self._find_server()
        except Unavailable as error:
            self._disconnect()
            for request in list(self.open.values()):
                self._answer(request.message, error if request not in unconfirmed else _unconfirmed_error())
            return
        for request in unconfirmed:
            self._answer(request.message, _unconfirmed_error())
        for request in list(self.open.values()):
            self._send_request(request)

    def _find_server(self) -> None:
        """Connect, and introduce the client; raise Unavailable if no server answers in time."""
        deadline = time.monotonic() + _PATIENCE
        started_at = 0.0
        while time.monotonic() < deadline:
            self.server = self.connect()
            if self.server is not None:
                self._send_to_server(self.hello)
                if self._initialize_server(deadline):
                    return
                self._disconnect()
            if time.monotonic() > started_at + _AGAIN:
                self.start_resident()
                started_at = time.monotonic()
            time.sleep(_STEP)
        raise Unavailable(
            "the resident of this root does not start", hint="mam monitor runs one, and shows what is wrong"
        )

    def _initialize_server(self, deadline: float) -> bool:
        """Repeat the client's `initialize` to a new server, and consume the answer; False if it went away."""
        request = self.initialize_request
        if request is None or _key(request) in self.open:
            return True
        self._send_to_server(_line({**request, "id": _INTRODUCTION}))
        while self.server is not None and (seconds := deadline - time.monotonic()) > 0:
            if not select.select([self.server], [], [], seconds)[0]:
                return False
            data = self._receive()
            if not data:
                return False
            if any(_parse(line).get("id") == _INTRODUCTION for line in self.from_server.take(data)):
                if self.is_initialized:
                    self._send_to_server(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                return True
        return False

    def _answer(self, message: Message, error: MamError) -> None:
        """Answer a request with an error in place of the server."""
        self.open.pop(_key(message) or "", None)
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        document = error.as_json()
        if message.get("method") == "tools/call":
            content = [{"type": "text", "text": json.dumps(document)}]
            reply["result"] = {"content": content, "structuredContent": document, "isError": True}
        else:
            reply["error"] = {"code": _INTERNAL_ERROR, "message": error.message, "data": document["error"]}
        self._send_to_client(_line(reply))

    def _send_to_client(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self.sink, view) :]


class Request:
    """An open request of the client: its line, and whether a server has got it."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.is_sent = False


class Lines:
    """Splits received bytes into lines, which keep their line break."""

    def __init__(self) -> None:
        self._incomplete: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now."""
        if b"\n" not in data:
            self._incomplete.append(data)
            return []
        *complete, incomplete = b"".join([*self._incomplete, data]).split(b"\n")
        self._incomplete = [incomplete] if incomplete else []
        return [line + b"\n" for line in complete]


def _unconfirmed_error() -> Unconfirmed:
    return Unconfirmed(
        "the resident ended during this call, so mam does not know whether the call took effect",
        hint="check with list_agents or get_agent_state before you repeat the call",
    )


def _too_long_error() -> Usage:
    return Usage(
        f"a call may be at most {LONGEST_LINE // 2**20} MB long",
        hint="put the text into a file and name the file",
    )


def _may_repeat(message: Message) -> bool:
    name = _params(message).get("name")
    return message.get("method") != "tools/call" or (isinstance(name, str) and name in READS)


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _parse(line: bytes) -> Message:
    """Return the message of a line, or {} for an invalid one, which the other side then rejects."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _key(message: Message) -> str | None:
    return json.dumps(message["id"]) if message.get("id") is not None else None


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"
