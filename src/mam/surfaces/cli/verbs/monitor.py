"""mam monitor: the registry follows what is really there."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint
    from mam.surfaces.mcp.resident_task import McpTask

DESCRIPTION = """\
Bring the registry in line with what is there, and report each difference once.

Without --once it stays and sees deaths, hooks and edits when they happen; where somebody watches
this root already it shows what that one finds, and takes its place when it ends.

A: a running session is gone, and its row says so from now on. B: a session of the naming pattern
in this root had no row, and gets one. C: a conversation appeared on disk, and its id is filled in.
D: a conversation vanished from disk; that is reported only. No tmux session is ever made or ended,
and nothing follows from a server that does not answer.

With --subscribe it also listens to the configured broker (or --broker URL): events that a job's
token signed are in its record at once. While the broker cannot be heard it makes a pass every
RECONCILE_POLL_INTERVAL seconds (15), and goes back to listening by itself.

With --card each difference is a comment on that card of the board, with a heartbeat every 5
minutes; a comment with the line `stop` or `stop monitoring` blocks the card and ends the monitor.
--dispatch makes such a card on Hermes' board and has its dispatcher start the monitor.

Exit code 0 fine, also when its time is over; 1 no registry, 2 failed."""
EXAMPLES = """
  mam monitor                          stay, and say what happens; Ctrl-C ends it
  mam monitor --timeout 1h --json      for an hour, one JSON object for each pass with news
  mam monitor --once --dry-run         what a pass would do
  mam monitor --emit-diff              one pass as JSON, with what a resident found in between
  mam monitor --subscribe --idle-timeout 0   listen to the broker too, and never give up
  mam monitor --install                at every login, as a service of yours
  mam monitor --card new               with a card of its own, where you can comment `stop`
  mam monitor --dispatch               as a goal card of Hermes, run by its dispatcher"""

_IDLE_SECONDS = 600.0


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
        help="end when nothing happened for so long (10m; with a card, and with 0: never)",
    )
    add("--subscribe", action="store_true", help="take in signed events of jobs from the broker")
    add("--broker", metavar="URL", help="with --subscribe: mqtt://user@host or mqtts://user@host")
    add("--card", metavar="ID", help="tell this card of the board; `new` makes one")
    add("--board", choices=("ours", "hermes"), help="the card's board; else the environment decides")
    add("--dispatch", action="store_true", help="make a goal card on Hermes' board and have it dispatched")
    add("--worker", action="store_true", help="be the worker that Hermes' dispatcher started")
    add("--install", action="store_true", help="have the machine start it at login (systemd, launchd)")
    add("--uninstall", action="store_true", help="undo --install for this root")
    # How a session's start starts it: it ends when nothing runs any more.
    add("--resident", action="store_true", help=SUPPRESS)
    add("--awaits-client", action="store_true", help=SUPPRESS)


def run(call: Invocation) -> int:
    """Make one pass, or stay."""
    options = call.options
    if options.subscribe or options.broker is not None:
        return _subscribe(call)
    if options.install or options.uninstall:
        return _service(call)
    if options.dispatch or options.worker:
        return _hand_over(call)
    if not (options.once or options.emit_diff or options.dry_run):
        return _stay(call)
    document = _one_pass(call)
    if options.emit_diff and not call.as_json:
        from mam.surfaces.cli.output import write_json

        write_json(document)
        return 0
    return call.say(document, *([] if call.as_json else show(document, call.paint())))


def _one_pass(call: Invocation) -> dict[str, Any]:
    options = call.options
    if options.card is None:
        return call.fleet.monitor.once(dry_run=options.dry_run, emit_diff=options.emit_diff)
    if options.dry_run:
        raise Usage("a dry run tells no card", hint="leave --card or --dry-run away")
    return call.fleet.monitor.once_with_card(options.card, emit_diff=options.emit_diff, board=options.board)


def _hand_over(call: Invocation) -> int:
    given = call.options
    others = (given.once, given.emit_diff, given.dry_run, given.timeout, given.idle_timeout, given.card)
    if any(others) or given.board == "ours" or (given.dispatch and given.worker):
        raise Usage(
            "card and time of a dispatched monitor come from Hermes", hint="leave the other options away"
        )
    return _dispatch(call) if given.dispatch else _work(call)


def _dispatch(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    call.tell("asking hermes")
    done = call.fleet.monitor.dispatch_to_hermes()
    card = done["card"]
    said = f"card {clean(card['id'])} is {clean(card['status'])} on {clean(done['board']['path'], 500)}"
    later = "Hermes' dispatcher takes it with its next look (hermes gateway start runs one)"
    return call.say(done, said, *([] if done["spawned"] else [later]))


def _work(call: Invocation) -> int:
    with _host(call):
        why = call.fleet.monitor.run_as_worker(lambda report: _tell(call, report))
    call.tell(f"the monitor has ended: {why}")
    return 0


def _stay(call: Invocation) -> int:
    from mam.core.errors import NoRegistry

    if not call.fleet.exists:
        raise NoRegistry.in_root(call.fleet.root)
    if call.options.resident:
        return _reside(call)
    idle = call.options.idle_timeout
    patience = 0.0 if call.options.card else _IDLE_SECONDS
    limits = {"timeout": call.options.timeout, "idle_timeout": patience if idle is None else idle}
    call.tell(f"watching {call.fleet.root}")
    if call.options.card:
        where = {"board": call.options.board, **limits}
        with _host(call):
            why = call.fleet.monitor.run_with_card(
                call.options.card, lambda report: _tell(call, report), **where
            )
        call.tell(f"the monitor has ended: {why}")
        return 0
    with _host(call):
        why = call.fleet.monitor.attend(lambda report: _tell(call, report), **limits)
    call.tell(f"the monitor has ended: {why}")
    return 0


def _subscribe(call: Invocation) -> int:
    given = call.options
    if not given.subscribe:
        raise Usage("a broker is for --subscribe", hint="write --subscribe --broker URL")
    once = (given.once, given.emit_diff, given.dry_run, given.install, given.uninstall)
    if any(once) or given.card or given.dispatch or given.worker or given.resident:
        raise Usage("--subscribe stays and listens", hint="leave the other ways of monitoring away")
    idle = _IDLE_SECONDS if given.idle_timeout is None else given.idle_timeout
    call.tell(f"watching {call.fleet.root}")
    with _host(call):
        why = call.fleet.monitor.run_subscribed(
            lambda report: _tell(call, report), broker=given.broker, timeout=given.timeout, idle_timeout=idle
        )
    call.tell(f"the monitor has ended: {why}")
    return 0


def _service(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    if call.options.install and call.options.uninstall:
        raise Usage("--install and --uninstall are two things", hint="take one of them")
    done = call.fleet.monitor.install() if call.options.install else call.fleet.monitor.uninstall()
    verb = "installed" if call.options.install else "removed" if done["changed"] else "there was no"
    return call.say(done, f"{verb} {clean(done['unit'])}", *(clean(note, 500) for note in done["notes"]))


def _reside(call: Invocation) -> int:
    """Watch while anything runs; somebody who was faster is as good."""
    from mam.core.errors import ResidentRuns

    try:
        with _host(call, awaits=call.options.awaits_client):
            call.fleet.monitor.run(lambda _report: None, while_any=True)
    except ResidentRuns:
        return 0
    return 0


def _host(call: Invocation, *, awaits: bool = False) -> McpTask:
    """Have whoever watches the root serve agents as well."""
    from mam.surfaces.mcp.resident_task import McpTask

    host = McpTask(call.fleet, awaits=awaits)
    call.fleet.add_resident_task(host)
    return host


def _tell(call: Invocation, report: dict[str, Any]) -> None:
    from mam.surfaces.cli.output import write_json, write_lines
    from mam.surfaces.cli.render_sessions import clean

    call.quiet()
    if call.as_json:
        write_json(report, one_line=True)
        return
    paint = call.paint()
    lines = [_line(one, paint) for one in report.get("drifts", [])]
    if card := report.get("card"):
        lines.append(f"card {clean(card['id'])} on {clean(report['board']['path'], 500)}")
    if notice := report.get("attention"):
        bell = "\a" if paint.width is not None else ""
        lines.append(
            f"{paint('!', 'red bold')}  {clean(notice['session'])}: {clean(notice['text'], 500)}{bell}"
        )
    if report.get("error"):
        lines.append(paint(clean(report["error"]["message"], 500), "red"))
    lines += _of_broker(report, paint)
    write_lines(lines, flush=True)


def _of_broker(report: dict[str, Any], paint: Paint) -> list[str]:
    """Return the lines for what a broker brought, or for how it is with the broker itself."""
    from mam.surfaces.cli.render_sessions import clean

    if broker := report.get("broker"):
        why = f": {clean(broker['error']['message'], 500)}" if broker["error"] else ""
        return [f"{clean(broker['address'], 200)} is {clean(broker['state'])}{why}"]
    if event := report.get("event"):
        from mam.surfaces.cli.render_jobs import line

        return [line(event, paint)]
    if refused := report.get("refused"):
        said = f"an event of job {clean(refused['job_id'])} was refused: {clean(refused['reason'], 500)}"
        return [paint(said, "red")]
    return []


def _line(drift: dict[str, Any], paint: Paint) -> str:
    from mam.surfaces.cli.render_sessions import clean

    said = f"{paint(drift['class'], 'yellow')}  {clean(drift['message'], 500)}"
    return said if drift["written"] else said + paint("  (not written)", "dim")


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return a line for each difference, and one about the whole."""
    from mam.surfaces.cli.render_sessions import clean

    lines = [_line(one, paint) for one in document["drifts"]]
    for server, facts in document["servers"].items():
        if not facts["confirmed"]:
            why = clean(facts["error"] or "it does not answer")
            lines.append(paint(f"server {clean(server)} was not asked: {why}", "red"))
    alive = len(document["tmux_sessions_alive"])
    count = len(document["drifts"])
    found = "1 difference" if count == 1 else f"{count or 'no'} difference{'s' if count else ''}"
    sessions = "1 tmux session" if alive == 1 else f"{alive} tmux sessions"
    summary = f"{found}, {sessions}, {document['duration_ms']:g} ms"
    if card := document.get("card"):
        said, ended = f"card {clean(card['id'])} is {clean(card['status'])}", document["ended"]
        lines.append(f"{said}: {clean(ended, 500)}" if ended and clean(ended, 500) != said else said)
    return [*lines, paint(summary, "dim")]
