"""The verbs of the command line: a closed table that drives dispatch, help and completion.

A word that is not in it is never imported, looked up or run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mam.core.rights import Right

SESSIONS, MESSAGES, TEAMS, JOBS, BOARD = "sessions", "messages", "teams", "jobs", "board"
AGENTS, CARE = "for agents", "care"
GROUPS = (SESSIONS, MESSAGES, TEAMS, JOBS, BOARD, AGENTS, CARE)

# verb -> (module in `verbs`, what it does in one line, group)
VERBS: dict[str, tuple[str, str, str]] = {
    "init": ("init", "make this directory a root of its own", SESSIONS),
    "create": ("create", "start an agent in a tmux pane of its own", SESSIONS),
    "resume": ("resume", "take ended sessions up again, with their conversations", SESSIONS),
    "restart": ("restart", "stop sessions and take them up again", SESSIONS),
    "stop": ("stop", "end sessions and prove that nothing of them is left", SESSIONS),
    "ls": ("ls", "list the sessions and what they are doing", SESSIONS),
    "status": ("status", "show one session with everything that is known", SESSIONS),
    "attach": ("attach", "show a session in this terminal", SESSIONS),
    "read": ("read", "print what a session's pane shows", SESSIONS),
    "explain": ("explain", "say why a session counts as idle, working or waiting", SESSIONS),
    "wait": ("wait", "wait until a session is idle, waiting, has exited or shows a text", SESSIONS),
    "send": ("send", "send words to a session, with a receipt", MESSAGES),
    "broadcast": ("broadcast", "send the same words to several sessions", MESSAGES),
    "inbox": ("inbox", "list what was sent to a session, and what became of it", MESSAGES),
    "keys": ("keys", "press keys in a session's pane", MESSAGES),
    "interrupt": ("interrupt", "cut a session's turn short, and see that it rests", MESSAGES),
    "answer": ("answer", "show or answer the dialog that a session has open", MESSAGES),
    "archive": ("archive", "put ended sessions away", SESSIONS),
    "forget": ("forget", "drop ended sessions from the registry", SESSIONS),
    "adopt": ("adopt", "register an agent that runs in tmux already", SESSIONS),
    "rename": ("rename", "give a session another name", SESSIONS),
    "fork": ("fork", "start a second session from a copy of a conversation", SESSIONS),
    "job": ("job", "delegate work, follow it, and see how it ended", JOBS),
    "team": ("team", "bring several agents with roles up and down, or list them", TEAMS),
    "spawn": ("spawn", "start one more agent in this window, with a role and a task", TEAMS),
    "close": ("close", "end a member of a team that has reported", TEAMS),
    "rebalance": ("rebalance", "put the window of a team in order", TEAMS),
    "register": ("register", "let an agent that was started by hand join a team", TEAMS),
    "report": ("report", "say that your task is done, and get the next", TEAMS),
    "task": ("task", "add, list, claim and end the tasks of roles", TEAMS),
    "board": ("board", "make, show, claim and end the cards of a Kanban board", BOARD),
    "mcp": ("mcp", "serve these verbs to agents as MCP tools", AGENTS),
    "skills": ("skills", "teach agents these verbs: install, list and remove skills", AGENTS),
    "monitor": ("monitor", "bring the registry in line with what is there", CARE),
    "doctor": ("doctor", "check this machine and this root", CARE),
    "demo": ("demo", "see it all work, with practice agents in a tmux of its own", CARE),
    "log": ("log", "print who did what to which session, and why", CARE),
    "completion": ("completion", "print the completion script of a shell", CARE),
}

ALIASES = {"delete": "stop"}


def module_of(word: str) -> str | None:
    """Return the module of a verb or of another word for it; None for a word that is no verb."""
    found = VERBS.get(ALIASES.get(word, word))
    return found[0] if found else None


def right_of(verb: str, word: str | None = None) -> Right:
    """Return what a caller of a verb, or of a word below it, has to be allowed."""
    from mam.core.rights import RIGHTS

    verb = ALIASES.get(verb, verb)
    return RIGHTS[f"{verb} {word}" if word else verb]


def load(word: str) -> ModuleType:
    """Return the module of a verb."""
    # Not import_module: importlib's own package is as large as a verb.
    found: ModuleType = __import__(f"mam.surfaces.cli.verbs.{module_of(word)}", fromlist=["run"])
    return found


def load_word(verb: str, word: str) -> ModuleType:
    """Return the module of a word below a verb that has a folder of its own."""
    found: ModuleType = __import__(f"mam.surfaces.cli.verbs.{verb}.{word}", fromlist=["run"])
    return found


def overview() -> str:
    """Return the help of the whole command line."""
    lines = [
        "usage: mam VERB [options]",
        "",
        "The control plane for AI coding agents that live in tmux.",
    ]
    wide = max(map(len, VERBS))
    for group in GROUPS:
        lines += ["", f"{group}:"]
        for verb, (_, summary, of) in VERBS.items():
            others = [alias for alias, meant in ALIASES.items() if meant == verb]
            also = f" (also: {', '.join(others)})" if others else ""
            if of == group:
                lines.append(f"  {verb:<{wide}}  {summary}{also}")
    return "\n".join([*lines, "", _EVERYWHERE])


def nearest(word: str) -> list[str]:
    """Return the verbs that a mistyped word may have meant."""
    from difflib import get_close_matches

    return get_close_matches(word[:40], [*VERBS, *ALIASES], n=1, cutoff=0.6)


_EVERYWHERE = """\
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
