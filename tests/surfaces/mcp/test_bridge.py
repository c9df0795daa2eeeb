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

from mam.app.agent_tools import wait_for_agents as gathers
from mam.surfaces.mcp import bridge as bridges
from mam.surfaces.mcp.bridge import Bridge, Lines
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
    before = holder()
    client.call("spawn_agent", cli="practice", name="one")
    client.call("stop_agent", agent_id="one")
    assert client.call("list_agents")["count"] == 1
    assert holder() == before
    assert client.close() == 0
    until(lambda: holder() is None, 60)


def test_a_client_that_disappears_while_it_waits_leaves_nothing_behind(fleet, until, monkeypatch) -> None:
    fleet.sessions.create("practice", name="one")
    waiting: list[str] = []
    really = gathers.gather

    def gather(*given, **options):
        waiting.append("somebody")
        try:
            return really(*given, **options)
        finally:
            waiting.pop()

    monkeypatch.setattr(gathers, "gather", gather)
    service = Service(fleet)
    try:
        ours, theirs = socket.socketpair()
        with ours:
            service.let_in(theirs)
            call = {"name": "wait_for", "arguments": {"agent_id": "one", "timeout_ms": 3_600_000}}
            for message in (
                {"cwd": fleet.root, "environ": dict(os.environ)},
                {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
            ):
                ours.sendall(json.dumps(message).encode() + b"\n")
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
        process = Path(f"/proc/{holder()}/fd")

        def handles():
            found = 0
            for one in process.iterdir():
                with suppress(FileNotFoundError):
                    found += str(one.readlink()).startswith("socket:")
            return found

        staying.call("list_agents")
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
    """A bridge in a thread with a client and servers that the test plays."""

    def __init__(self) -> None:
        self.doors: list[socket.socket] = []
        self.woken = 0
        self.shut = threading.Event()
        ours_in, self.client_in = os.pipe()
        client_out, ours_out = os.pipe()
        self.ends = (ours_in, ours_out)
        self.bridge = Bridge(self.connect, self.wake, {"hello": 1}, source=ours_in, sink=ours_out)
        self.thread = threading.Thread(target=self.bridge.run, daemon=True)
        self.thread.start()
        self.heard = os.fdopen(client_out, "rb")

    def connect(self):
        if self.shut.is_set():
            return None
        ours, theirs = socket.socketpair()
        self.doors.append(theirs)
        return ours

    def wake(self) -> None:
        self.woken += 1

    def say(self, **message) -> None:
        os.write(self.client_in, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hear(self):
        return json.loads(self.heard.readline())

    def close(self) -> None:
        os.close(self.client_in)
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.heard.close()
        for handle in self.ends:
            os.close(handle)
        for door in self.doors:
            door.close()


@pytest.fixture
def played():
    one = Played()
    yield one
    one.close()


def lines(door):
    with door.makefile("rb") as file:
        for line in file:
            yield json.loads(line)


def greeted(played, until):
    until(lambda: played.doors)
    heard = lines(played.doors[0])
    assert next(heard) == {"hello": 1}
    played.say(id=1, method="initialize", params=HELLO)
    assert next(heard)["id"] == 1
    played.doors[0].sendall(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert played.hear()["id"] == 1
    played.say(method="notifications/initialized")
    assert next(heard)["method"] == "notifications/initialized"
    return heard


def test_the_client_is_introduced_again_reads_are_repeated_and_changes_never(played, until) -> None:
    heard = greeted(played, until)
    played.say(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    played.say(id=3, method="tools/call", params={"name": "list_agents", "arguments": {}})
    played.say(id=4, method="tools/list")
    played.say(id=5, method="tools/call", params={"name": "wait_for", "arguments": {"agent_id": "x"}})
    played.say(method="notifications/cancelled", params={"requestId": 5})
    assert [next(heard)["id"] for _ in range(4)] == [2, 3, 4, 5]
    next(heard)
    played.doors[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.doors) == 2)
    second = lines(played.doors[1])
    assert next(second) == {"hello": 1}
    introduction = next(second)
    assert (introduction["method"], introduction["params"]) == ("initialize", HELLO)
    played.doors[1].sendall(
        json.dumps({"jsonrpc": "2.0", "id": introduction["id"], "result": {}}).encode() + b"\n"
    )
    assert next(second)["method"] == "notifications/initialized"
    assert [next(second)["id"] for _ in range(2)] == [3, 4]
    unsure = played.hear()
    assert unsure["id"] == 2
    assert unsure["result"]["isError"] is True
    assert unsure["result"]["structuredContent"]["error"]["code"] == "unconfirmed"
    played.doors[1].sendall(b'{"jsonrpc":"2.0","id":3,"result":{"content":[]}}\n')
    assert played.hear()["id"] == 3


def test_answers_to_questions_of_a_dead_server_go_to_nobody(played, until) -> None:
    greeted(played, until)
    played.doors[0].sendall(b'{"jsonrpc":"2.0","id":"ask-1","method":"ping"}\n')
    assert played.hear()["id"] == "ask-1"
    played.doors[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.doors) == 2)
    second = lines(played.doors[1])
    next(second)
    played.doors[1].sendall(
        json.dumps({"jsonrpc": "2.0", "id": next(second)["id"], "result": {}}).encode() + b"\n"
    )
    assert next(second)["method"] == "notifications/initialized"
    played.say(id="ask-1", result={})
    played.say(id=9, method="tools/list")
    assert next(second)["id"] == 9


def test_where_no_resident_comes_up_the_client_is_told_and_may_try_again(played, until, monkeypatch) -> None:
    greeted(played, until)
    monkeypatch.setattr(bridges, "_PATIENCE", 0.2)
    played.shut.set()
    played.doors[0].shutdown(socket.SHUT_RDWR)
    played.say(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    played.say(id=3, method="tools/list")
    answers = {one["id"]: one for one in (played.hear(), played.hear())}
    assert answers[2]["result"]["structuredContent"]["error"]["code"] in ("unavailable", "unconfirmed")
    assert answers[3]["error"]["data"]["retryable"] is True
    assert played.woken
    played.shut.clear()
    played.say(id=4, method="tools/list")
    until(lambda: len(played.doors) == 2)
    second = lines(played.doors[1])
    next(second)
    introduction = next(second)
    played.doors[1].sendall(
        json.dumps({"jsonrpc": "2.0", "id": introduction["id"], "result": {}}).encode() + b"\n"
    )
    assert next(second)["method"] == "notifications/initialized"
    assert next(second)["id"] == 4


def introduced(played, until):
    """Take the client in as the next server does; return what is heard there after it."""
    until(lambda: len(played.doors) == 2)
    played.doors[1].settimeout(10)
    second = lines(played.doors[1])
    next(second)
    answer = json.dumps({"jsonrpc": "2.0", "id": next(second)["id"], "result": {}})
    played.doors[1].sendall(answer.encode() + b"\n")
    assert next(second)["method"] == "notifications/initialized"
    return second


def test_a_change_that_no_server_was_told_of_is_done_by_the_next(played, until, monkeypatch) -> None:
    greeted(played, until)
    monkeypatch.setattr(bridges, "_PATIENCE", 0.2)
    played.shut.set()
    played.doors[0].shutdown(socket.SHUT_RDWR)
    played.say(id=2, method="tools/list")
    assert played.hear()["id"] == 2
    played.shut.clear()
    monkeypatch.setattr(bridges, "_PATIENCE", 30.0)
    played.say(id=3, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    assert next(introduced(played, until))["id"] == 3


def test_a_change_by_a_client_that_never_greeted_is_not_repeated(played, until) -> None:
    until(lambda: played.doors)
    heard = lines(played.doors[0])
    next(heard)
    played.say(id=2, method="tools/call", params={"name": "stop_agent", "arguments": {"agent_id": "x"}})
    assert next(heard)["id"] == 2
    played.doors[0].shutdown(socket.SHUT_RDWR)
    until(lambda: len(played.doors) == 2)
    second = lines(played.doors[1])
    next(second)
    played.say(id=3, method="tools/list")
    assert next(second)["id"] == 3
    assert played.hear()["result"]["structuredContent"]["error"]["code"] == "unconfirmed"


def test_a_line_that_the_server_would_not_take_is_refused_once(played, until, monkeypatch) -> None:
    heard = greeted(played, until)
    monkeypatch.setattr(bridges, "LONGEST_LINE", 1000, raising=False)
    played.say(id=2, method="tools/call", params={"name": "list_agents", "arguments": {"role": "x" * 1000}})
    played.say(id=3, method="tools/list")
    assert next(heard)["id"] == 3
    refused = played.hear()
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
    heard = greeted(played, until)
    played.say(**odd)
    assert next(heard)["method"] == odd["method"]
    played.doors[0].shutdown(socket.SHUT_RDWR)
    second = introduced(played, until)
    played.say(id=9, method="tools/list")
    assert next(second)["id"] == 9


def test_lines_are_cut_wherever_they_arrive() -> None:
    cutter = Lines()
    assert cutter.take(b"on") == []
    assert cutter.take(b"e\ntwo\nthr") == [b"one\n", b"two\n"]
    assert cutter.take(b"ee\n") == [b"three\n"]


@pytest.mark.parametrize("words", [[], ["--card", "new"]])
def test_whoever_watches_the_root_serves_its_agents(fleet, workspace, resident, holder, until, words) -> None:
    fleet.init()
    watching = subprocess.Popen(
        [sys.executable, "-P", "-m", "mam", "monitor", "--idle-timeout", "0", *words],
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
