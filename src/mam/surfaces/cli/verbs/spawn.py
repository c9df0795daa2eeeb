"""mam spawn: start another agent in this window."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Namespace, Parser

DESCRIPTION = """\
Start an agent in a new pane of this window. mam gives it the colour and the name of its role, and
tells it who started it, what its task is and how to report. This pane is the master's, on the
left. Without --task the agent gets the oldest pending task of its role. Outside of tmux the team
gets its own tmux session.

Spawned agents do not ask for permissions, unless --permissions or the setting team_permissions
says otherwise. If an agent does not start in three attempts, mam removes everything of it."""
EXAMPLES = """
  mam spawn --role dev --task "fix the login test"
  mam spawn --role qa --agent codex --permissions ask
  mam spawn --role reviewer --agent claude --model opus
  mam spawn --role dev --agent practice -- --speed 80"""
TAKES_REST = True


def add_options(parser: Parser) -> None:
    """Add the options: the role, the agent and its first task."""
    add = parser.add_argument
    add("--role", metavar="ROLE", required=True, help="role of the agent: dev, qa, architect, …")
    add("--task", metavar="TEXT", help="its first task")
    add("--session", metavar="NAME", help="name of the new session (default: its role)")
    add("--team", metavar="TEAM", help="the team (default: that of this window)")
    add_start(parser)


def add_start(parser: Parser) -> None:
    """Add the options for starting agents, which `spawn` and `team up` share."""
    from mam.core.settings import PERMISSIONS
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add(
        "--agent",
        metavar="KIND",
        help="claude, codex, …, human, practice (default: the caller's kind, or claude)",
    )
    add("--permissions", choices=PERMISSIONS, help="what the agent may do without asking (skip)")
    add("--model", metavar="MODEL", help="the model, as the agent names it")
    add("--trust", action="store_true", help="let the agent trust the directory")
    add("--mcp", action="store_true", help="give the agent mam's own tools (mam mcp), also after a resume")
    add("--timeout", metavar="TIME", type=span, help="how long to wait for each attempt: 90, 2m (60)")


def start_options(options: Namespace) -> dict[str, Any]:
    """Return the options of `add_start` as arguments for the fleet."""
    return {
        "agent": options.agent,
        "permissions": options.permissions,
        "model": options.model,
        "trust": options.trust,
        "mcp": options.mcp,
        "timeout": options.timeout,
        "args": options.rest,
    }


def run(call: Invocation) -> int:
    """Spawn the agent, and print the receipt of its first message."""
    from mam.core.message_rules import EXIT_CODES

    options = call.options
    document = call.fleet.teams.spawn(
        options.role, task=options.task, name=options.session, team=options.team, **start_options(options)
    )
    call.say(document, *([] if call.as_json else show(document)))
    return EXIT_CODES[document["receipt"]["state"]] if document["receipt"] else 0


def show(document: dict[str, Any]) -> list[str]:
    """Return a new member as text for people."""
    from mam.surfaces.cli.render_sessions import clean, line
    from mam.surfaces.cli.verbs.send import show as show_receipt

    row = document["session"]
    lines = [f"ready: {line(row)} in pane {clean(row['pane'].get('id'))}, team {clean(document['team'])}"]
    lines.append(permissions_line(clean(row["name"]), document["permissions"]))
    if document["task"]:
        lines.append(f"its task: {clean(document['task']['id'])}")
    lines += [
        f"nothing proves that {clean(command['session'])} took the command {clean(command['message_id'])}"
        for command in document["identity"]
        if command["proven"] is False
    ]
    if document["receipt"]:
        lines.append(f"first message {show_receipt(document['receipt'])}")
    return [*lines, page_line(document)]


def page_line(document: dict[str, Any]) -> str:
    """Return a line that names the team page."""
    from mam.surfaces.cli.render_sessions import clean

    return f"team page: {clean(document['session_file'], 500)}"


def permissions_line(name: str, permissions: str) -> str:
    """Return a line about the permissions of a started agent, and how to change them."""
    mode = "runs without asking" if permissions == "skip" else f"runs with permissions {permissions}"
    return f"{name} {mode} (--permissions, or team_permissions in the settings, changes it)"
