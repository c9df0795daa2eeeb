"""mam report: report that a task is done."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Report that your task is done. The session that started you gets the report as a message; a person
finds it on the team page. mam updates your checklist and prints your next task, or that you are
ready to be closed. If you repeat a report, mam sends it only once.

Exit code 0 the report is delivered or recorded, 4 held until it can be typed, 3 typed and not
proven, 2 failed."""
EXAMPLES = """
  mam report --result "login test fixed, 3 files"
  mam report TASK-003 --result "cannot be reproduced"
  mam report --session dev --result "done by hand"     a person reports for the session"""


def add_options(parser: Parser) -> None:
    """Add the options: the task, the result and the session."""
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="TASK-003 (default: your current task)")
    add("--result", metavar="TEXT", help="the result, in one line")
    add("--session", metavar="NAME", help="the session that reports (default: the calling session)")


def run(call: Invocation) -> int:
    """Report, and print the next task."""
    from mam.core.message_rules import EXIT_CODES
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    options = call.options
    document = call.fleet.teams.report(options.task, result=options.result, session=options.session)
    receipt = document["receipt"]
    to = f" to {clean(receipt['session'])}" if receipt["session"] else " on the team page"
    lines = [f"{clean(receipt['state'])}: {clean(document['report'], 2000)}{to}"]
    if receipt.get("reason"):
        lines[0] += f": {clean(receipt['reason'])}"
    if document["next"]:
        lines += [f"your next task {clean(document['next']['id'])}:", ""]
        lines += for_screen(document["next"]["text"]).splitlines()
    else:
        lines.append(
            "no task is pending: you are ready to be closed. Stay here; whoever started you closes this pane."
        )
    call.say(document, *lines)
    return EXIT_CODES.get(receipt["state"], 0)
