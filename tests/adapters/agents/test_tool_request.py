"""What a hook says about the tool that an agent asks a permission for."""

from __future__ import annotations

import pytest

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.tool_request import request_of, tool_request

CONVERSATION = "0b9aa7f0-11d1-4f2c-8a5b-0a6a5f0e1d2c"


@pytest.mark.parametrize("agent", ["claude", "codex", "practice"])
def test_s002_20_a_permission_hook_says_tool_and_what(agent):
    payload = {
        "hook_event_name": "PermissionRequest",
        "session_id": CONVERSATION,
        "tool_name": "Bash",
        "tool_input": {"command": "touch x", "description": "Make a file"},
    }
    event = kind(agent).read_hook(payload)
    assert (event.waiting_for, event.asks) == ("permission", "Bash:touch x")
    assert kind(agent).read_hook({**payload, "hook_event_name": "PostToolUse"}).asks is None


def test_s002_20_the_plugin_of_opencode_says_tool_and_what():
    payload = {"agent": "opencode", "event": "asked", "waiting_for": "permission", "tool": "bash"}
    assert kind("opencode").read_hook({**payload, "what": "touch x"}).asks == "bash:touch x"


@pytest.mark.parametrize(
    ("tool", "purpose", "words"),
    [
        ("Bash", {"command": ["touch", "x"]}, "Bash:touch x"),
        ("Edit", {"old": "a", "file_path": "/x/y.py"}, "Edit:/x/y.py"),
        ("Odd", {"n": 1}, 'Odd:{"n": 1}'),
        ("Bash", {"command": "one\ntwo\x1b[2J"}, "Bash:one two[2J"),
        ("Bash", None, "Bash"),
        ("Bash", {}, "Bash"),
        (None, {"command": "x"}, None),
        ("", {"command": "x"}, None),
        (7, "x", None),
    ],
)
def test_it_is_one_clean_line(tool, purpose, words):
    assert request_of(tool, purpose) == words


def test_it_is_short():
    assert len(request_of("t" * 10_000, {"command": "x" * 1_000_000})) <= 200
    assert tool_request({}) is None
