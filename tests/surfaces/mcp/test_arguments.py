"""Every tool with arguments made from its schema: an answer or one of our errors, and nothing by mistake."""

import asyncio
import random
import socket
import string

import pytest
from mcp import Client

from mam.app.agent_tools.connected_client import ConnectedClient
from mam.core.settings import GUARDED_TOOLS
from mam.surfaces.mcp.server import Server
from mam.surfaces.mcp.tool import current_client
from mam.surfaces.mcp.tools import all_tools

TOOLS = {tool.name: tool.parameters for tool in all_tools()}
# So many calls of each tool; the larger number for ./dev test --all.
MANY = [50, pytest.param(200, marks=pytest.mark.long)]
WORDS = [
    "",
    "one",
    "s_00000000",
    "%1",
    "-",
    "a" * 90,
    "../x",
    "#(touch y)",
    "ü",
    "\u202e",
    "null",
    '{"a":1}',
    "\0",
]
STRANGE = [None, "x", 1, 1.5, -1, True, [], ["x", 1], {}, {"a": 1}, 10**30, [[]]]
# Values that would start something or wait for it; the tests of the tools do that.
QUIET = {"timeout_ms": 1, "cli": "no-such-program"}


def resolve(schema, top):
    reference = schema.get("$ref")
    return top["$defs"][reference.rpartition("/")[2]] if reference else schema


def valid(schema, top, dice):
    """Return a value that fits a schema."""
    schema = resolve(schema, top)
    if "anyOf" in schema:
        return valid(dice.choice(schema["anyOf"]), top, dice)
    if "enum" in schema or "const" in schema:
        return dice.choice(schema.get("enum") or [schema["const"]])
    kind = schema["type"]
    if kind == "string":
        least, most = schema.get("minLength", 0), min(schema.get("maxLength", 200), 200)
        word = dice.choice([*WORDS, "".join(dice.choices(string.printable, k=dice.randint(0, 40)))])
        return (word + "x" * least)[:most]
    if kind == "integer":
        return dice.randint(schema.get("minimum", -5), min(schema.get("maximum", 1000), 1000))
    if kind == "array":
        return [valid(schema["items"], top, dice) for _ in range(dice.randint(0, 3))]
    return {"boolean": dice.random() < 0.5, "null": None}[kind]


def fits(value, schema, top):
    import jsonschema

    return jsonschema.Draft202012Validator({**schema, "$defs": top.get("$defs", {})}).is_valid(
        value
    ) and not (isinstance(value, float) and value.is_integer())


def arguments(schema, dice):
    values = {
        name: valid(part, schema, dice)
        for name, part in schema["properties"].items()
        if name in schema.get("required", ()) or dice.random() < 0.5
    }
    return {**values, **{name: value for name, value in QUIET.items() if name in schema["properties"]}}


def spoiled(schema, dice):
    """Return arguments that fit but for one thing."""
    values = arguments(schema, dice)
    required = list(schema.get("required", ()))
    names = list(schema["properties"])
    how = dice.choice([*(["missing"] if required else []), *(["strange"] * 3 if names else []), "extra"])
    if how == "missing":
        del values[dice.choice(required)]
    elif how == "extra":
        values["x" + "".join(dice.choices(string.ascii_letters, k=5))] = dice.choice(STRANGE)
    else:
        name = dice.choice(names)
        wrong = [value for value in STRANGE if not fits(value, schema["properties"][name], schema)]
        values[name] = dice.choice(wrong)
    return values


@pytest.fixture
def ask(fleet, workspace):
    """Call tools in this process, as the operator with every guarded tool."""
    fleet.init()
    client_end, server_end = socket.socketpair()
    introduction = {
        "cwd": str(workspace),
        "environ": dict(fleet._access.context.environ),
        "allow": list(GUARDED_TOOLS),
    }
    connected = ConnectedClient(fleet._access.context, server_end, introduction)

    def run(name, many):
        async def all_of_them():
            current_client.set(connected)
            async with Client(Server()) as client:
                return [(values, await client.call_tool(name, values)) for values in many]

        return asyncio.run(all_of_them())

    yield run
    client_end.close()
    server_end.close()


def state_of(fleet):
    database = fleet._access.context.paths.db
    import sqlite3

    with sqlite3.connect(database) as connection:
        rows = {
            table: connection.execute(f"SELECT * FROM {table}").fetchall()
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    connection.close()
    return rows


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("name", TOOLS)
def test_valid_arguments_get_an_answer_or_one_of_our_errors(fleet, ask, name, many) -> None:
    dice = random.Random(name)
    schema = TOOLS[name]
    cases = [arguments(schema, dice) for _ in range(many if schema["properties"] else 3)]
    for values, result in ask(name, cases):
        document = result.structured_content
        error = document.get("error", {})
        assert result.is_error == bool(error), (values, document)
        assert error.get("code") != "broken", (values, document)
        assert not error or (error["message"] and "Traceback" not in str(document)), (values, document)


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("name", TOOLS)
def test_invalid_arguments_are_refused_and_change_nothing(fleet, ask, name, many) -> None:
    dice = random.Random(name)
    before = state_of(fleet)
    for values, result in ask(name, [spoiled(TOOLS[name], dice) for _ in range(many)]):
        error = (result.structured_content or {}).get("error", {})
        assert result.is_error, values
        assert error.get("code") == "usage", (values, error)
    assert state_of(fleet) == before
    assert fleet.sessions.names() == []
