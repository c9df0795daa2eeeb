"""Hints that reach an MCP client name its tools, whoever wrote them."""

import ast
import re
from pathlib import Path

import pytest

import mam
from mam.core.errors import MamError
from mam.core.settings import GUARDED_TOOLS
from mam.core.verb_rights import RIGHTS
from mam.surfaces.mcp.tool_hints import TOOLS, error_document, in_tools
from mam.surfaces.mcp.tools import all_tools

SOURCE = Path(mam.__file__).parent
SCHEMAS = {tool.name: tool.parameters["properties"] for tool in all_tools()}
COMMAND = re.compile(rf"\bmam ({'|'.join(sorted(RIGHTS, key=len, reverse=True))})(?![\w-])")
# A shell command that is marked as one, and a command of another program.
MARKED = re.compile(r"the (?:shell )?command `[^`]*`|`mam mcp`|git [^;,]*")
# What stands for a value that a hint contains. No word of a sentence is spelled like it.
VALUE = "zz9"


def texts(path):
    """Return the texts of a module that are hints, or name a command of mam, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    hints = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "hint"
        for part in ast.walk(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else VALUE for part in node.values)
        else:
            continue
        if id(node) not in documentation and "\n" not in text and (id(node) in hints or COMMAND.search(text)):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}", re.sub(r"\{\w*\}", VALUE, text)


HINTS = dict(
    hint
    for package in ("core", "adapters", "app", "surfaces/mcp")
    for path in sorted((SOURCE / package).rglob("*.py"))
    if path.name != "tool_hints.py"
    for hint in texts(path)
)


def test_there_are_hints_to_check() -> None:
    assert len(HINTS) > 250
    assert sum(bool(COMMAND.search(text)) for text in HINTS.values()) > 80


@pytest.mark.parametrize("allowed", [(), GUARDED_TOOLS])
@pytest.mark.parametrize("called", ["spawn_agent", "stop_agent"])
def test_every_hint_names_the_tools_that_the_client_has_and_no_command_without_a_shell(
    allowed, called
) -> None:
    missing = set(GUARDED_TOOLS) - set(allowed)
    for where, text in HINTS.items():
        worded = in_tools(text, lambda: allowed, SCHEMAS[called])
        assert not missing & set(re.findall(r"\w+", worded)) or missing & set(re.findall(r"\w+", text)), where
        rest = MARKED.sub("", worded)
        assert not COMMAND.search(rest), f"{where}: {worded}"
        assert not re.search(r"(?<![\w-])--[a-z][a-z-]*(?! \(only in a shell\)|[a-z-])", rest), (
            where,
            worded,
        )
        # A name that follows a command is part of the command or an argument of the tool.
        assert not re.search(rf"(`|\b(?:{'|'.join(SCHEMAS)})) {VALUE}", worded), f"{where}: {worded}"


def test_each_verb_is_given_a_tool_and_arguments_that_exist() -> None:
    assert set(TOOLS) == set(RIGHTS)
    for tool, argument, options in filter(None, TOOLS.values()):
        named = {argument, *options.values()} - {""}
        assert named <= set(SCHEMAS[tool]), tool


@pytest.mark.parametrize(
    ("hint", "worded"),
    [
        ("mam ls shows the sessions of this root", "list_agents shows the sessions of this root"),
        ("mam ls --json shows which", "list_agents shows which"),
        ("look: mam read one", "look: read_screen with surface one"),
        ("look: mam read", "look: read_screen"),
        ("mam read shows its screen", "read_screen shows its screen"),
        ("mam stop one ends it", "stop_agent with agent_id one ends it"),
        ("mam close one --force closes it", "close_surface with agent_id one and force true closes it"),
        ("mam close one --accept takes it", "the shell command `mam close one --accept` takes it"),
        ("mam create --session one --model m first", "spawn_agent with name one and model m first"),
        ("mam create --agent KIND starts one", "spawn_agent with cli KIND starts one"),
        ("mam job wait 00ab12cd, or cancel it", "wait_for with job_id 00ab12cd, or cancel it"),
        ("mam job logs 00ab12cd shows it", "the resource mam://jobs/00ab12cd/events shows it"),
        ("or mam forget --worktree one first", "or the shell command `mam forget --worktree one` first"),
        ("type it (mam attach one), or wait", "type it (the command `mam attach one` for a person), or wait"),
        ("mam answer one deny", "the command `mam answer one deny` for a person"),
        ("mam job submit --exec -- agy …", "the shell command `mam job submit --exec -- agy …`"),
        ("choose a name with --session", "choose a name with `name`"),
        ("repeat with --trust", "repeat with --trust (only in a shell)"),
        ("git worktree remove --force, by hand", "git worktree remove --force, by hand"),
        ("mam creates its own; mam can read it", "mam creates its own; mam can read it"),
        ("remove /usr/lib/mam stop", "remove /usr/lib/mam stop"),
        ("", ""),
    ],
)
def test_how_a_hint_is_worded(hint, worded) -> None:
    assert in_tools(hint, tuple, SCHEMAS["spawn_agent"]) == worded


def test_a_guarded_tool_is_named_to_a_client_that_has_it() -> None:
    assert in_tools("mam answer one deny", lambda: ["answer_prompt"]) == (
        "answer_prompt with agent_id one and answer deny"
    )


def test_the_document_of_an_error_keeps_everything_but_the_hint() -> None:
    error = MamError("mam ls failed", hint="mam ls shows more", session={"id": "s_1"})
    document = error_document(error)
    assert document["error"].pop("hint") == "list_agents shows more"
    expected = error.as_json()
    del expected["error"]["hint"]
    assert document == expected
    assert error_document(MamError("no"))["error"]["hint"] is None


def test_no_error_goes_to_a_client_another_way() -> None:
    users = {
        path.name
        for path in (SOURCE / "surfaces" / "mcp").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("as_json", "hint")
    }
    assert users == {"tool_hints.py"}
