"""The bridge: a resident that dies is replaced, and the client does not notice."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.surfaces.mcp.client import HELLO, Client
from tests.surfaces.mcp.renew_startup_answers import ENVELOPE

import mam
from mam.app.agent_tools import wait_for_agents as gathers
from mam.surfaces.mcp import bridge as bridges
from mam.surfaces.mcp.bridge import Bridge, Lines
from mam.surfaces.mcp.read_only_tool_names import READS
from mam.surfaces.mcp.server_thread import Service


def test_a_killed_resident_comes_back_without_the_client_noticing(client, fleet, holder, until) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    before = holder()
    os.kill(before, signal.SIGKILL)
    assert client.call("get_agent_state", agent_id="one")["state"] == "ready"
    assert holder() not in (None, before)
    assert client.call("stop_agent", agent_id="one")["state"] == "done"


def test_a_wait_that_is_under_way_goes_on_with_the_next_resident(client, fleet, holder, until) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    number = client.begin("tools/call", name="wait_for", arguments={"agent_id": "one", "timeout_ms": 60_000})
    assert client.call("list_agents")["count"] == 1
    before = holder()
    os.kill(before, signal.SIGKILL)
    until(lambda: holder() not in (None, before), 30)
    fleet.sessions.stop("one")
    waited = client.finish(number)["result"]["structuredContent"]
    assert (waited["matched"], waited["results"][0]["state"]) == (True, "done")


def test_a_connected_client_keeps_its_resident_and_the_last_one_lets_it_go(client, holder, until) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    before = holder()
    client.call("stop_agent", agent_id="one")
    assert client.call("list_agents")["count"] == 1
    assert holder() == before
    assert client.close() == 0
    until(lambda: holder() is None, 60)


def test_a_client_that_disappears_while_it_waits_leaves_nothing_behind(fleet, until, monkeypatch) -> None:
    fleet.sessions.create("practice", name="one")
    waiting: list[str] = []
    original = gathers.wait_for_agents

    def wait_for_agents(*arguments, **options):
        waiting.append("somebody")
        try:
            return original(*arguments, **options)
        finally:
            waiting.pop()

    monkeypatch.setattr(gathers, "wait_for_agents", wait_for_agents)
    service = Service(fleet)
    try:
        client_end, server_end = socket.socketpair()
        with client_end:
            service.add_client(server_end)
            call = {"name": "wait_for", "arguments": {"agent_id": "one", "timeout_ms": 3_600_000}}
            for message in (
                {"cwd": fleet.root, "environ": dict(os.environ)},
                {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
            ):
                client_end.sendall(json.dumps(message).encode() + b"\n")
            until(lambda: waiting, 30)
            assert service.is_used()
        until(lambda: not waiting and not service.is_used(), 30)
    finally:
        service.end()


def test_a_bridge_that_is_killed_leaves_no_handle_in_the_resident(
    fleet, workspace, holder, until, resident
) -> None:
    fleet.sessions.create("practice", name="one")
    with Client(workspace) as staying:
        staying.greet()
        # The answer to a call comes from the server, so the resident runs now.
        staying.call("list_agents")
        process = Path(f"/proc/{holder()}/fd")

        def handles():
            count = 0
            for path in process.iterdir():
                with suppress(FileNotFoundError):
                    count += str(path.readlink()).startswith("socket:")
            return count

        quiet = handles()
        leaving = Client(workspace)
        leaving.greet()
        leaving.begin("tools/call", name="wait_for", arguments={"agent_id": "one"})
        until(lambda: handles() > quiet)
        leaving.process.kill()
        leaving.close()
        until(lambda: handles() <= quiet, 30)
        assert staying.call("get_agent_state", agent_id="one")["state"] == "ready"


class Played:
    """A bridge in a thread; the test acts as its client and its servers."""

    def __init__(self, *, shut: bool = False) -> None:
        self.servers: list[socket.socket] = []
        self.starts = 0
        self.is_shut = threading.Event()
        if shut:
            self.is_shut.set()
        self.is_refused = threading.Event()
        ours_in, self.client_in = os.pipe()
        client_out, ours_out = os.pipe()
        self.ends = (ours_in, ours_out)
        self.bridge = Bridge(
            self.connect, self.start_resident, {"hello": 1}, tuple, source=ours_in, sink=ours_out
        )
        self.thread = threading.Thread(target=self.bridge.run, daemon=True)
        self.thread.start()
        self.client_reader = os.fdopen(client_out, "rb")

    def connect(self):
        if self.is_shut.is_set():
            return None
        client_end, server_end = socket.socketpair()
        self.servers.append(server_end)
        if self.is_refused.is_set():
            server_end.shutdown(socket.SHUT_RDWR)
        return client_end

    def start_resident(self) -> None:
        self.starts += 1

    def send(self, **message) -> None:
        os.write(self.client_in, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def receive(self):
        return json.loads(self.client_reader.readline())

    def close(self) -> None:
        os.close(self.client_in)
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.client_reader.close()
        for handle in self.ends:
            os.close(handle)
        for server in self.servers:
            server.close()


@pytest.fixture
def played():
    bridge_setup = Played()
    yield bridge_setup
    bridge_setup.close()


@pytest.fixture
def played_without_server():
    bridge_setup = Played(shut=True)
    yield bridge_setup
    bridge_setup.close()


def lines(server):
    with server.makefile("rb") as file:
        for line in file:
            yield json.loads(line)


def greeted(played, until):
    until(lambda: played.servers)
    received = lines(played.servers[0])
    assert next(received) == {"hello": 1}
    played.send(id=1, method="initialize", params=HELLO)
    assert played.receive()["result"]["serverInfo"]["name"] == "mam"
    take_introduction(played.servers[0], received)
    played.send(method="notifications/initialized")
    assert next(received)["method"] == "notifications/initialized"
    return received


def take_introduction(server, received, version=mam.__version__):
    """Answer the introduction of the client, as a server of some version of mam."""
    introduction = next(received)
    assert (introduction["method"], introduction["params"]) == ("initialize", HELLO)
    result = {"serverInfo": {"name": "mam", "version": version}}
    answer = {"jsonrpc": "2.0", "id": introduction["id"], "result": result}
    server.sendall(json.dumps(answer).encode() + b"\n")


def test_the_client_is_introduced_again_reads_are_repeated_and_changes_never(played, until) -> None:
    received = greeted(played, until)
    played.send(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    played.send(id=3, method="tools/call", params={"name": "list_agents", "arguments": {}})
    played.send(id=4, method="tools/list")
    played.send(id=5, method="tools/call", params={"name": "wait_for", "arguments": {"agent_id": "x"}})
    played.send(method="notifications/cancelled", params={"requestId": 5})
    assert [next(received)["id"] for _ in range(4)] == [2, 3, 4, 5]
    next(received)
    played.servers[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.servers) == 2)
    second = lines(played.servers[1])
    assert next(second) == {"hello": 1}
    take_introduction(played.servers[1], second)
    assert next(second)["method"] == "notifications/initialized"
    assert [next(second)["id"] for _ in range(2)] == [3, 4]
    unconfirmed = played.receive()
    assert unconfirmed["id"] == 2
    assert unconfirmed["result"]["isError"] is True
    assert unconfirmed["result"]["structuredContent"]["error"]["code"] == "unconfirmed"
    played.servers[1].sendall(b'{"jsonrpc":"2.0","id":3,"result":{"content":[]}}\n')
    assert played.receive()["id"] == 3


def test_answers_to_questions_of_a_dead_server_go_to_nobody(played, until) -> None:
    greeted(played, until)
    played.servers[0].sendall(b'{"jsonrpc":"2.0","id":"ask-1","method":"ping"}\n')
    assert played.receive()["id"] == "ask-1"
    played.servers[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.servers) == 2)
    second = lines(played.servers[1])
    next(second)
    take_introduction(played.servers[1], second)
    assert next(second)["method"] == "notifications/initialized"
    played.send(id="ask-1", result={})
    played.send(id=9, method="tools/list")
    assert next(second)["id"] == 9


def test_where_no_resident_comes_up_the_client_is_told_and_may_try_again(played, until, monkeypatch) -> None:
    greeted(played, until)
    monkeypatch.setattr(bridges, "_PATIENCE", 0.2)
    played.is_shut.set()
    played.servers[0].shutdown(socket.SHUT_RDWR)
    played.send(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    played.send(id=3, method="resources/read", params={"uri": "mam://sessions"})
    answers = {answer["id"]: answer for answer in (played.receive(), played.receive())}
    assert answers[2]["result"]["structuredContent"]["error"]["code"] in ("unavailable", "unconfirmed")
    assert answers[3]["error"]["data"]["retryable"] is True
    assert played.starts
    played.is_shut.clear()
    played.send(id=4, method="resources/read", params={"uri": "mam://sessions"})
    until(lambda: len(played.servers) == 2)
    second = lines(played.servers[1])
    next(second)
    take_introduction(played.servers[1], second)
    assert next(second)["method"] == "notifications/initialized"
    assert next(second)["id"] == 4


def introduced(played, until):
    """Answer the client's introduction as the next server; return the lines that follow it."""
    until(lambda: len(played.servers) == 2)
    played.servers[1].settimeout(10)
    second = lines(played.servers[1])
    next(second)
    take_introduction(played.servers[1], second)
    assert next(second)["method"] == "notifications/initialized"
    return second


def test_a_change_that_no_server_was_told_of_is_done_by_the_next(played, until, monkeypatch) -> None:
    greeted(played, until)
    monkeypatch.setattr(bridges, "_PATIENCE", 0.2)
    played.is_shut.set()
    played.servers[0].shutdown(socket.SHUT_RDWR)
    played.send(id=2, method="resources/read", params={"uri": "mam://sessions"})
    assert played.receive()["id"] == 2
    played.is_shut.clear()
    monkeypatch.setattr(bridges, "_PATIENCE", 30.0)
    played.send(id=3, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    assert next(introduced(played, until))["id"] == 3


def test_a_change_by_a_client_that_never_greeted_is_not_repeated(played, until) -> None:
    until(lambda: played.servers)
    received = lines(played.servers[0])
    next(received)
    played.send(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    assert next(received)["id"] == 2
    played.servers[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.servers) == 2)
    second = lines(played.servers[1])
    next(second)
    played.send(id=3, method="tools/list")
    assert next(second)["id"] == 3
    assert played.receive()["result"]["structuredContent"]["error"]["code"] == "unconfirmed"


def test_a_line_that_the_server_would_not_take_is_refused_once(played, until, monkeypatch) -> None:
    received = greeted(played, until)
    monkeypatch.setattr(bridges, "LONGEST_LINE", 1000, raising=False)
    played.send(id=2, method="tools/call", params={"name": "list_agents", "arguments": {"role": "x" * 1000}})
    played.send(id=3, method="tools/list")
    assert next(received)["id"] == 3
    refused = played.receive()
    assert refused["id"] == 2
    assert refused["result"]["structuredContent"]["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "odd",
    [
        {"method": "notifications/cancelled", "params": [1]},
        {"method": "tools/call", "id": 7, "params": {"name": []}},
        {"method": "tools/call", "id": 7, "params": [1]},
    ],
)
def test_a_message_of_a_strange_form_does_not_end_the_bridge(played, until, odd) -> None:
    received = greeted(played, until)
    played.send(**odd)
    assert next(received)["method"] == odd["method"]
    played.servers[0].shutdown(socket.SHUT_RDWR)
    second = introduced(played, until)
    played.send(id=9, method="tools/list")
    assert next(second)["id"] == 9


def test_the_first_answers_do_not_wait_for_the_server(played_without_server, until) -> None:
    played = played_without_server
    until(lambda: played.starts)
    played.send(id=1, method="ping")
    assert played.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    played.send(id=2, method="initialize", params=HELLO)
    assert played.receive()["result"]["protocolVersion"] == HELLO["protocolVersion"]
    played.send(method="notifications/initialized")
    played.send(id=3, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    for number, method in ((4, "tools/list"), (5, "prompts/list"), (6, "resources/list")):
        played.send(id=number, method=method)
        assert played.receive()["id"] == number
    played.is_shut.clear()
    until(lambda: played.servers)
    received = lines(played.servers[-1])
    assert next(received) == {"hello": 1}
    take_introduction(played.servers[-1], received)
    assert next(received)["method"] == "notifications/initialized"
    assert next(received)["id"] == 3


def test_a_server_that_loads_gets_nothing_before_it_has_answered_the_introduction(played, until) -> None:
    until(lambda: played.servers)
    with played.servers[0].makefile("rb") as received:
        assert json.loads(received.readline()) == {"hello": 1}
        played.send(id=1, method="initialize", params=HELLO)
        assert played.receive()["id"] == 1
        played.send(method="notifications/initialized")
        os.write(played.client_in, b"no JSON\n")
        played.send(id=2, method="tools/call", params={"name": "list_agents", "arguments": {}})
        played.send(id=3, method="tools/list")
        assert {tool["name"] for tool in played.receive()["result"]["tools"]} >= READS
        introduction = json.loads(received.readline())
        assert (introduction["method"], introduction["params"]) == ("initialize", HELLO)
        answer = {"jsonrpc": "2.0", "id": introduction["id"], "result": {}}
        played.servers[0].sendall(json.dumps(answer).encode() + b"\n")
        assert b"notifications/initialized" in received.readline()
        # A line that is no message goes to the server, which refuses it.
        assert received.readline() == b"no JSON\n"
        assert json.loads(received.readline())["id"] == 2


def test_a_client_of_the_protocol_without_initialize_is_introduced_by_its_envelope(played, until) -> None:
    until(lambda: played.servers)
    received = lines(played.servers[0])
    next(received)
    played.send(id=1, method="server/discover", params=ENVELOPE)
    assert played.receive()["result"]["supportedVersions"] == ["2026-07-28"]
    introduction = next(received)
    assert (introduction["method"], introduction["params"]) == ("server/discover", ENVELOPE)
    played.send(id=2, method="tools/list", params=ENVELOPE)
    assert played.receive()["id"] == 2
    played.send(id=3, method="tools/call", params={"name": "list_agents", **ENVELOPE})
    answer = {"jsonrpc": "2.0", "id": introduction["id"], "result": {}}
    played.servers[0].sendall(json.dumps(answer).encode() + b"\n")
    assert next(received)["id"] == 3


def test_a_server_of_another_version_makes_the_client_ask_for_the_tools_again(played, until) -> None:
    until(lambda: played.servers)
    received = lines(played.servers[0])
    next(received)
    played.send(id=1, method="initialize", params=HELLO)
    assert played.receive()["result"]["capabilities"]["tools"] == {"listChanged": True}
    played.send(method="notifications/initialized")
    played.send(id=2, method="tools/list")
    assert played.receive()["id"] == 2
    take_introduction(played.servers[0], received, version="9.9")
    assert played.receive() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert next(received)["method"] == "notifications/initialized"
    played.send(id=3, method="tools/list")
    assert next(received)["id"] == 3
    played.servers[0].sendall(b'{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}\n')
    assert played.receive()["result"] == {"tools": []}
    played.servers[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.servers) == 2)
    second = lines(played.servers[1])
    next(second)
    take_introduction(played.servers[1], second, version="9.9")
    assert next(second)["method"] == "notifications/initialized"
    played.send(id=4, method="tools/list")
    assert next(second)["id"] == 4
    played.servers[1].sendall(b'{"jsonrpc":"2.0","id":4,"result":{"tools":[]}}\n')
    assert played.receive()["id"] == 4


def test_an_introduction_of_a_strange_form_is_left_to_the_server(played, until) -> None:
    until(lambda: played.servers)
    received = lines(played.servers[0])
    next(received)
    played.send(id=1, method="initialize", params={"protocolVersion": 7})
    assert next(received) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": 7},
    }
    played.servers[0].sendall(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}\n')
    assert played.receive()["error"]["code"] == -32602


def test_a_server_that_hangs_up_at_once_is_not_asked_without_end(played, until, monkeypatch) -> None:
    monkeypatch.setattr(bridges, "_PATIENCE", 0.3)
    greeted(played, until)
    played.is_refused.set()
    played.servers[0].shutdown(socket.SHUT_RDWR)
    played.send(id=2, method="resources/read", params={"uri": "mam://sessions"})
    assert played.receive()["error"]["data"]["code"] == "unavailable"


def test_lines_are_cut_wherever_they_arrive() -> None:
    cutter = Lines()
    assert cutter.take(b"on") == []
    assert cutter.take(b"e\ntwo\nthr") == [b"one\n", b"two\n"]
    assert cutter.take(b"ee\n") == [b"three\n"]


@pytest.mark.parametrize("options", [[], ["--card", "new"]])
def test_whoever_watches_the_root_serves_its_agents(
    fleet, workspace, resident, holder, until, options
) -> None:
    fleet.init()
    watching = subprocess.Popen(
        [sys.executable, "-P", "-m", "mam", "monitor", "--idle-timeout", "0", *options],
        cwd=workspace,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: holder() == watching.pid, 30)
        with Client(workspace) as client:
            client.greet()
            assert client.call("list_agents")["count"] == 0
        assert holder() == watching.pid
    finally:
        watching.terminate()
        watching.wait(20)
