"""mam task: lines of work that roles claim."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

DESCRIPTION = """\
Add tasks for roles, list them, claim them and end them.

A task waits for its role, oldest first. Whoever claims it has it alone: of ten who try at once
one gets it, and the others exit with 1. An agent ends its task with mam report, which also tells
whoever started it; task done ends one without a report."""
EXAMPLES = """
  mam task add "fix the login test" --role dev
  mam task list --role dev
  mam task claim --role dev                     the oldest that waits
  mam task claim TASK-003 --session dev-2       this one, for that session
  mam task done TASK-003 --result "fixed in 4f2a" """
STATUSES = ("pending", "in-progress", "done")
_STYLES = {"pending": "blue", "in-progress": "cyan", "done": "green"}


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    add_words(
        parser,
        {
            "add": ("add a task for a role", _of_add),
            "list": ("list the tasks, oldest first", _of_list),
            "claim": ("take a task, or the oldest of a role", _of_claim),
            "done": ("say that a task is done", _of_done),
        },
        EXAMPLES,
    )


def _of_add(parser: Parser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", help="what is to be done; - reads it from stdin")
    add("--role", metavar="ROLE", required=True, help="who is to do it")
    add("--team", metavar="TEAM", help="only the role of this team; without it, of any")


def _of_list(parser: Parser) -> None:
    parser.add_argument("--role", metavar="ROLE", help="only those of this role")
    parser.add_argument("--status", choices=STATUSES, help="only those")


def _of_claim(parser: Parser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="TASK-003; without it, the oldest that waits for the role")
    add("--role", metavar="ROLE", help="for which role; without it, the calling session's")
    add("--session", metavar="NAME", help="who takes it; without it, you or the calling session")


def _of_done(parser: Parser) -> None:
    parser.add_argument("task", metavar="TASK", help="TASK-003")
    parser.add_argument("--result", metavar="TEXT", help="what came of it, in one line")


def run(call: Invocation) -> int:
    """Do what the word says."""
    done = _WORDS[call.options.word](call)
    return call.say(done, *([] if call.as_json else _show(call.options.word, done, call.paint())))


def _add(call: Invocation) -> Document:
    given = call.options
    text = sys.stdin.read() if given.text == "-" else given.text
    return call.fleet.tasks.add(text, role=given.role, team=given.team)


def _list(call: Invocation) -> Document:
    return call.fleet.tasks.list(role=call.options.role, status=call.options.status)


def _claim(call: Invocation) -> Document:
    given = call.options
    return call.fleet.tasks.claim(given.task, role=given.role, session=given.session)


def _done(call: Invocation) -> Document:
    return call.fleet.tasks.finish(call.options.task, result=call.options.result)


_WORDS: dict[str, Callable[[Invocation], Document]] = {
    "add": _add,
    "list": _list,
    "claim": _claim,
    "done": _done,
}


def _show(word: str, done: Document, paint: Paint) -> list[str]:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    if word == "list":
        return _table(done["tasks"], paint)
    one = done["task"]
    changed = done.get("changed", True)
    said = {"add": "added", "claim": "claimed", "done": "done"}[word] if changed else "already so"
    head = f"{said}: {clean(one['id'])} ({clean(one['role'])})"
    return [head, "", *for_screen(one["text"]).splitlines()] if word == "claim" else [head]


def _table(tasks: list[Document], paint: Paint) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not tasks:
        return ['no tasks; mam task add "…" --role dev adds one']
    columns = (
        Column("TASK"),
        Column("STATUS"),
        Column("ROLE", least=6, rank=2),
        Column("CLAIMED", least=6, rank=1, may_go=True),
        Column("TEXT", least=20, rank=5, from_end=True),
    )
    rows = [
        [
            (clean(one["id"]), "bold"),
            (clean(one["status"]), _STYLES.get(one["status"])),
            (clean(one["role"]), None),
            (clean(one["claimed_by"]), None),
            (clean(one["result"] if one["status"] == "done" else one["text"]), None),
        ]
        for one in tasks
    ]
    return render(columns, rows, paint)
