"""mam report: a task is done."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Say that your task is done. Whoever started you gets the report as a message (a person finds it in
the session file), your boxes are ticked, and your next task is printed, or that you are ready to
be closed. The same report twice goes out once.

Exit code 0 the report arrived or is recorded, 4 it is held and goes out by itself, 3 typed and not
proven, 2 failed."""
EXAMPLES = """
  mam report --result "login test fixed, 3 files"
  mam report TASK-003 --result "cannot be reproduced"
  mam report --session dev --result "done by hand"     a person reports for it"""


def add_options(parser: Parser) -> None:
    """Which task, and what came of it."""
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="TASK-003; without it, the one you are at")
    add("--result", metavar="TEXT", help="what came of it, in one line")
    add("--session", metavar="NAME", help="who reports; without it, the calling session")


def run(call: Invocation) -> int:
    """Report, and print what is next."""
    from mam.core.message import EXIT_CODES
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    options = call.options
    done = call.fleet.teams.report(options.task, result=options.result, session=options.session)
    receipt = done["receipt"]
    to = f" to {clean(receipt['session'])}" if receipt["session"] else " in the session file"
    lines = [f"{clean(receipt['state'])}: {clean(done['report'], 2000)}{to}"]
    if receipt.get("reason"):
        lines[0] += f": {clean(receipt['reason'])}"
    if done["next"]:
        lines += [f"your next task {clean(done['next']['id'])}:", ""]
        lines += for_screen(done["next"]["text"]).splitlines()
    else:
        lines.append("no task waits: ready to close. Stay here; whoever started you closes this pane.")
    call.say(done, *lines)
    return EXIT_CODES.get(receipt["state"], 0)
