"""What a client starts: it carries lines between the client and the server in the root's resident.

It is written on the standard library alone, because every agent has one. When the resident dies it has
another one started, introduces the client again and goes on. A question that only reads is asked again;
of a call that changes something nobody can say whether it was done, so it is answered that way and never
repeated.
"""

from __future__ import annotations

import json
import os
import select
import time

from mam.core.errors import Unavailable, Unconfirmed, Usage
from mam.surfaces.mcp.read_only_tools import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from typing import Any

    from mam.core.errors import MamError

    Message = dict[str, Any]

# What the server takes as one line: a message of 1 MB may be six times as long in JSON.
LONGEST_LINE = 16 * 1024 * 1024
_CHUNK = 65536
# Seconds for a resident to come up, and between two attempts to start one.
_PATIENCE, _AGAIN, _STEP = 30.0, 3.0, 0.02
_INTRODUCTION = "mam-bridge"
_INTERNAL_ERROR = -32603


class Bridge:
    """One client, and the server as long as there is one."""

    def __init__(
        self,
        connect: Callable[[], socket | None],
        wake: Callable[[], None],
        hello: Message,
        *,
        source: int = 0,
        sink: int = 1,
    ) -> None:
        """`hello` is what the server is told first; `source` and `sink` are the client's ends."""
        self.connect = connect
        self.wake = wake
        self.hello = _line(hello)
        self.source = source
        self.sink = sink
        self.server: socket | None = None
        self.from_client = Lines()
        self.from_server = Lines()
        # What the client said first, and what it still waits for, by id.
        self.greeting: Message | None = None
        self.is_greeted = False
        self.open: dict[str, Request] = {}
        # What this server asked the client; answers to another one mean nothing to it.
        self.asked: set[str] = set()

    def run(self) -> None:
        """Carry until the client is gone."""
        try:
            self._carry()
        finally:
            self._leave()

    def _carry(self) -> None:
        self._enter()
        while True:
            poll = select.poll()
            poll.register(self.source, select.POLLIN)
            if self.server is not None:
                poll.register(self.server, select.POLLIN)
            for handle, _ in poll.poll():
                if handle == self.source:
                    if not self._hear_client():
                        return
                elif self.server is not None and handle == self.server.fileno():
                    self._hear_server()

    def _hear_client(self) -> bool:
        data = os.read(self.source, _CHUNK)
        if not data:
            return False
        for line in self.from_client.take(data):
            if len(line) <= LONGEST_LINE:
                self._pass_on(line)
            else:
                self._refuse(line)
        return True

    def _refuse(self, line: bytes) -> None:
        """Answer what the server would not take: it would cut us off, and be asked again for ever."""
        message = _parse(line)
        if _key(message) is not None and "method" in message:
            self._answer(message, _too_long())

    def _pass_on(self, line: bytes) -> None:
        """Give the server a line of the client's; what it asks is remembered until it is answered."""
        message = _parse(line)
        method, key = message.get("method"), _key(message)
        request = None
        if method is None and key is not None:
            if key not in self.asked:
                return
            self.asked.discard(key)
        elif method == "notifications/initialized":
            self.is_greeted = True
        elif method == "notifications/cancelled":
            self.open.pop(json.dumps(_params(message).get("requestId")), None)
        elif key is not None:
            if method == "initialize":
                self.greeting = message
            request = self.open[key] = Request(message, line)
        if self.server is None:
            # Everything that is open goes out with the introduction.
            self._enter()
        elif request is not None:
            self._ask(request)
        else:
            self._tell(line)

    def _ask(self, request: Request) -> None:
        request.is_told = True
        self._tell(request.line)

    def _tell(self, line: bytes) -> None:
        try:
            if self.server is not None:
                self.server.sendall(line)
        except OSError:
            # The end of it is heard by the loop, which finds another server.
            return

    def _hear_server(self) -> None:
        data = self._read()
        if not data:
            self._leave()
            self._enter()
            return
        for line in self.from_server.take(data):
            message = _parse(line)
            key = _key(message)
            if key is not None and "method" in message:
                self.asked.add(key)
            elif key is not None:
                self.open.pop(key, None)
            self._say(line)

    def _read(self) -> bytes:
        try:
            return self.server.recv(_CHUNK) if self.server is not None else b""
        except OSError:
            return b""

    def _leave(self) -> None:
        if self.server is not None:
            self.server.close()
        self.server = None
        self.from_server = Lines()
        self.asked.clear()

    def _enter(self) -> None:
        """Find a server, introduce the client, and settle what was under way with the one before."""
        unsure = [one for one in self.open.values() if one.is_told and not _may_repeat(one.message)]
        try:
            self._find()
        except Unavailable as error:
            self._leave()
            for one in list(self.open.values()):
                self._answer(one.message, error if one not in unsure else _unsure())
            return
        for one in unsure:
            self._answer(one.message, _unsure())
        for one in list(self.open.values()):
            self._ask(one)

    def _find(self) -> None:
        """Connect, and greet as the client did; raises Unavailable."""
        deadline = time.monotonic() + _PATIENCE
        woken = 0.0
        while time.monotonic() < deadline:
            self.server = self.connect()
            if self.server is not None:
                self._tell(self.hello)
                if self._introduce(deadline):
                    return
                self._leave()
            if time.monotonic() > woken + _AGAIN:
                self.wake()
                woken = time.monotonic()
            time.sleep(_STEP)
        raise Unavailable(
            "the resident of this root does not come up", hint="mam monitor runs one, and says what is wrong"
        )

    def _introduce(self, deadline: float) -> bool:
        """Say again what the client said at first; its answer is ours. False if the server went away."""
        greeting = self.greeting
        if greeting is None or _key(greeting) in self.open:
            return True
        self._tell(_line({**greeting, "id": _INTRODUCTION}))
        while self.server is not None and (left := deadline - time.monotonic()) > 0:
            if not select.select([self.server], [], [], left)[0]:
                return False
            data = self._read()
            if not data:
                return False
            if any(_parse(line).get("id") == _INTRODUCTION for line in self.from_server.take(data)):
                if self.is_greeted:
                    self._tell(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                return True
        return False

    def _answer(self, message: Message, error: MamError) -> None:
        """Answer in the server's place."""
        self.open.pop(_key(message) or "", None)
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        document = error.as_json()
        if message.get("method") == "tools/call":
            content = [{"type": "text", "text": json.dumps(document)}]
            reply["result"] = {"content": content, "structuredContent": document, "isError": True}
        else:
            reply["error"] = {"code": _INTERNAL_ERROR, "message": error.message, "data": document["error"]}
        self._say(_line(reply))

    def _say(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self.sink, view) :]


class Request:
    """What the client waits for: as it came, and whether a server was ever told."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message = message
        self.line = line
        self.is_told = False


class Lines:
    """Cuts what arrives into lines, each with its end."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole now."""
        if b"\n" not in data:
            self._rest.append(data)
            return []
        *whole, rest = b"".join([*self._rest, data]).split(b"\n")
        self._rest = [rest] if rest else []
        return [line + b"\n" for line in whole]


def _unsure() -> Unconfirmed:
    return Unconfirmed(
        "the resident ended while this was under way, and nobody can say whether it was done",
        hint="look with list_agents or get_agent_state before you repeat it",
    )


def _too_long() -> Usage:
    return Usage(
        f"a call is at most {LONGEST_LINE // 2**20} MB long",
        hint="put the text into a file and name the file",
    )


def _may_repeat(message: Message) -> bool:
    name = _params(message).get("name")
    return message.get("method") != "tools/call" or (isinstance(name, str) and name in READS)


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _parse(line: bytes) -> Message:
    """Return a message; what is none is passed on as it is, for the other side to judge."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _key(message: Message) -> str | None:
    return json.dumps(message["id"]) if message.get("id") is not None else None


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"
