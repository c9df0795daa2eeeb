"""The bridge: the process that an MCP client starts, which forwards lines to the server in the resident.

It uses only the standard library, because every agent runs one. Until a server has answered, the bridge
answers by itself what clients ask at their start (`startup_answers.py`), and keeps every other request. If
the resident dies, the bridge starts another one, introduces the client again and goes on. It repeats calls
that only read. It never repeats a call that changes something, but answers that the outcome is unconfirmed.
"""

from __future__ import annotations

import json
import os
import select
import time

import mam
from mam.core.errors import Unavailable, Unconfirmed, Usage
from mam.surfaces.mcp.read_only_tool_names import READS
from mam.surfaces.mcp.startup_answers import StartupAnswers, has_envelope, server_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
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
_BY_BRIDGE = {"id": _INTRODUCTION}
_INTERNAL_ERROR = -32603


class Bridge:
    """Forwards between one client and the server, and replaces a server that ends."""

    def __init__(
        self,
        connect: Callable[[], socket | None],
        start_resident: Callable[[], None],
        hello: Message,
        allowed: Callable[[], Collection[str]],
        *,
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """`hello` introduces the client to the server; `source` and `sink` are the client's descriptors.

        `allowed` returns the guarded tools that the client may use.
        """
        self.connect = connect
        self.start_resident = start_resident
        self.hello = _line(hello)
        self.answers = StartupAnswers(allowed)
        self.source = source
        self.sink = sink
        self.server: socket | None = None
        self.from_client = Lines()
        self.from_server = Lines()
        # While a server is looked for: when the bridge gives up, connects next, and may start a resident.
        self.search_ends: float | None = None
        self.connects_at = self.starts_at = 0.0
        # The request that introduces the client to each server. `is_ready` says that this server knows the
        # client, and may get its requests.
        self.introduction: Message | None = None
        self.is_ready = False
        self.is_initialized = False
        # The requests that have no answer yet, by id, and lines without an id, for the server to refuse.
        self.open: dict[str, Request] = {}
        self.invalid_lines: list[bytes] = []
        # The ids of requests of this server to the client. An answer to a request of an earlier server is
        # dropped, because this server does not know it.
        self.server_requests: set[str] = set()
        # The version of mam whose list of tools the client knows, and that of this server.
        self.listed_version: str | None = None
        self.server_version: str | None = None

    def run(self) -> None:
        """Forward until the client is gone."""
        try:
            self._forward()
        finally:
            self._disconnect()

    def _forward(self) -> None:
        self._begin_search()
        while True:
            poll = select.poll()
            poll.register(self.source, select.POLLIN)
            if self.server is not None:
                poll.register(self.server, select.POLLIN)
            for handle, _ in poll.poll(self._pause_ms()):
                if handle == self.source:
                    if not self._read_client():
                        return
                elif self.server is not None and handle == self.server.fileno():
                    self._read_server()
            self._continue_search()

    def _read_client(self) -> bool:
        data = os.read(self.source, _CHUNK)
        if not data:
            return False
        for line in self.from_client.take(data):
            if len(line) <= LONGEST_LINE:
                self._take(line)
            else:
                self._refuse(line)
        return True

    def _refuse(self, line: bytes) -> None:
        """Answer a line that is too long. The server would disconnect, and the bridge would repeat it."""
        message = _parse(line)
        if _key(message) is not None and "method" in message:
            self._answer(message, _too_long_error())

    def _take(self, line: bytes) -> None:
        """Forward a line of the client to the server, or answer it, or keep it until there is a server."""
        message = _parse(line)
        method, key = message.get("method"), _key(message)
        if method is None and key is not None:
            if key in self.server_requests:
                self.server_requests.discard(key)
                self._send_to_server(line)
        elif key is not None:
            self._take_request(message, line, key)
        elif method is None or message.get("id") is not None:
            self.invalid_lines.append(line)
            self._send_open_requests()
        else:
            if method == "notifications/initialized":
                self.is_initialized = True
            elif method == "notifications/cancelled":
                self.open.pop(json.dumps(_params(message).get("requestId")), None)
            if self.is_ready:
                self._send_to_server(line)

    def _take_request(self, message: Message, line: bytes, key: str) -> None:
        result = None
        if self.introduction is None and (message["method"] == "initialize" or has_envelope(message)):
            self.introduction = message
            result = self.answers.result(message)
            if result is not None and self.server is not None:
                # The server that is connected does not know the client yet, and has to answer, too.
                self.is_ready = False
                self.search_ends = time.monotonic() + _PATIENCE
                self._introduce()
        elif not self.is_ready:
            result = self.answers.result(message)
        if result is not None:
            if message["method"] == "tools/list":
                self.listed_version = mam.__version__
            self._send_to_client(_line({"jsonrpc": "2.0", "id": message["id"], "result": result}))
            return
        self.open[key] = Request(message, line)
        self._send_open_requests()
        if self.server is None and self.search_ends is None:
            self._begin_search()

    def _send_open_requests(self) -> None:
        """Send what waits for a server, if there is one that knows the client."""
        if not self.is_ready:
            return
        for line in self.invalid_lines:
            self._send_to_server(line)
        self.invalid_lines.clear()
        for request in self.open.values():
            if not request.is_sent:
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
            self._lose_server()
            return
        for line in self.from_server.take(data):
            message = _parse(line)
            key = _key(message)
            if message.get("id") == _INTRODUCTION and not self.is_ready:
                self._end_introduction(message)
                continue
            if key is not None and "method" in message:
                self.server_requests.add(key)
            elif key is not None:
                request = self.open.pop(key, None)
                if request is not None and request.message["method"] == "tools/list":
                    self.listed_version = self.server_version
            if self.is_ready:
                self.search_ends = None
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
        self.is_ready = False
        self.from_server = Lines()
        self.server_requests.clear()

    def _lose_server(self) -> None:
        """The server has ended: answer the changes that it may have made, and look for another server."""
        self._disconnect()
        for request in list(self.open.values()):
            if request.is_sent and not _may_repeat(request.message):
                self._answer(request.message, _unconfirmed_error())
            request.is_sent = False
        if self.search_ends is None:
            self._begin_search()

    def _begin_search(self) -> None:
        """Look for a server until one answers, or for as long as the patience lasts."""
        self.search_ends = time.monotonic() + _PATIENCE
        self.connects_at = self.starts_at = 0.0
        self._continue_search()

    def _pause_ms(self) -> float | None:
        """Return when the search goes on, in milliseconds; None if nothing is looked for."""
        if self.search_ends is None:
            return None
        due = self.connects_at if self.server is None else self.search_ends
        return max(0.0, (due - time.monotonic()) * 1000)

    def _continue_search(self) -> None:
        """Connect to a server, or start a resident, or give up."""
        now = time.monotonic()
        if self.search_ends is None:
            return
        if now >= self.search_ends:
            self._give_up()
        elif self.server is None and now >= self.connects_at:
            self.server = self.connect()
            if self.server is not None:
                self._send_to_server(self.hello)
                self._introduce()
            elif now >= self.starts_at:
                self.start_resident()
                self.starts_at = time.monotonic() + _AGAIN
            self.connects_at = time.monotonic() + _STEP

    def _give_up(self) -> None:
        """End the search; no request waits any longer, unless a server has it."""
        self.search_ends = None
        if self.is_ready:
            return
        self._disconnect()
        error = Unavailable(
            "the resident of this root does not start", hint="mam monitor runs one, and shows what is wrong"
        )
        for request in list(self.open.values()):
            self._answer(request.message, error)

    def _introduce(self) -> None:
        """Introduce the client to the server, unless its own introduction still waits for the server."""
        if self.server is None:
            return
        request = self.introduction
        if request is None or _key(request) in self.open:
            self.is_ready = True
            self._send_open_requests()
        elif has_envelope(request) and request["method"] != "initialize":
            params = {"_meta": request["params"]["_meta"]}
            self._send_to_server(
                _line({**request, "method": "server/discover", "params": params, **_BY_BRIDGE})
            )
        else:
            self._send_to_server(_line({**request, **_BY_BRIDGE}))

    def _end_introduction(self, answer: Message) -> None:
        """The server knows the client now: it gets what has waited."""
        self.is_ready = True
        self.search_ends = None
        if self.is_initialized:
            self._send_to_server(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self.server_version = server_version(answer.get("result"))
        if self.is_initialized and self.listed_version not in (None, self.server_version):
            # Another version of mam serves now, and may have other tools.
            self.listed_version = None
            self._send_to_client(_line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        self._send_open_requests()

    def _answer(self, message: Message, error: MamError) -> None:
        """Answer a request with an error in place of the server."""
        from mam.surfaces.mcp.tool_hints import error_document

        self.open.pop(_key(message) or "", None)
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        document = error_document(error)
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
    """Return a key for the id of a message; None if it has none, or one that no request may have."""
    value = message.get("id")
    is_valid = isinstance(value, str | int) and not isinstance(value, bool)
    return json.dumps(value) if is_valid else None


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"
