"""An MCP server for one launch: how each kind passes it, and that nothing else changes."""

import json
import tomllib

import pytest

from mam.adapters.agents.catalogue import BUILT_IN, kind
from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.kind import Attachment, Request
from mam.adapters.agents.opencode.kind import Opencode

SERVER = Attachment("mam", ["/x y/python", "-m", 'mam"'], {"MAM_ROOT": "/a \\ b", "MAM_SESSION": "s_1"})


def launch(kind, **facts):
    facts = {"environ": {}, "stores": {"HOME": "/no/such/home"}, "attachment": SERVER} | facts
    return kind.launch(Request(command=[kind.name], program="/bin/it", **facts))


def claude_settings(argv):
    return json.loads(argv[argv.index("--settings") + 1]) if "--settings" in argv else {}


def test_claude_gets_one_argument_that_takes_no_others() -> None:
    argv = launch(Claude()).argv
    (option,) = [argument for argument in argv if argument.startswith("--mcp-config=")]
    server = json.loads(option.partition("=")[2])["mcpServers"]["mam"]
    assert [server["command"], *server["args"]] == SERVER.argv
    assert server["env"] == SERVER.env
    assert claude_settings(argv)["permissions"] == {"allow": ["mcp__mam"]}


def test_rules_of_the_caller_stay_in_the_settings_of_claude() -> None:
    own = json.dumps({"permissions": {"allow": ["Bash(ls)"], "deny": ["Read"]}})
    request = Request(
        command=["claude", "--settings", own], program="/bin/it", environ={}, stores={}, attachment=SERVER
    )
    assert claude_settings(Claude().launch(request).argv)["permissions"] == {
        "allow": ["Bash(ls)", "mcp__mam"],
        "deny": ["Read"],
    }


def codex_server(argv):
    (value,) = [argument for argument in argv if argument.startswith("mcp_servers.")]
    return tomllib.loads(value)["mcp_servers"]["mam"]


def test_codex_gets_the_server_as_a_setting() -> None:
    server = codex_server(launch(Codex()).argv)
    assert [server["command"], *server["args"]] == SERVER.argv
    assert server["env"] == SERVER.env
    assert server["default_tools_approval_mode"] == "approve"


def test_opencode_gets_the_server_beside_those_of_the_caller() -> None:
    caller_config = {"mcp": {"other": {"type": "remote"}}, "model": "x"}
    env = launch(Opencode(), environ={"OPENCODE_CONFIG_CONTENT": json.dumps(caller_config)}).env
    config = json.loads(env["OPENCODE_CONFIG_CONTENT"])
    assert config["mcp"]["other"] == {"type": "remote"}
    assert config["mcp"]["mam"]["command"] == SERVER.argv
    assert config["mcp"]["mam"]["environment"] == SERVER.env


def test_with_the_permission_ask_no_tool_is_allowed() -> None:
    assert "permissions" not in claude_settings(launch(Claude(), permissions="ask").argv)
    assert "default_tools_approval_mode" not in codex_server(launch(Codex(), permissions="ask").argv)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_kinds_that_take_an_mcp_server(name) -> None:
    assert kind(name).takes_mcp == (name in ("claude", "codex", "opencode"))
