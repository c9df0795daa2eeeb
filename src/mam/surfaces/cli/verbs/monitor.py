"""mam monitor: update the registry to match what exists."""

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
Update the registry to match what exists, and report each difference (drift) once.

Without --once it keeps running and notices deaths, hooks and edits when they happen. If a resident
already watches this root, it shows what the resident finds, and takes over when the resident ends.

A: a running session is gone; its row becomes terminated. B: a tmux session of the naming pattern
in this root has no row; it gets one. C: a conversation appeared on disk; the row gets its id.
D: a conversation vanished from disk, also of an ended session or of agent_identities; mam only
reports it. The monitor never starts or ends a tmux session, and draws no conclusion from a tmux
server that does not answer.

An unexpected error does not end the monitor, which tries again after a pause. `mam doctor` names
the log that has the error.

With --subscribe it also listens to the configured broker (or --broker URL), records the events
that a job's token signed, and prints each event of a job, also one of this machine. While the
broker cannot be reached, it makes a pass every RECONCILE_POLL_INTERVAL seconds (15), and
reconnects by itself.

With --card each drift is a comment on that card of the board, with a heartbeat every 5 minutes.
A comment that asks to stop (`stop`, `please stop monitoring`) blocks the card and ends the monitor.
--dispatch creates such a card on Hermes' board; Hermes' dispatcher then starts the monitor.

Exit code 0 success, also after a timeout; 1 no registry or no such card; 2 failed; 64 wrong usage;
65 the registry cannot be read."""
EXAMPLES = """
  mam monitor                          keep running, and print what happens; Ctrl-C ends it
  mam monitor --timeout 1h --json      for an hour, one JSON object for each pass with drift
  mam monitor --once --dry-run         show what a pass would do
  mam monitor --emit-diff              one pass as JSON, with what a resident found since the last
  mam monitor --subscribe --idle-timeout 0   listen to the broker too, and never time out
  mam monitor --install                start at every login, as a service of your account
  mam monitor --card new               with a new card, where you can comment `stop`
  mam monitor --dispatch               as a goal card of Hermes, started by its dispatcher"""

_IDLE_SECONDS = 600.0


def add_options(parser: Parser) -> None:
    """Add the options: how long it runs, and how it reports."""
    from argparse import SUPPRESS

    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add("--once", action="store_true", help="make one pass and exit")
    add("--emit-diff", action="store_true", help="print the report of one pass as JSON")
    add("--dry-run", action="store_true", help="make one pass that writes nothing")
    add("--timeout", metavar="TIME", type=span, default=0.0, help="exit after this time: 90, 2h (0: never)")
    add(
        "--idle-timeout",
        metavar="TIME",
        type=span,
        help="exit after this time without an event (10m; with a card, or with 0: never)",
    )
    add("--subscribe", action="store_true", help="record signed events of jobs from the broker")
    add("--broker", metavar="URL", help="with --subscribe: mqtt://user@host or mqtts://user@host")
    add("--card", metavar="ID", help="comment on this card of the board; `new` creates one")
    add("--board", choices=("ours", "hermes"), help="the card's board (default: from the environment)")
    add("--dispatch", action="store_true", help="create a goal card on Hermes' board, for its dispatcher")
    add("--worker", action="store_true", help="run as the worker of Hermes' dispatcher")
    add("--install", action="store_true", help="start the monitor at every login (systemd, launchd)")
    add("--uninstall", action="store_true", help="undo --install for this root")
    # mam itself uses these two: it starts the resident with them, which ends when no session runs.
    add("--resident", action="store_true", help=SUPPRESS)
    add("--awaits-client", action="store_true", help=SUPPRESS)


def run(call: Invocation) -> int:
    """Make one pass, or keep running."""
    options = call.options
    if options.subscribe or options.broker is not None:
        return _subscribe(call)
    if options.install or options.uninstall:
        return _service(call)
    if options.dispatch or options.worker:
        return _run_for_hermes(call)
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
        raise Usage("a dry run does not comment on a card", hint="leave out --card or --dry-run")
    return call.fleet.monitor.once_with_card(options.card, emit_diff=options.emit_diff, board=options.board)


def _run_for_hermes(call: Invocation) -> int:
    options = call.options
    excluded = (
        options.once,
        options.emit_diff,
        options.dry_run,
        options.timeout,
        options.idle_timeout,
        options.card,
    )
    if any(excluded) or options.board == "ours" or (options.dispatch and options.worker):
        raise Usage(
            "Hermes sets the card and the time of a dispatched monitor", hint="leave out the other options"
        )
    return _dispatch(call) if options.dispatch else _work(call)


def _dispatch(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    call.show_progress("asking Hermes")
    document = call.fleet.monitor.dispatch_to_hermes()
    card = document["card"]
    state = f"card {clean(card['id'])} is {clean(card['status'])} on {clean(document['board']['path'], 500)}"
    later = "Hermes' dispatcher takes it with its next check (hermes gateway start runs one)"
    lines = [state, *([] if document["spawned"] else [later])]
    if skill := document["missing_skill"]:
        command = f"mam skills install --dir {clean(skill['directory'], 500)}"
        lines.append(f"Hermes' own worker would need the skill {skill['name']}: {command}")
    return call.say(document, *lines)


def _work(call: Invocation) -> int:
    with _mcp_task(call):
        reason = call.fleet.monitor.run_as_worker(lambda report: _print_report(call, report))
    call.show_note(f"the monitor has ended: {reason}")
    return 0


def _stay(call: Invocation) -> int:
    if call.options.resident:
        return _reside(call)
    idle = call.options.idle_timeout
    patience = 0.0 if call.options.card else _IDLE_SECONDS
    limits = {"timeout": call.options.timeout, "idle_timeout": patience if idle is None else idle}
    call.show_progress(f"watching {call.fleet.root}")
    if call.options.card:
        card_options = {"board": call.options.board, **limits}
        with _mcp_task(call):
            reason = call.fleet.monitor.run_with_card(
                call.options.card, lambda report: _print_report(call, report), **card_options
            )
        call.show_note(f"the monitor has ended: {reason}")
        return 0
    with _mcp_task(call):
        reason = call.fleet.monitor.attend(lambda report: _print_report(call, report), **limits)
    call.show_note(f"the monitor has ended: {reason}")
    return 0


def _subscribe(call: Invocation) -> int:
    options = call.options
    if not options.subscribe:
        raise Usage("--broker needs --subscribe", hint="write --subscribe --broker URL")
    single = (options.once, options.emit_diff, options.dry_run, options.install, options.uninstall)
    if any(single) or options.card or options.dispatch or options.worker or options.resident:
        raise Usage("--subscribe keeps running and cannot be combined", hint="leave out the other options")
    idle = _IDLE_SECONDS if options.idle_timeout is None else options.idle_timeout
    call.show_progress(f"watching {call.fleet.root}")
    with _mcp_task(call):
        reason = call.fleet.monitor.run_subscribed(
            lambda report: _print_report(call, report),
            broker=options.broker,
            timeout=options.timeout,
            idle_timeout=idle,
        )
    call.show_note(f"the monitor has ended: {reason}")
    return 0


def _service(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    if call.options.install and call.options.uninstall:
        raise Usage("--install and --uninstall exclude each other", hint="use one of them")
    document = call.fleet.monitor.install() if call.options.install else call.fleet.monitor.uninstall()
    verb = "installed" if call.options.install else "removed" if document["changed"] else "not installed:"
    return call.say(
        document, f"{verb} {clean(document['unit'])}", *(clean(note, 500) for note in document["notes"])
    )


def _reside(call: Invocation) -> int:
    """Run as the resident until no session runs; another resident that was faster will do."""
    from mam.core.errors import NoRegistry, ResidentRuns

    if not call.fleet.exists:
        raise NoRegistry.in_root(call.fleet.root)
    try:
        with _mcp_task(call, awaits=call.options.awaits_client):
            call.fleet.monitor.run(lambda _report: None, while_any=True)
    except ResidentRuns:
        return 0
    return 0


def _mcp_task(call: Invocation, *, awaits: bool = False) -> McpTask:
    """Add the MCP server to the resident tasks."""
    from mam.surfaces.mcp.resident_task import McpTask

    task = McpTask(call.fleet, awaits=awaits)
    call.fleet.add_resident_task(task)
    return task


def _print_report(call: Invocation, report: dict[str, Any]) -> None:
    from mam.surfaces.cli.output import write_json, write_lines
    from mam.surfaces.cli.render_sessions import clean

    call.clear_progress()
    if call.as_json:
        write_json(report, one_line=True)
        return
    paint = call.paint()
    lines = [_line(drift, paint) for drift in report.get("drifts", [])]
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
    """Return the lines about the state of a broker, or about an event that came over it."""
    from mam.surfaces.cli.render_sessions import clean

    if broker := report.get("broker"):
        reason = f": {clean(broker['error']['message'], 500)}" if broker["error"] else ""
        if broker["error"] and not broker.get("was_connected"):
            meanwhile = "the monitor looks by itself meanwhile"
            return [f"{clean(broker['address'], 200)} cannot be reached{reason}; {meanwhile}"]
        return [f"{clean(broker['address'], 200)} is {clean(broker['state'])}{reason}"]
    if event := report.get("event"):
        from mam.surfaces.cli.verbs.job.render_jobs import line

        return [line(event, paint)]
    if refusal := report.get("refused"):
        text = f"mam refused an event of job {clean(refusal['job_id'])}: {clean(refusal['reason'], 500)}"
        return [paint(text, "red")]
    return []


def _line(drift: dict[str, Any], paint: Paint) -> str:
    from mam.surfaces.cli.render_sessions import clean

    text = f"{paint(drift['class'], 'yellow')}  {clean(drift['message'], 500)}"
    notes = [] if drift["written"] else ["reported only" if drift["class"] == "D" else "not written"]
    if not drift.get("new", True):
        notes.append("known already")
    return text + paint(f"  ({', '.join(notes)})", "dim") if notes else text


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return a line for each drift, and a summary."""
    from mam.surfaces.cli.render_sessions import clean

    lines = [_line(drift, paint) for drift in document["drifts"]]
    for server, facts in document["servers"].items():
        if not facts["confirmed"]:
            cause = clean(facts["error"] or "it does not answer")
            lines.append(paint(f"mam could not ask tmux server {clean(server)}: {cause}", "red"))
    alive = len(document["tmux_sessions_alive"])
    count = len(document["drifts"])
    drifts = "1 difference" if count == 1 else f"{count or 'no'} difference{'s' if count else ''}"
    sessions = "1 tmux session" if alive == 1 else f"{alive} tmux sessions"
    summary = f"{drifts}, {sessions}, {document['duration_ms']:g} ms"
    if card := document.get("card"):
        state, ended = f"card {clean(card['id'])} is {clean(card['status'])}", document["ended"]
        lines.append(f"{state}: {clean(ended, 500)}" if ended and clean(ended, 500) != state else state)
    return [*lines, paint(summary, "dim")]
