"""mam spawn: one more agent in this window."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Namespace, Parser

DESCRIPTION = """\
Start an agent in one more pane of this window, give it the colour and the name of its role, and
tell it who started it, what its task is and how to report. This pane is the master and stands
left. Without --task it gets the oldest task that waits for its role. Outside of tmux the team has
a tmux session of its own.

Agents that are spawned run without asking for permissions, unless --permissions or the setting
team_permissions says otherwise. One that does not start in three tries leaves nothing behind."""
EXAMPLES = """
  mam spawn --role dev --task "fix the login test"
  mam spawn --role qa --agent codex --permissions ask
  mam spawn --role reviewer --agent claude --model opus
  mam spawn --role dev --agent practice -- --speed 80"""
TAKES_REST = True


def add_options(parser: Parser) -> None:
    """The role, the agent, and what it does first."""
    add = parser.add_argument
    add("--role", metavar="ROLE", required=True, help="what it is for: dev, qa, architect, …")
    add("--task", metavar="TEXT", help="its first task")
    add("--session", metavar="NAME", help="name of the new session; without one it is called as its role")
    add("--team", metavar="TEAM", help="which team, where it is not that of this window")
    add_start(parser)


def add_start(parser: Parser) -> None:
    """How agents are started, for one and for a team."""
    from mam.core.settings import PERMISSIONS
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add(
        "--agent",
        metavar="KIND",
        help="claude, codex, …, human, practice (default: the caller's kind, or claude)",
    )
    add("--permissions", choices=PERMISSIONS, help="what the agent may do unasked (skip)")
    add("--model", metavar="MODEL", help="the model, as the agent names it")
    add("--trust", action="store_true", help="answer the agent's question whether it may trust the directory")
    add("--mcp", action="store_true", help="give the agent mam's own tools, for this launch (mam mcp)")
    add("--timeout", metavar="TIME", type=span, help="how long to wait for each try: 90, 2m (60)")


def start(options: Namespace) -> dict[str, Any]:
    """Return what `add_start` took, as the fleet takes it."""
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
    """Spawn it, and say what became of its first words."""
    from mam.core.message import EXIT_CODES

    options = call.options
    done = call.fleet.teams.spawn(
        options.role, task=options.task, name=options.session, team=options.team, **start(options)
    )
    call.say(done, *([] if call.as_json else show(done)))
    return EXIT_CODES[done["receipt"]["state"]] if done["receipt"] else 0


def show(done: dict[str, Any]) -> list[str]:
    """Return a new member in a few lines."""
    from mam.surfaces.cli.render_sessions import clean, line
    from mam.surfaces.cli.verbs.send import show as show_receipt

    row = done["session"]
    lines = [f"ready: {line(row)} in pane {clean(row['pane'].get('id'))}, team {clean(done['team'])}"]
    lines.append(permissions_line(clean(row["name"]), [done["permissions"]]))
    if done["task"]:
        lines.append(f"its task: {clean(done['task']['id'])}")
    lines += [
        f"{clean(one['session'])} did not show that it took a command: {clean(one['message_id'])}"
        for one in done["identity"]
        if one["proven"] is False
    ]
    return [*lines, f"first words {show_receipt(done['receipt'])}"] if done["receipt"] else lines


def permissions_line(who: str, found: list[str]) -> str:
    """Return the one line that says with what permissions agents were started, and how to change it."""
    said = "runs without asking" if found == ["skip"] else f"runs with permissions {', '.join(found)}"
    return f"{who} {said} (--permissions, or team_permissions in the settings, changes it)"
