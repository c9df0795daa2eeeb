"""Words errors and hints for an MCP client: they name its tools instead of commands for a shell.

Errors are made below the surfaces, and their hints name commands: `mam ls shows the sessions`. A client may
have no shell. `TOOLS` says for each verb which tool does the same. A command without a tool, or with an
option that the tool does not have, stays, marked as one for a shell. A test goes over every hint of mam.
"""

from __future__ import annotations

import re

from mam.core.settings import GUARDED_TOOLS
from mam.core.verb_rights import RIGHTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from mam.core.errors import MamError

# For each verb: the tool, its argument for the name or id after the verb, and its arguments for options.
# `None` stands for a verb without a tool.
_CREATES = {
    "--agent": "cli",
    "--session": "name",
    "--role": "role",
    "--model": "model",
    "--prompt": "prompt",
    "--workspace": "cwd",
    "--worktree": "worktree",
    "--permissions": "permissions",
}
TOOLS: dict[str, tuple[str, str, dict[str, str]] | None] = {
    **dict.fromkeys(RIGHTS),
    "ls": ("list_agents", "", {"--json": ""}),
    "status": ("get_agent_state", "agent_id", {}),
    "explain": ("get_agent_state", "agent_id", {}),
    "read": ("read_screen", "surface", {}),
    "wait": ("wait_for", "agent_id", {}),
    "doctor": ("control_health", "", {}),
    "create": ("spawn_agent", "", _CREATES),
    "resume": ("resume_agent", "agent_id", {}),
    "stop": ("stop_agent", "agent_id", {"--force": "force"}),
    "send": ("send_to", "agent_id", {}),
    "broadcast": ("broadcast", "", {"--role": "role", "--agent": "cli", "--team": "team"}),
    "answer": ("answer_prompt", "agent_id", {}),
    "spawn": ("new_split", "", {"--agent": "cli", "--session": "title", "--task": "task"}),
    "close": ("close_surface", "agent_id", {"--force": "force"}),
    "job submit": ("submit_job", "", {"--agent": "cli", "--session": "agent_id", "--expect": "expect"}),
    "job status": ("job_status", "job_id", {}),
    "job wait": ("wait_for", "job_id", {}),
    "job event": ("job_event", "", {}),
}
_RESOURCES = {"job logs": "mam://jobs/{}/events"}
# Verbs that need a terminal, and so a person.
_FOR_A_PERSON = ("attach", "answer")
# Verbs without a tool that have the name of a session, a team or a card, or the id of a job, after them.
_NAMED = (
    *("attach", "forget", "fork", "adopt", "keys", "rename", "archive", "restart", "interrupt"),
    *(
        "job logs",
        "job cancel",
        "job release",
        "job forget",
        "job verify",
        "team down",
        "board claim",
        "board show",
    ),
    "inbox",
)
# The options of mam that are alone in a hint, as in "repeat without --worktree", with the arguments that they
# may be in a tool.
_ARGUMENTS = {
    **{option: (argument,) for option, argument in _CREATES.items()},
    "--session": ("name", "title", "agent_id"),
    "--force": ("force",),
    "--expect": ("expect",),
    "--task": ("task",),
}
_FLAGS = ("--force", "--json", "--worktree")
_WITH_VALUE = {"--", *(option for entry in TOOLS.values() if entry for option in entry[2])} - {*_FLAGS}
_ANSWERS = ("allow", "deny")
# Words that follow a verb and are not the name of a session or the id of a job.
PROSE = ("or", "and", "first", "has", "shows", "says", "ends", "starts", "tells", "renames")
_COMMAND = re.compile(
    rf"(?<![\w/`-])mam ({'|'.join(sorted(RIGHTS, key=len, reverse=True))})(?![\w-])"
    # What a command of another program contains is not mam's.
    r"|\bgit [^;,]*"
    r"|(?<![\w-])(--[a-z][a-z-]*)"
)
_WORD = re.compile(r" ([^\s,;()]*[^\s,;():.])(?=[\s,;():.]|\Z)")


def error_document(
    error: MamError, allowed: Callable[[], Collection[str]] = tuple, arguments: Collection[str] = ()
) -> dict[str, Any]:
    """Return the document of an error for a client.

    `allowed` returns the guarded tools that the client has, and `arguments` are those of the tool that it
    called. This is the only way of an error to a client.
    """
    document = error.as_json()
    if error.hint:
        document["error"]["hint"] = in_tools(error.hint, allowed, arguments)
    return document


def in_tools(
    hint: str, allowed: Callable[[], Collection[str]] = tuple, arguments: Collection[str] = ()
) -> str:
    """Return a hint with tools in the place of commands."""
    parts = []
    end = 0
    while match := _COMMAND.search(hint, end):
        parts.append(hint[end : match.start()])
        verb, option = match.group(1), match.group(2)
        if verb:
            words, end = _words(hint, match.end(), verb)
            parts.append(_as_tool(verb, words, allowed) or _as_command(hint[match.start() : end], verb))
        else:
            end = match.end()
            parts.append(_as_argument(option, arguments) if option else match.group())
    return "".join([*parts, hint[end:]])


def _words(hint: str, start: int, verb: str) -> tuple[list[str], int]:
    """Return the words after a verb that belong to the command, and where they end; prose follows."""
    tool = TOOLS[verb]
    names_left = 1 if verb in _NAMED or (tool is not None and tool[1]) else 0
    if verb == "rename":
        names_left = 2
    may_be_value = False
    words: list[str] = []
    end = start
    while match := _WORD.match(hint, end):
        word = match.group(1)
        if word.startswith("--"):
            may_be_value = word in _WITH_VALUE
        elif may_be_value:
            may_be_value = False
        elif names_left and word not in PROSE:
            names_left -= 1
        elif not (word.isupper() or word == "…" or (verb == "answer" and word in _ANSWERS)):
            break
        words.append(word)
        end = match.end()
    return words, end


def _as_tool(verb: str, words: list[str], allowed: Callable[[], Collection[str]]) -> str | None:
    """Return a command as a call of a tool or as a resource; None if the client has none for it."""
    if verb in _RESOURCES:
        return f"the resource {_RESOURCES[verb].format(words[0])}" if len(words) == 1 else None
    if (entry := TOOLS[verb]) is None:
        return None
    tool, name_argument, options = entry
    if tool in GUARDED_TOOLS and tool not in allowed():
        return None
    given = []
    rest = iter(words)
    for word in rest:
        if word == "…":
            continue
        if not word.startswith("--"):
            given.append(f"answer {word}" if word in _ANSWERS else f"{name_argument} {word}".strip())
        elif word not in options:
            return None
        elif word not in _FLAGS:
            given.append(f"{options[word]} {next(rest, '')}".rstrip())
        elif options[word]:
            given.append(f"{options[word]} true" if word == "--force" else options[word])
    return f"{tool} with {' and '.join(given)}" if given else tool


def _as_command(command: str, verb: str) -> str:
    return (
        f"the command `{command}` for a person" if verb in _FOR_A_PERSON else f"the shell command `{command}`"
    )


def _as_argument(option: str, arguments: Collection[str]) -> str:
    """Return an option as an argument of the tool that was called, if it has one."""
    found = [argument for argument in _ARGUMENTS.get(option, ()) if argument in arguments]
    return f"`{found[0]}`" if found else f"{option} (only in a shell)"
