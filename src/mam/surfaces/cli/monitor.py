"""mam monitor: the registry follows what is really there."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.call import Call
    from mam.surfaces.cli.paint import Paint
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Bring the registry in line with what is there, and report each difference once.

Without --once it stays and sees deaths, hooks and edits when they happen; where somebody watches
this root already it shows what that one finds.

A: a running session is gone, and its row says so from now on. B: a session of the naming pattern
in this root had no row, and gets one. C: a conversation appeared on disk, and its id is filled in.
D: a conversation vanished from disk; that is reported only. No tmux session is ever made or ended,
and nothing follows from a server that does not answer.

Exit code 0 fine, also when its time is over; 1 no registry, 2 failed."""
EXAMPLES = """
  mam monitor                          stay, and say what happens; Ctrl-C ends it
  mam monitor --timeout 1h --json      for an hour, one JSON object for each pass with news
  mam monitor --once --dry-run         what a pass would do
  mam monitor --emit-diff              one pass as JSON, with what a resident found in between
  mam monitor --install                at every login, as a service of yours"""


def add_options(parser: Parser) -> None:
    """How long, and in which form."""
    from argparse import SUPPRESS

    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add("--once", action="store_true", help="make one pass and end")
    add("--emit-diff", action="store_true", help="print the report as JSON; alone it means one pass")
    add("--dry-run", action="store_true", help="one pass that writes nothing")
    add("--timeout", metavar="TIME", type=span, default=0.0, help="end after this time: 90, 2h (0: never)")
    add(
        "--idle-timeout",
        metavar="TIME",
        type=span,
        default=600.0,
        help="end when nothing happened for so long (10m; 0: never)",
    )
    add("--install", action="store_true", help="have the machine start it at login (systemd, launchd)")
    add("--uninstall", action="store_true", help="undo --install for this root")
    # How a session's start starts it: it ends when nothing runs any more.
    add("--resident", action="store_true", help=SUPPRESS)


def run(call: Call) -> int:
    """Make one pass, or stay."""
    options = call.options
    if options.install or options.uninstall:
        return _service(call)
    if not (options.once or options.emit_diff or options.dry_run):
        return _stay(call)
    document = call.fleet.reconcile(dry_run=options.dry_run, emit_diff=options.emit_diff)
    if options.emit_diff and not call.as_json:
        from mam.surfaces.cli.answer import write_json

        write_json(document)
        return 0
    return call.say(document, *([] if call.as_json else show(document, call.paint())))


def _stay(call: Call) -> int:
    from mam.core.errors import NoRegistry, ResidentRuns

    if not call.fleet.world.place.exists():
        raise NoRegistry(f"there is no registry in {call.fleet.root}", hint="mam init makes one")
    if call.options.resident:
        return _reside(call)
    limits = {"timeout": call.options.timeout, "idle_timeout": call.options.idle_timeout}
    call.tell(f"watching {call.fleet.root}")
    try:
        why = call.fleet.monitor(lambda report: _tell(call, report), **limits)
    except ResidentRuns:
        call.tell("following the resident of this root")
        for drift in call.fleet.follow(**limits):
            _tell(call, {"drifts": [drift]})
        return 0
    call.tell(f"the monitor has ended: {why}")
    return 0


def _service(call: Call) -> int:
    from mam.surfaces.cli.sessions import clean

    if call.options.install and call.options.uninstall:
        raise Usage("--install and --uninstall are two things", hint="take one of them")
    done = call.fleet.install_monitor() if call.options.install else call.fleet.uninstall_monitor()
    verb = "installed" if call.options.install else "removed" if done["changed"] else "there was no"
    return call.say(done, f"{verb} {clean(done['unit'])}", *(clean(note, 500) for note in done["notes"]))


def _reside(call: Call) -> int:
    """Watch while anything runs; somebody who was faster is as good."""
    from mam.core.errors import ResidentRuns

    try:
        call.fleet.monitor(lambda _report: None, while_any=True)
    except ResidentRuns:
        return 0
    return 0


def _tell(call: Call, report: dict[str, Any]) -> None:
    from mam.surfaces.cli.answer import write_json, write_lines
    from mam.surfaces.cli.sessions import clean

    call.quiet()
    if call.as_json:
        write_json(report, one_line=True)
        return
    paint = call.paint()
    lines = [_line(one, paint) for one in report.get("drifts", [])]
    if notice := report.get("attention"):
        bell = "\a" if paint.width is not None else ""
        lines.append(
            f"{paint('!', 'red bold')}  {clean(notice['session'])}: {clean(notice['text'], 500)}{bell}"
        )
    if report.get("error"):
        lines.append(paint(clean(report["error"]["message"], 500), "red"))
    write_lines(lines, flush=True)


def _line(drift: dict[str, Any], paint: Paint) -> str:
    from mam.surfaces.cli.sessions import clean

    said = f"{paint(drift['class'], 'yellow')}  {clean(drift['message'], 500)}"
    return said if drift["written"] else said + paint("  (not written)", "dim")


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return a line for each difference, and one about the whole."""
    from mam.surfaces.cli.sessions import clean

    lines = [_line(one, paint) for one in document["drifts"]]
    for server, facts in document["servers"].items():
        if not facts["confirmed"]:
            why = clean(facts["error"] or "it does not answer")
            lines.append(paint(f"server {clean(server)} was not asked: {why}", "red"))
    alive = len(document["tmux_sessions_alive"])
    found = f"{len(lines)} differences" if len(lines) != 1 else "1 difference"
    summary = f"{found if lines else 'no difference'}, {alive} tmux sessions, {document['duration_ms']:g} ms"
    return [*lines, paint(summary, "dim")]
