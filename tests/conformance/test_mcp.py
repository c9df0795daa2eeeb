"""Real agents use mam's own tools: one of them spawns another, gives it work, waits, reads and stops it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.desk import wait_for
from tests.conformance.kinds import with_long
from tests.conformance.program import merge
from tests.conformance.replies import McpCall, Say

from mam.adapters.system import process

KINDS = with_long("mcp")
pytestmark = [pytest.mark.slow, pytest.mark.starts]


@pytest.fixture
def desk(fresh_desk):
    """A desk with a resident."""
    config = fresh_desk.home / ".config" / "mam" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('resident = "off"', ""), encoding="utf-8")
    return fresh_desk


def use(desk, session, tool: str, **arguments: Any) -> dict[str, Any]:
    """Have the agent call a tool, and return what it told its model of the answer."""
    desk.model.answer(McpCall(tool, arguments), Say(f"I have used {tool}."))
    before = len(desk.model.turns())
    desk.say(session, f"please use {tool} now")
    wait_for(lambda: len(desk.model.turns()) >= before + 2, lambda: f"{tool}: {session.read()}", 240)
    desk.rests(session)
    return answer_in(desk.model.turns()[before + 1].messages())


def answer_in(messages: list[Any]) -> dict[str, Any]:
    """Return the document of the last tool result, however the program wraps it."""
    found = [text for text in strings(messages) if text.lstrip().startswith(("{", "["))]
    for text in reversed(found):
        # Claude Code adds words of its own behind it.
        document, _ = json.JSONDecoder().raw_decode(text.lstrip())
        while isinstance(document, list):
            document = json.loads(document[0]["text"])
        return document.get("structuredContent", document)
    raise AssertionError(f"no answer of a tool in {json.dumps(messages)[-2000:]}")


def strings(value: Any) -> list[str]:
    """Return what a document could be, in order; Codex and Gemini put words of their own before it."""
    if isinstance(value, str):
        return [value.rpartition("Output:\n")[2].removeprefix("<untrusted_context>\n")]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in strings(one)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_runs_another_one_from_its_start_to_its_end(desk, kind) -> None:
    lead = desk.create("lead", permissions="default", mcp=True, prompt="remember the word xylophone")
    desk.rests(lead)
    assert lead.row["pane"]["mcp_attachments"] == ["mam"]
    assert use(desk, lead, "control_health")["caller"] == lead.id
    # However each program shows it to its model: the tools are listed.
    seen = json.dumps(desk.model.turns()[-1].body)
    assert all(name in seen for name in ("spawn_agent", "send_to", "wait_for", "stop_agent"))
    agent = use(
        desk, lead, "spawn_agent", cli="practice", name="helper", role="developer", timeout_ms=200_000
    )
    assert (agent["state"], agent["parent_agent_id"]) == ("ready", lead.id)
    sent = use(desk, lead, "send_to", agent_id="helper", text="count the stars", timeout_ms=60_000)
    assert sent["delivered"] is True
    waited = use(desk, lead, "wait_for", agent_id="helper", target_state="idle", timeout_ms=200_000)
    assert waited["matched"] is True
    assert "count the stars" in use(desk, lead, "read_screen", surface="helper", lines=100)["text"]
    assert [one["name"] for one in use(desk, lead, "list_agents", mine=True)["agents"]] == ["helper"]
    refused = use(desk, lead, "stop_agent", agent_id="lead")
    assert refused["error"]["code"] == "not_allowed"
    done = use(desk, lead, "stop_agent", agent_id="helper")
    assert done == {"agent_id": "helper", "state": "done", "applied": "stop_agent", "left_running": []}
    assert desk.fleet.sessions.get("helper").row["last_action"]["by"] == lead.id
    bridges = [one for one in process.tree(lead.row["pane"]["pid"]) if "mcp" in command_of(one.pid)]
    assert bridges
    lead.stop()
    wait_for(lambda: not any(map(process.is_alive, bridges)), "the end of its bridges")


def documented(language: str, word: str) -> str:
    """Return the block of docs/mcp.md that holds a word."""
    text = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    (found,) = [one for one in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if word in one]
    return found


def configure(desk) -> None:
    """Add the documented server to the program's own settings, with every tool allowed."""
    wanted = desk.program.mcp_settings
    path, block = desk.home / wanted.file, documented(wanted.language, wanted.word)
    if wanted.language == "json":
        known = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(merge(known | json.loads(block), wanted.allow))
    else:
        text = block + wanted.allow
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", with_long("mcp-settings"))
def test_a_server_from_the_agents_own_settings_knows_its_session(desk, kind, tmp_path, monkeypatch) -> None:
    """Codex starts it with few variables; the session is known by its process all the same."""
    program = tmp_path / "bin" / "mam"
    program.parent.mkdir()
    state_home = f"export MAM_STATE_HOME={shlex.quote(os.environ['MAM_STATE_HOME'])}"
    run = f'exec "{sys.executable}" -P -m mam "$@"'
    program.write_text(f"#!/bin/sh\n{state_home}\n{run}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    configure(desk)
    session = desk.create("lead", permissions="default", prompt="remember the word xylophone")
    desk.rests(session)
    assert session.row["pane"]["mcp_attachments"] == []
    assert use(desk, session, "control_health")["caller"] == session.id
    use(desk, session, "stop_agent", agent_id="lead")
    # Gemini shows an error inside a sentence.
    assert "a session may not stop itself" in json.dumps(desk.model.turns()[-1].messages())


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
