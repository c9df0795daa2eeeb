"""The copy that a bridge answers from says what the server would say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from tests.surfaces.mcp.client import HELLO
from tests.surfaces.mcp.renew_startup_answers import ENVELOPE, LISTS, answers_of_server, asking

from mam.core.errors import InvalidSettings
from mam.core.settings import GUARDED_TOOLS
from mam.surfaces.mcp import startup_answers
from mam.surfaces.mcp.startup_answers import FILE, StartupAnswers


def copied(answers, method, params=None):
    request = {"jsonrpc": "2.0", "id": 1, "method": method}
    return answers.result(request | ({} if params is None else {"params": params}))


def test_the_copy_is_what_the_server_answers(fleet) -> None:
    copy = json.loads(Path(FILE).read_text(encoding="utf-8"))
    assert copy == answers_of_server(fleet), "renew it: python -m tests.surfaces.mcp.renew_startup_answers"


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2026-07-28", "1999-01-01", ""])
def test_each_version_of_the_protocol_gets_the_same_answers(fleet, version) -> None:
    answers = StartupAnswers(tuple)
    hello = {**HELLO, "protocolVersion": version, "capabilities": {"roots": {}, "sampling": {}}}
    with asking(fleet) as ask:
        assert copied(answers, "ping") == ask("ping")["result"]
        assert copied(answers, "initialize", hello) == ask("initialize", hello)["result"]
        for method in ("ping", *LISTS):
            assert copied(answers, method) == ask(method)["result"], method
            assert copied(answers, method, {"_meta": {"progressToken": 1}}) == ask(method, {})["result"]


def test_the_protocol_without_initialize_gets_the_same_answers(fleet) -> None:
    answers = StartupAnswers(tuple)
    with asking(fleet) as ask:
        for method in ("server/discover", *LISTS):
            assert copied(answers, method, ENVELOPE) == ask(method, ENVELOPE)["result"], method


@pytest.mark.parametrize("variables", [{}, {"MAM_SESSION": "s_00000000"}])
@pytest.mark.parametrize("setting", [[], ["purge"]])
@pytest.mark.parametrize("allow", [[], ["kill"], list(GUARDED_TOOLS)])
def test_the_guarded_tools_are_those_that_the_server_offers(
    fleet, home, monkeypatch, variables, setting, allow
) -> None:
    fleet.init()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with (home / ".config" / "mam" / "config.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n[mcp]\nallow = {json.dumps(setting)}\n")
    introduction = {"cwd": fleet.root, "environ": dict(os.environ), "allow": allow}
    answers = StartupAnswers(lambda: fleet.mcp.allowed(introduction))
    with asking(fleet, allow=allow) as ask:
        assert copied(answers, "initialize", HELLO) == ask("initialize", HELLO)["result"]
        listed = copied(answers, "tools/list")
        assert listed == ask("tools/list")["result"]
    guarded = {tool["name"] for tool in listed["tools"]} & set(GUARDED_TOOLS)
    assert guarded == {*setting, *([] if variables else allow)}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", None),
        ("tools/list", {"cursor": "x"}),
        ("initialize", {}),
        ("initialize", {**HELLO, "protocolVersion": 7}),
        ("initialize", {**HELLO, "clientInfo": {"name": "x"}}),
        ("initialize", {**HELLO, "capabilities": {"roots": 1}}),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        ("tools/list", {"_meta": {**ENVELOPE["_meta"], "io.modelcontextprotocol/protocolVersion": "2099"}}),
        ("ping", ENVELOPE),
        ("logging/setLevel", None),
    ],
)
def test_what_the_server_refuses_is_left_to_it(fleet, method, params) -> None:
    assert copied(StartupAnswers(tuple), method, params) is None
    with asking(fleet) as ask:
        assert "error" in ask(method, params)


@pytest.mark.parametrize("params", [{"_meta": [1]}, {"_meta": None}, {"cursor": 1}])
def test_a_list_with_strange_parameters_is_left_to_the_server(fleet, params) -> None:
    answers = StartupAnswers(tuple)
    with asking(fleet) as ask:
        assert copied(answers, "initialize", HELLO) == ask("initialize", HELLO)["result"]
        assert copied(answers, "tools/list", params) is None
        assert ask("tools/list", params)["id"] == 1


def test_one_client_speaks_one_protocol(fleet) -> None:
    for first, second in (
        (("initialize", HELLO), ("tools/list", ENVELOPE)),
        (("tools/list", ENVELOPE), ("initialize", HELLO)),
        (("tools/list", ENVELOPE), ("tools/list", {})),
    ):
        answers = StartupAnswers(tuple)
        with asking(fleet) as ask:
            assert copied(answers, *first) == ask(*first)["result"]
            assert copied(answers, *second) is None
            assert "error" in ask(*second)


@pytest.mark.parametrize("odd", [{"jsonrpc": "1.0"}, {"id": True}, {"id": 1.5}, {"params": [1]}])
def test_a_message_of_a_strange_form_is_left_to_the_server(odd) -> None:
    assert StartupAnswers(tuple).result({"jsonrpc": "2.0", "id": 1, "method": "ping", **odd}) is None


@pytest.mark.parametrize("content", [None, "", "{", "[]"])
def test_a_copy_that_cannot_be_read_is_left_to_the_server(tmp_path, monkeypatch, content) -> None:
    file = tmp_path / "startup_answers.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    monkeypatch.setattr(startup_answers, "FILE", str(file))
    answers = StartupAnswers(tuple)
    assert copied(answers, "initialize", HELLO) is None
    assert copied(answers, "tools/list") is None


def test_the_copy_is_read_once_so_that_an_upgrade_does_not_change_it(monkeypatch) -> None:
    answers = StartupAnswers(tuple)
    assert copied(answers, "initialize", HELLO)
    monkeypatch.setattr(startup_answers, "FILE", "/no/such/file")
    assert copied(answers, "prompts/list")


def test_settings_that_cannot_be_read_are_left_to_the_server() -> None:
    def allowed():
        raise InvalidSettings("no")

    answers = StartupAnswers(allowed)
    assert copied(answers, "initialize", HELLO)
    assert copied(answers, "tools/list") is None
    assert copied(answers, "prompts/list")


def test_a_bridge_does_not_load_the_package_for_its_answers(fleet, workspace) -> None:
    fleet.init()
    code = (
        "import json, mam, sys\n"
        "from mam.surfaces.mcp import bridge\n"
        "from mam.surfaces.mcp.startup_answers import StartupAnswers\n"
        "fleet = mam.open()\n"
        "answers = StartupAnswers(lambda: fleet.mcp.allowed({}))\n"
        "for method, params in json.loads(sys.argv[1]):\n"
        "    request = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}\n"
        "    assert answers.result(request) is not None\n"
        "print(*sys.modules)"
    )
    asked = json.dumps([("initialize", HELLO), ("tools/list", {})])
    command = [sys.executable, "-P", "-c", code, asked]
    done = subprocess.run(command, cwd=workspace, stdout=subprocess.PIPE, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "json" in loaded
    assert not loaded & {"mcp", "mcp_types", "pydantic", "asyncio"}
