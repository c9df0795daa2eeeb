"""The inspector of the protocol's authors lists and calls what `mam mcp` offers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.conformance.install import Unavailable, installed

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.starts]


@pytest.fixture
def inspect(fleet, workspace, home):
    """Ask with the inspector; each question is a client of its own."""
    config = home / ".config" / "mam" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('resident = "off"', ""), encoding="utf-8")
    fleet.init()
    try:
        inspector = installed("inspector")
    except Unavailable as reason:
        pytest.skip(str(reason))

    def ask(method, *words):
        done = subprocess.run(
            [inspector, "--cli", sys.executable, "-P", "-m", "mam", "mcp", "--method", method, *words],
            cwd=workspace,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout[done.stdout.index("{") :])

    return ask


def call(inspect, tool, **arguments):
    words = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
    return inspect("tools/call", "--tool-name", tool, *words)


def test_the_inspector_lists_and_calls(inspect, fleet) -> None:
    names = {tool["name"] for tool in inspect("tools/list")["tools"]}
    assert {"spawn_agent", "stop_agent", "send_to", "wait_for", "read_screen"} <= names
    spawned = call(inspect, "spawn_agent", cli="practice", name="one")["structuredContent"]
    assert spawned["state"] == "ready"
    stopped = call(inspect, "stop_agent", agent_id="one", force="true")["structuredContent"]
    assert stopped == {"agent_id": "one", "state": "done", "applied": "stop_agent", "left_running": []}
    assert fleet.sessions.get("one").row["status"] == "stopped"
    missing = call(inspect, "stop_agent", agent_id="nobody")
    assert missing["isError"] is True
    assert missing["structuredContent"]["error"]["code"] == "session_not_found"
    templates = inspect("resources/templates/list")["resourceTemplates"]
    assert "mam://sessions/{name}/screen" in [one["uriTemplate"] for one in templates]
    assert [one["name"] for one in inspect("prompts/list")["prompts"]] == ["delegate", "review"]
