"""The tools as a client sees them, through a bridge to the resident."""

import json
import os
import signal

import jsonschema
import pytest
from tests.surfaces.mcp.client import Client

from mam.surfaces.mcp.read_only_tool_names import READS


def test_a_practice_agent_is_spawned_told_awaited_read_and_stopped(client, fleet) -> None:
    agent = client.call("spawn_agent", cli="practice", name="helper", role="developer")
    assert (agent["state"], agent["name"], agent["role"]) == ("ready", "helper", "developer")
    assert agent["parent_agent_id"] is None
    receipt = client.call("send_to", agent_id="helper", text="say hello to the world", timeout_ms=20_000)
    assert (receipt["delivered"], receipt["state"]) == (True, "submitted")
    waited = client.call("wait_for", agent_id="helper", target_state="idle", timeout_ms=60_000)
    assert waited["matched"] is True
    assert [entry["state"] for entry in waited["results"]] == ["idle"]
    screen = client.call("read_screen", surface=agent["surface_id"], lines=100)
    assert "say hello to the world" in screen["text"]
    assert screen["agent_id"] == agent["agent_id"]
    panes = client.call("list_surfaces")["surfaces"]
    assert [entry["name"] for entry in panes] == ["helper"]
    stopped = client.call("stop_agent", agent_id=agent["agent_id"])
    facts = {"state": "done", "applied": "stop_agent", "left_running": []}
    assert stopped == {"agent_id": agent["agent_id"], **facts}
    assert fleet.sessions.get("helper").row["status"] == "stopped"
    again = client.call("resume_agent", agent_id="helper")
    assert (again["state"], again["agent_id"]) == ("idle", agent["agent_id"])
    forced = client.call("stop_agent", agent_id="helper", force=True)
    assert forced["state"] == "done"
    assert fleet.sessions.get("helper").row["termination_mode"] == "forced"


def test_an_unknown_agent_is_an_error_and_an_ended_one_returns_at_once(client) -> None:
    missing = client.call("stop_agent", agent_id="nobody")
    assert missing["error"]["code"] == "session_not_found"
    assert missing["error"]["hint"]
    client.call("spawn_agent", cli="practice", name="one")
    first = client.call("stop_agent", agent_id="one")
    assert client.call("stop_agent", agent_id="one") == first
    assert client.call("stop_agent", agent_id="one", force=True) == first


def test_s004_4_the_error_about_an_unknown_agent_names_the_tool_that_lists_agents(client) -> None:
    missing = client.call("stop_agent", agent_id="nobody")
    assert missing["error"]["code"] == "session_not_found"
    assert missing["error"]["hint"] == "list_agents shows the sessions of this root"
    read = client.ask("resources/read", uri="mam://sessions/nobody/screen")
    assert "list_agents shows" in read["error"]["message"]
    interrupted = client.call("interact", agent="nobody", action="interrupt")
    assert interrupted["error"]["hint"] == missing["error"]["hint"]


def test_states_have_the_names_that_agents_know(client, fleet, until) -> None:
    client.call("spawn_agent", cli="practice", name="asks")
    fleet.messages.send("asks", "/ask Bash rm it", command=True)
    blocked = client.call("wait_for", agent_id="asks", target_state="done", timeout_ms=60_000)
    (agent,) = blocked["results"]
    assert (agent["state"], agent["blocked_on_prompt"], agent["waiting_for"]) == ("idle", True, "permission")
    assert (blocked["matched"], blocked["timed_out"]) == (False, False)
    os.kill(fleet.sessions.get("asks").row["pane"]["pid"], signal.SIGKILL)
    until(lambda: client.call("get_agent_state", agent_id="asks")["state"] == "error")
    assert client.call("list_agents", state="error")["count"] == 1
    assert client.call("list_agents", blocked_on_prompt=True)["agents"] == []


def test_waiting_tells_how_it_goes(client) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    number = client.begin(
        "tools/call",
        name="wait_for",
        arguments={"agent_id": "one", "target_state": "working", "timeout_ms": 300},
        _meta={"progressToken": "p"},
    )
    late = client.finish(number)["result"]["structuredContent"]
    assert (late["matched"], late["timed_out"]) == (False, True)
    progress = [note["params"] for note in client.notes if note["method"] == "notifications/progress"]
    assert {note["progressToken"] for note in progress} == {"p"}
    assert "one is ready" in progress[0]["message"]


def test_every_tool_says_what_it_takes_gives_and_may_do(client) -> None:
    tools = client.ask("tools/list")["result"]["tools"]
    hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for tool in tools:
        assert set(tool["annotations"]) == hints, tool["name"]
        assert tool["description"]
        assert tool["inputSchema"]["additionalProperties"] is False
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
    assert {tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]} == READS
    answers = {"list_agents": {}, "list_surfaces": {}, "control_health": {}}
    client.call("spawn_agent", cli="practice", name="one")
    answers |= {"get_agent_state": {"agent_id": "one"}, "read_screen": {"surface": "one"}}
    schemas = {tool["name"]: tool["outputSchema"] for tool in tools}
    for name, arguments in answers.items():
        jsonschema.validate(client.call(name, **arguments), schemas[name])


def test_resources_and_prompts(client) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    sessions = json.loads(client.ask("resources/read", uri="mam://sessions")["result"]["contents"][0]["text"])
    assert [entry["name"] for entry in sessions["sessions"]] == ["one"]
    screen = client.ask("resources/read", uri="mam://sessions/one/screen")["result"]["contents"][0]["text"]
    assert screen.strip()
    assert (
        "session_not_found" in client.ask("resources/read", uri="mam://sessions/x/screen")["error"]["message"]
    )
    names = [entry["name"] for entry in client.ask("prompts/list")["result"]["prompts"]]
    assert names == ["delegate", "review"]
    prompt = client.ask("prompts/get", name="delegate", arguments={"task": "count the stars"})
    assert "count the stars" in prompt["result"]["messages"][0]["content"]["text"]


@pytest.mark.parametrize("has_registry", [True, False])
def test_without_a_resident_the_server_runs_in_the_bridge(fleet, workspace, has_registry) -> None:
    if has_registry:
        fleet.init()
    with Client(workspace) as client:
        client.greet()
        assert client.call("list_agents") == {"agents": [], "count": 0}
        assert client.call("spawn_agent", cli="practice", name="one")["state"] == "ready"
        assert client.call("stop_agent", agent_id="one")["state"] == "done"
        assert client.close() == 0


def test_what_is_no_message_is_refused_and_the_client_does_not_wait(client) -> None:
    for line, number, code in (
        ("no JSON", None, -32700),
        ("[]", None, -32600),
        ('{"jsonrpc": "2.0", "id": 77, "method": 7}', 77, -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
        ('{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {"x": "\\ud800"}}', "a", -32600),
    ):
        client.write_line(line)
        answer = client.finish(number, 20)
        assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert "result" in client.ask("ping")


def test_s004_8_an_agent_whose_process_is_dead_already_is_stopped(client, fleet, until) -> None:
    client.call("spawn_agent", cli="practice", name="one")
    os.kill(fleet.sessions.get("one").row["pane"]["pid"], signal.SIGKILL)
    stopped = client.call("stop_agent", agent_id="one", force=True)
    assert (stopped["state"], stopped["applied"]) == ("done", "stop_agent")


def test_s004_2_the_agent_must_be_named(client) -> None:
    (tool,) = [tool for tool in client.ask("tools/list")["result"]["tools"] if tool["name"] == "stop_agent"]
    assert tool["inputSchema"]["required"] == ["agent_id"]
    assert "agent_id" in client.call("stop_agent")["error"]["message"]
