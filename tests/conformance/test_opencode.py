"""What only opencode does, with the program itself: subagents, a child of its own kind, pastes, MCP tools."""

from __future__ import annotations

import json
import os
import sys

import pytest
from tests.conformance.desk import Desk, wait_for
from tests.conformance.replies import Call, Say, Shell

import mam
from mam.adapters.store.files import hook_spool
from mam.app.sessions import first_prompt as prompts
from mam.core.errors import InvalidPrompt

pytestmark = [pytest.mark.slow]
LONG = "\n".join(f"line {number}\tof a long text: größer ✓" for number in range(1, 101))
MCP_SERVER = """
import json, pathlib, sys

tool = {"name": "ping", "description": "ping", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, version = asked["method"], asked.get("params", {}).get("protocolVersion")
    answer = {}
    if method == "initialize":
        about = {"name": "probe", "version": "1"}
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        answer = {"tools": [tool]}
    elif method == "tools/call":
        pathlib.Path("pinged").touch()
        answer = {"content": [{"type": "text", "text": "pong"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


@pytest.fixture(scope="module")
def kind():
    return "opencode"


@pytest.fixture
def desk(fresh_desk):
    return fresh_desk


def first_prompt(desk: Desk, prompt: str) -> mam.Session:
    """Submit a prompt to the shared session exactly as `create` does once the agent is ready."""
    session = desk.worker()
    prompts.first_prompt(
        desk.fleet._access.context, desk.fleet.caller, session.row, prompts.check_prompt(prompt)
    )
    return session


def test_a_long_prompt_arrives_and_is_proven(shared: Desk) -> None:
    """A paste of many lines is shown as one mark, and gets a space after it."""
    first_prompt(shared, f"  {LONG}\n")
    wait_for(lambda: shared.model.saw(LONG), "the prompt at the model", 60)
    before = [session.name for session in shared.fleet.sessions.list()]
    with pytest.raises(InvalidPrompt):
        shared.create("other", prompt="quit")
    assert [session.name for session in shared.fleet.sessions.list()] == before


@pytest.mark.parametrize("prompt", ["/new is a word here", "!touch made", "look at @REA", "ends in \\"])
def test_words_that_would_be_commands_arrive_as_words(shared: Desk, prompt) -> None:
    (shared.workspace / "README.md").write_text("x", encoding="utf-8")
    session = first_prompt(shared, prompt)
    wait_for(lambda: shared.model.saw(prompt), session.read, 60)
    assert not (shared.workspace / "made").exists()


def test_a_subagent_neither_ends_the_turn_nor_gives_its_name(shared: Desk) -> None:
    session = shared.worker()
    own = shared.own(session)
    known = [one["id"] for one in session.status()["conversations"]]
    held = shared.model.gate()
    task = {"description": "sub", "prompt": "do a small thing", "subagent_type": "general"}
    # The subagent's own turn is answered at once, and the answer after it is held back.
    shared.model.answer(Call("task", task), Say("the small thing is done"), Say("all is done", before=held))
    shared.say(session, "use a subagent")
    wait_for(lambda: shared.model.saw("the small thing is done"), session.read, 60)
    shared.becomes(session, "working")
    held.set()
    shared.rests(session)
    assert shared.own(session) == own
    assert [one["id"] for one in session.status()["conversations"]] == known


def test_a_conversation_that_ends_in_the_background_does_not_come_back(shared: Desk) -> None:
    session = shared.worker()
    first = shared.own(session)
    in_background, in_front = shared.model.gate(), shared.model.gate()
    shared.model.answer(Say("the background is done", before=in_background), Say("done", before=in_front))
    shared.say(session, "count slowly")
    shared.becomes(session, "working")
    shared.say(session, "/new", is_command=True)
    wait_for(lambda: "xylophone" not in session.read(), session.read, 60)
    shared.say(session, "remember the word walrus")
    wait_for(lambda: shared.own(session) != first, session.read, 60)
    second = shared.own(session)
    in_background.set()
    kind, stores = shared.fleet._access.context.kind("opencode"), session.row["stores"]

    def has_ended():
        return [
            one.state for one in kind.read_transcript_evidence(first, session.row["workspace"], stores)
        ] == ["idle"]

    wait_for(has_ended, "the end of the first conversation in the database", 60)
    shared.becomes(session, "working")
    assert shared.own(session) == second
    in_front.set()
    shared.rests(session)
    assert shared.own(session) == second


@pytest.mark.long
def test_a_child_of_its_own_kind_is_not_its_voice(desk: Desk) -> None:
    """It inherits the plugin and the session's name, and writes under its own pid."""
    session = desk.create("worker", permissions="skip")
    desk.model.answer(Shell("opencode run 'a word of the child' >said-by-child 2>&1; echo over"))
    desk.say(session, "start a child")
    wait_for(lambda: desk.model.saw("a word of the child"), session.read, 90)
    pid = desk.fleet.sessions.get(session.id).row["pane"]["pid"]
    spool = desk.fleet._access.context.paths.spool

    def heard_child():
        return any(str(pid) != one.pid for one in hook_spool.pending(spool))

    wait_for(heard_child, lambda: f"the child's words: {hook_spool.pending(spool)}", 60)
    own = desk.own(session)
    wait_for(lambda: desk.model.saw("over"), session.read, 60)
    desk.rests(session)
    assert desk.own(session) == own
    turns = session.transcript()["turns"]
    assert "start a child" in json.dumps(turns)
    assert "a word of the child" not in turns[0]["text"]


@pytest.mark.long
def test_a_tool_of_an_mcp_server_is_asked_for_too(desk: Desk, monkeypatch) -> None:
    server = desk.home / "server.py"
    server.write_text(MCP_SERVER, encoding="utf-8")
    config = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
    config["mcp"] = {"probe": {"type": "local", "command": [sys.executable, str(server)]}}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(config))
    with mam.open(str(desk.workspace)) as fleet:
        session = fleet.sessions.create(
            "opencode", name="worker", permissions="ask", timeout=desk.program.ready_timeout
        )
        desk.model.answer(Call("probe_ping"))
        desk.say(session, "ping it")
        desk.becomes(session, "waiting", "permission")
        desk.sees(session, "screen", "waiting")
        assert not (desk.workspace / "pinged").exists()
        desk.press(session, *desk.program.refuse)
        desk.rests(session)
        assert not (desk.workspace / "pinged").exists()
