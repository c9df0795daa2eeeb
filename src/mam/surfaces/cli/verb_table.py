"""The table of all verbs of the command line, for dispatch, help and completion.

mam never imports or runs a verb that is not in the table.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mam.core.verb_rights import Right

SESSIONS, MESSAGES, TEAMS, JOBS, BOARD = "sessions", "messages", "teams", "jobs", "board"
AGENTS, CARE = "for agents", "maintenance"
GROUPS = (SESSIONS, MESSAGES, TEAMS, JOBS, BOARD, AGENTS, CARE)

# verb -> (module in `verbs`, what it does in one line, group)
VERBS: dict[str, tuple[str, str, str]] = {
    "init": ("init", "make this directory a root", SESSIONS),
    "create": ("create", "start an agent in its own tmux pane", SESSIONS),
    "resume": ("resume", "continue ended sessions with their conversations", SESSIONS),
    "restart": ("restart", "stop sessions and resume them", SESSIONS),
    "stop": ("stop", "end sessions and prove that no process of them is left", SESSIONS),
    "ls": ("ls", "list the sessions and what they are doing", SESSIONS),
    "status": ("status", "show everything about one session", SESSIONS),
    "attach": ("attach", "show a session in this terminal", SESSIONS),
    "read": ("read", "print what a session's pane shows", SESSIONS),
    "explain": ("explain", "explain why a session counts as idle, working or waiting", SESSIONS),
    "wait": ("wait", "wait until a session is idle, waiting, has exited or shows a text", SESSIONS),
    "send": ("send", "send a message to a session, and print the receipt", MESSAGES),
    "broadcast": ("broadcast", "send the same message to several sessions", MESSAGES),
    "inbox": ("inbox", "list the messages to a session, and their states", MESSAGES),
    "keys": ("keys", "press keys in a session's pane", MESSAGES),
    "interrupt": ("interrupt", "interrupt a session's turn, and verify that it is idle", MESSAGES),
    "answer": ("answer", "show or answer the open dialog of a session", MESSAGES),
    "archive": ("archive", "mark ended sessions as archived", SESSIONS),
    "forget": ("forget", "remove ended sessions from the registry", SESSIONS),
    "adopt": ("adopt", "register an agent that already runs in tmux", SESSIONS),
    "rename": ("rename", "give a session another name", SESSIONS),
    "fork": ("fork", "start a second session from a copy of a conversation", SESSIONS),
    "job": ("job", "delegate work to an agent, and follow it to its end", JOBS),
    "team": ("team", "start, end or list teams of agents with roles", TEAMS),
    "spawn": ("spawn", "start another agent in this window, with a role and a task", TEAMS),
    "close": ("close", "end a member of a team after its report", TEAMS),
    "rebalance": ("rebalance", "rearrange the panes of a team's window", TEAMS),
    "register": ("register", "add an agent that was started by hand to a team", TEAMS),
    "report": ("report", "report that your task is done, and get the next one", TEAMS),
    "task": ("task", "add, list, claim and finish tasks for roles", TEAMS),
    "board": ("board", "create, show, claim and complete cards of a Kanban board", BOARD),
    "mcp": ("mcp", "serve these verbs to agents as MCP tools", AGENTS),
    "skills": ("skills", "teach agents these verbs: install, list and uninstall skills", AGENTS),
    "monitor": ("monitor", "update the registry to match what exists", CARE),
    "doctor": ("doctor", "check this machine and this root", CARE),
    "drill": ("drill", "check that every conversation would come back after a reboot", CARE),
    "backup": ("backup", "copy the state of this root, or list its copies", CARE),
    "restore": ("restore", "bring the state of this root back from a copy", CARE),
    "demo": ("demo", "show mam at work, with practice agents on a separate tmux server", CARE),
    "log": ("log", "print who did what to which session, and why", CARE),
    "completion": ("completion", "print the completion script of a shell", CARE),
}

ALIASES = {"delete": "stop"}
# Words that people try first, and the verb that they mean.
_OTHER_WORDS = {
    "kill": "stop",
    "end": "stop",
    "terminate": "stop",
    "list": "ls",
    "ps": "ls",
    "start": "create",
    "new": "create",
    "rm": "forget",
    "remove": "forget",
}


def module_of(verb: str) -> str | None:
    """Return the module name of a verb or an alias; None if there is no such verb."""
    entry = VERBS.get(ALIASES.get(verb, verb))
    return entry[0] if entry else None


def right_of(verb: str, subcommand: str | None = None) -> Right:
    """Return the right that a caller needs for a verb, or for its subcommand."""
    from mam.core.verb_rights import RIGHTS

    verb = ALIASES.get(verb, verb)
    return RIGHTS[f"{verb} {subcommand}" if subcommand else verb]


def load(verb: str) -> ModuleType:
    """Return the module of a verb."""
    # __import__ instead of import_module: importing importlib takes as long as importing a verb.
    module: ModuleType = __import__(f"mam.surfaces.cli.verbs.{module_of(verb)}", fromlist=["run"])
    return module


def load_subcommand(verb: str, subcommand: str) -> ModuleType:
    """Return the module of a subcommand, for a verb that is a package."""
    module: ModuleType = __import__(f"mam.surfaces.cli.verbs.{verb}.{subcommand}", fromlist=["run"])
    return module


def overview() -> str:
    """Return the text of `mam --help`."""
    lines = [
        "usage: mam VERB [options]",
        "",
        "Starts, watches and stops AI coding agents in tmux.",
    ]
    width = max(map(len, VERBS))
    for group in GROUPS:
        lines += ["", f"{group}:"]
        for verb, (_, summary, verb_group) in VERBS.items():
            aliases = [alias for alias, name in ALIASES.items() if name == verb]
            also = f" (also: {', '.join(aliases)})" if aliases else ""
            if verb_group == group:
                lines.append(f"  {verb:<{width}}  {summary}{also}")
    return "\n".join([*lines, "", _COMMON_OPTIONS])


def nearest(verb: str) -> list[str]:
    """Return the verb that somebody means by another word, or the most similar one, if any is similar."""
    if verb in _OTHER_WORDS:
        return [_OTHER_WORDS[verb]]
    from difflib import get_close_matches

    return get_close_matches(verb[:40], [*VERBS, *ALIASES], n=1, cutoff=0.6)


_COMMON_OPTIONS = """\
before or after every verb:
  --json           answer with one JSON document
  --workspace DIR  act as if started in DIR
  --registry FILE  use this registry file

  mam VERB --help  explains a verb, with examples
  mam --version    prints the version

examples:
  mam create --agent claude --role developer
  mam ls
  mam attach --next"""
