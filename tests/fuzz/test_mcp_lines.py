"""Lines that MCP clients and servers write: the server serves the next client, and the bridge goes on."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.bad_input import DEPTH, as_json, damaged, examples, json_texts
from tests.surfaces.mcp.client import HELLO

import mam
from mam.surfaces.mcp import bridge as bridges
from mam.surfaces.mcp.bridge import Bridge, Lines
from mam.surfaces.mcp.server_thread import Service

SECONDS = 30.0
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": "the last one", "method": "ping"}
MESSAGES: list[dict[str, Any]] = [
    INITIALIZE,
    INITIALIZED,
    {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "x"}},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "list_agents", "arguments": {}}},
    {
        "jsonrpc": "2.0",
        "id": 5,
        "method": "tools/call",
        "params": {
            "name": "get_agent_state",
            "arguments": {"agent_id": "one"},
            "_meta": {"progressToken": 1},
        },
    },
    {"jsonrpc": "2.0", "id": 6, "method": "resources/read", "params": {"uri": "mam://agents"}},
    {"jsonrpc": "2.0", "id": 7, "method": "prompts/get", "params": {"name": "x", "arguments": {"a": "b"}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4, "reason": "x"}},
    {"jsonrpc": "2.0", "id": 8, "result": {"roots": []}},
    {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "no", "data": [1]}},
]
# A request that its server answers is not meant to be one of a tool that changes something.
LINE = some.one_of(json_texts(MESSAGES), damaged([as_json(message) for message in MESSAGES])).map(
    lambda line: line.replace(b"\n", b" ").replace(b"spawn", b"spam")
)


def introduction(fleet: mam.Fleet) -> dict[str, Any]:
    return {
        "cwd": fleet.root,
        "environ": dict(os.environ),
        "allow": ["kill"],
        "state": fleet._access.context.paths.state,
    }


class Served:
    """A server in a thread, and what it warned of."""

    def __init__(self, fleet: mam.Fleet) -> None:
        self.fleet = fleet
        self.warnings: list[str] = []
        fleet.on_warning(self.warnings.append)
        self.service = Service(fleet, load=True)

    def client(self) -> socket.socket:
        client_end, server_end = socket.socketpair()
        client_end.settimeout(SECONDS)
        self.service.add_client(server_end)
        return client_end

    def check_next_client(self) -> None:
        """Check that a client that comes now is served."""
        answers = self.talk([as_json(introduction(self.fleet)), as_json(INITIALIZE), as_json(INITIALIZED)])
        assert answers[-1]["result"] == {}
        assert self.warnings == [], "the server failed on a client"

    def talk(self, lines: list[bytes]) -> list[dict[str, Any]]:
        """Send lines and a ping, and return all answers up to that of the ping."""
        with self.client() as line:
            line.sendall(b"".join(text + b"\n" for text in [*lines, as_json(PING)]))
            received, answers = Lines(), []
            while not answers or answers[-1].get("id") != PING["id"]:
                data = line.recv(65536)
                assert data, f"the server closed the connection: {answers}"
                answers += [json.loads(text) for text in received.take(data)]
            return answers


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        settle_in(tmp_path_factory.mktemp("home"), patch)
        with mam.open(str(tmp_path_factory.mktemp("root"))) as fleet:
            fleet.init()
            made = Served(fleet)
            yield made
            made.service.end()


@pytest.mark.promise("P46")
@examples(40)
@given(lines=some.lists(LINE, min_size=1, max_size=4))
@example(lines=[b"[" * DEPTH, b'{"id":' * DEPTH, b"\xff\xfe", b"\0", b'"', b"9" * 5000, b"NaN"])
@example(
    lines=[
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    ]
)
@example(lines=[as_json([message]) for message in MESSAGES])
def test_a_client_that_writes_anything_is_served_on(served, lines):
    before = [as_json(introduction(served.fleet)), as_json(INITIALIZE), as_json(INITIALIZED)]
    for answer in served.talk([*before, *lines]):
        assert answer["jsonrpc"] == "2.0"
        assert "method" in answer or ("result" in answer) != ("error" in answer)
        assert "Traceback" not in str(answer)
    assert served.warnings == [], "the server failed on a client"


@examples(40)
@given(
    data=json_texts([{"cwd": "/", "environ": {"HOME": "/", "PATH": "/bin"}, "allow": ["kill"]}]),
    ends=some.booleans(),
)
@example(data=b"{}", ends=False)
@example(data=b'{"environ": {"HOME": "\\u0000", "PATH": "\\ud800", "": "", "=": "="}}', ends=False)
@example(data=b'{"cwd": "\\u0000"}', ends=False)
def test_a_client_that_introduces_itself_as_anything_harms_no_other(served, data, ends):
    with served.client() as line:
        line.sendall(data + (b"" if ends else b"\n"))
        for message in (INITIALIZE, INITIALIZED, MESSAGES[3], MESSAGES[4], PING) if not ends else ():
            try:
                line.sendall(as_json(message) + b"\n")
            except OSError:
                break
        line.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while more := line.recv(65536):
                received += more
        except ConnectionError:
            pass
    for text in received.splitlines():
        assert json.loads(text)["jsonrpc"] == "2.0"
    served.check_next_client()


class FakeServer:
    """A bridge with a server end that the test writes to, and a client end that it reads from."""

    def __init__(self) -> None:
        self.source, self.to_bridge = os.pipe()
        self.from_bridge, self.sink = os.pipe()
        self.server_end, self.bridge_end = socket.socketpair()
        for end in (self.server_end, self.bridge_end):
            end.setblocking(False)
        os.set_blocking(self.from_bridge, False)
        self.bridge = Bridge(
            lambda: self.bridge_end, lambda: None, {}, lambda: (), source=self.source, sink=self.sink
        )
        self.bridge._begin_search()

    def written(self) -> bytes:
        found = b""
        try:
            while more := os.read(self.from_bridge, 1 << 20):
                found += more
        except BlockingIOError:
            pass
        return found

    def close(self) -> None:
        for handle in (self.source, self.to_bridge, self.from_bridge, self.sink):
            os.close(handle)
        self.server_end.close()
        self.bridge_end.close()


ANSWERS: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": bridges._INTRODUCTION,
        "result": {"serverInfo": {"name": "mam", "version": "0"}},
    },
    {"jsonrpc": "2.0", "id": bridges._INTRODUCTION, "error": {"code": 1, "message": "no"}},
    {"jsonrpc": "2.0", "id": 3, "result": {"tools": []}},
    {"jsonrpc": "2.0", "id": 9, "method": "roots/list"},
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
]
SMALL = 4096


@examples(80)
@given(
    turns=some.lists(
        some.tuples(
            some.booleans(),
            LINE | json_texts(ANSWERS) | some.sampled_from([*MESSAGES, *ANSWERS]).map(as_json),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_the_bridge_forwards_or_refuses_whatever_both_sides_write(turns):
    ends = FakeServer()
    try:
        for is_client, data in turns:
            # Pipes hold 64 KB, and nobody reads meanwhile.
            line = data.replace(b"\n", b" ")[:SMALL] + b"\n"
            if is_client:
                os.write(ends.to_bridge, line)
                with oracle.bounded():
                    assert ends.bridge._read_client()
            elif ends.bridge.server is not None:
                ends.server_end.sendall(line)
                with oracle.bounded():
                    ends.bridge._read_server()
            with oracle.bounded():
                ends.bridge._continue_search()
        from_server = {data.replace(b"\n", b" ")[:SMALL] for is_client, data in turns if not is_client}
        for line in ends.written().splitlines():
            if line not in from_server:
                # What the server wrote is passed on as it is, and the client judges it.
                assert json.loads(line)["jsonrpc"] == "2.0"
    finally:
        ends.close()


@example(chunks=[b"a\nb", b"c", b"d\ne", b"\n"])
@examples(60)
@given(
    chunks=some.lists(
        some.binary(max_size=20) | some.sampled_from([b"\n", b"", b"\r\n", b"\0", b"a\nb", b"\nb", b"a\n"]),
        max_size=20,
    )
)
def test_lines_are_split_wherever_the_bytes_are(chunks):
    lines = Lines()
    found = [line for chunk in chunks for line in lines.take(chunk)]
    whole = b"".join(chunks)
    assert b"".join(found) == whole[: whole.rfind(b"\n") + 1]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in found)
