"""mam monitor: the registry follows what is really there."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.call import Call
    from mam.surfaces.cli.paint import Paint
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Bring the registry in line with what is there, and report each difference once.

A: a running session is gone, and its row says so from now on. B: a session of the naming pattern in
this root had no row, and gets one. C: a conversation appeared on disk, and its id is filled in.
D: a conversation vanished from disk; that is reported only. No tmux session is ever made or ended,
and nothing follows from a server that does not answer.

Exit code 0 fine, 1 no registry, 2 failed."""
EXAMPLES = """
  mam monitor --once                   one pass
  mam monitor --once --dry-run         what a pass would do
  mam monitor --emit-diff              one pass as JSON, with what a resident found in between"""


def add_options(parser: Parser) -> None:
    """How long, and in which form."""
    add = parser.add_argument
    add("--once", action="store_true", help="make one pass and end")
    add("--emit-diff", action="store_true", help="print the report as JSON; alone it means one pass")
    add("--dry-run", action="store_true", help="one pass that writes nothing")


def run(call: Call) -> int:
    """Make one pass and print it."""
    options = call.options
    document = call.fleet.reconcile(dry_run=options.dry_run, emit_diff=options.emit_diff)
    if options.emit_diff and not call.as_json:
        from mam.surfaces.cli.answer import write_json

        write_json(document)
        return 0
    return call.say(document, *([] if call.as_json else show(document, call.paint())))


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return a line for each difference, and one about the whole."""
    from mam.surfaces.cli.sessions import clean

    lines = [
        f"{paint(one['class'], 'yellow')}  {clean(one['message'], 500)}"
        + ("" if one["written"] else paint("  (not written)", "dim"))
        for one in document["drifts"]
    ]
    for server, facts in document["servers"].items():
        if not facts["confirmed"]:
            why = clean(facts["error"] or "it does not answer")
            lines.append(paint(f"server {clean(server)} was not asked: {why}", "red"))
    alive = len(document["tmux_sessions_alive"])
    found = f"{len(lines)} differences" if len(lines) != 1 else "1 difference"
    summary = f"{found if lines else 'no difference'}, {alive} tmux sessions, {document['duration_ms']:g} ms"
    return [*lines, paint(summary, "dim")]
