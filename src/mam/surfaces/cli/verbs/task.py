"""mam task: tasks for roles, which members of teams claim."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

DESCRIPTION = """\
Add tasks for roles, list them, claim them and finish them.

A task is pending until a member with its role claims it; the oldest comes first. Only one member
can claim a task: if ten try at once, nine exit with 1. An agent finishes its task with mam report,
which also informs the session that started it. task done finishes a task without a report."""
EXAMPLES = """
  mam task add "fix the login test" --role dev
  mam task list --role dev
  mam task claim --role dev                     the oldest pending task
  mam task claim TASK-003 --session dev-2       this task, for that session
  mam task done TASK-003 --result "fixed in 4f2a" """
STATUSES = ("pending", "in-progress", "done")
_STYLES = {"pending": "blue", "in-progress": "cyan", "done": "green"}


def add_options(parser: Parser) -> None:
    """Add the subcommands."""
    from mam.surfaces.cli.parser import add_subcommands

    add_subcommands(
        parser,
        {
            "add": ("add a task for a role", _of_add),
            "list": ("list the tasks, oldest first", _of_list),
            "claim": ("claim a task, or the oldest one of a role", _of_claim),
            "done": ("finish a task without a report", _of_done),
        },
        EXAMPLES,
    )


def _of_add(parser: Parser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", help="text of the task; - reads it from stdin")
    add("--role", metavar="ROLE", required=True, help="role that does the task")
    add("--team", metavar="TEAM", help="only for this team (default: any team)")


def _of_list(parser: Parser) -> None:
    parser.add_argument("--role", metavar="ROLE", help="only tasks of this role")
    parser.add_argument("--status", choices=STATUSES, help="only tasks with this status")


def _of_claim(parser: Parser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="TASK-003 (default: the oldest pending task of the role)")
    add("--role", metavar="ROLE", help="the role (default: that of the calling session)")
    add("--session", metavar="NAME", help="who claims it (default: you or the calling session)")


def _of_done(parser: Parser) -> None:
    parser.add_argument("task", metavar="TASK", help="TASK-003")
    parser.add_argument("--result", metavar="TEXT", help="the result, in one line")


def run(call: Invocation) -> int:
    """Run the subcommand."""
    name = call.options.subcommand
    document = _SUBCOMMANDS[name](call)
    return call.say(document, *([] if call.as_json else _show(name, document, call.paint())))


def _add(call: Invocation) -> Document:
    from mam.surfaces.cli.text_input import read_argument

    options = call.options
    return call.fleet.tasks.add(read_argument(options.text), role=options.role, team=options.team)


def _list(call: Invocation) -> Document:
    return call.fleet.tasks.list(role=call.options.role, status=call.options.status)


def _claim(call: Invocation) -> Document:
    options = call.options
    return call.fleet.tasks.claim(options.task, role=options.role, session=options.session)


def _done(call: Invocation) -> Document:
    return call.fleet.tasks.finish(call.options.task, result=call.options.result)


_SUBCOMMANDS: dict[str, Callable[[Invocation], Document]] = {
    "add": _add,
    "list": _list,
    "claim": _claim,
    "done": _done,
}


def _show(subcommand: str, document: Document, paint: Paint) -> list[str]:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    if subcommand == "list":
        return _table(document["tasks"], paint)
    task = document["task"]
    changed = document.get("changed", True)
    state = {"add": "added", "claim": "claimed", "done": "done"}[subcommand] if changed else "no change"
    head = f"{state}: {clean(task['id'])} ({clean(task['role'])})"
    return [head, "", *for_screen(task["text"]).splitlines()] if subcommand == "claim" else [head]


def _table(tasks: list[Document], paint: Paint) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not tasks:
        return ['no tasks; mam task add "…" --role dev adds one']
    columns = (
        Column("TASK"),
        Column("STATUS", worth=4),
        Column("ROLE", least=6, rank=2, worth=2),
        Column("CLAIMED", may_go=True, worth=3),
        Column("TEXT", least=20, rank=5, from_end=True),
        Column("RESULT", least=10, rank=4, may_go=True, from_end=True, worth=1),
    )
    rows = [
        [
            (clean(task["id"]), "bold"),
            (clean(task["status"]), _STYLES.get(task["status"])),
            (clean(task["role"]), None),
            (clean(task["claimed_by"]), None),
            (clean(task["text"]), None),
            (clean(task["result"]), None),
        ]
        for task in tasks
    ]
    return render(columns, rows, paint)
