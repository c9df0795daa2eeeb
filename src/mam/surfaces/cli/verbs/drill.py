"""mam drill: check that every conversation would come back after a reboot."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint
    from mam.surfaces.cli.table import Cell

DESCRIPTION = """\
Check for each session that its conversation would come back after a reboot, and say what is in
the way. Without a name: all sessions that run or can be resumed. Nothing changes. With --run, a
fork of each conversation is resumed and removed again; it gets no message. Exit code 1 if a session
would not come back, 3 if --run could not prove it."""
EXAMPLES = """
  mam drill
  mam drill api --json
  mam drill --run --agent claude"""
_OUTCOMES = {
    "ok": ("ok", "green"),
    "warning": ("warning", "yellow"),
    "unproven": ("unproven", "yellow"),
    "would_not": ("lost", "red"),
}
_FAILED, _UNPROVEN = 1, 3


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, and whether to run forks."""
    from mam.surfaces.cli.parser import add_names, span

    add_names(parser)
    add = parser.add_argument
    add("--agent", metavar="KIND", help="only sessions of this kind")
    add("--run", action="store_true", help="resume a fork of each conversation, and prove its history")
    add("--timeout", metavar="TIME", type=span, help="with --run: how long to wait for each fork: 90, 2m")


def run(call: Invocation) -> int:
    """Print the result of each session."""
    from mam.core.errors import Usage
    from mam.core.names import parse_kind
    from mam.surfaces.cli import targets

    options = call.options
    if options.timeout is not None and not options.run:
        raise Usage("--timeout needs --run", hint="mam drill --run --timeout 2m")
    document = call.fleet.sessions.drill(
        targets.sessions(call),
        agent=parse_kind(options.agent) if options.agent is not None else None,
        run=options.run,
        timeout=options.timeout,
    )
    call.say(document, *([] if call.as_json else show(document, call.paint())))
    if document["failed"] or any(not check["ok"] for check in document["root"]):
        return _FAILED
    return _UNPROVEN if document["unproven"] else 0


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return the table, the problems of the root and of each session, and a line with the numbers."""
    lines = list(_problems_of_root(document["root"], paint))
    if document["results"]:
        lines += _table(document["results"], paint)
    for result in document["results"]:
        lines += _remarks(result, paint)
    return [*lines, _counts(document)]


def _problems_of_root(checks: list[dict[str, Any]], paint: Paint) -> Iterator[str]:
    from mam.surfaces.cli.render_sessions import clean

    for check in checks:
        if not check["ok"]:
            yield f"{paint('problem', 'red')}  {clean(check['check'])}: {clean(check['message'], 500)}"
            if check["hint"]:
                yield f"  {paint(clean(check['hint'], 500), 'dim')}"


def _table(results: list[dict[str, Any]], paint: Paint) -> list[str]:
    from mam.surfaces.cli.table import Column, render

    columns = [
        Column("NAME"),
        Column("AGENT", least=6, rank=2, worth=2),
        Column("STATUS", worth=3),
        Column("RESULT"),
        Column("CONVERSATION", least=9, rank=1, from_end=True, worth=1),
    ]
    if any(result.get("run") for result in results):
        columns.append(Column("FORK"))
    return render(columns, [_cells(result, len(columns)) for result in results], paint)


def _cells(result: dict[str, Any], count: int) -> list[Cell]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import EMPTY

    tier = f" t{result['tier']}" if result["tier"] else ""
    conversation = f"{clean(result['conversation'])[:8]}{tier}" if result["conversation"] else EMPTY
    fork = (result.get("run") or {}).get("outcome", EMPTY)
    cells: list[Cell] = [
        (clean(result["session"]), None),
        (clean(result["agent"]), None),
        (clean(result["status"]), None),
        _OUTCOMES[result["outcome"]],
        (conversation, None),
        (fork, None),
    ]
    return cells[:count]


def _remarks(result: dict[str, Any], paint: Paint) -> Iterator[str]:
    """Yield why a session would not come back, each reason with the way on, and what its fork showed."""
    from mam.surfaces.cli.render_sessions import clean

    for reason in result["reasons"]:
        yield f"{clean(result['session'])}: {clean(reason['message'], 4096)}"
        if reason["hint"]:
            yield f"  {paint(clean(reason['hint'], 4096), 'dim')}"
    fork = result.get("run")
    if fork and fork["outcome"] in ("proven", "n/a"):
        yield f"{clean(result['session'])}: {clean(fork['message'], 500)}"


def _counts(document: dict[str, Any]) -> str:
    if not document["results"]:
        return "no session runs or can be resumed"
    if any(not check["ok"] for check in document["root"]):
        return "no session can be resumed before that is mended"
    parts = [f"{document['ok']} would come back"]
    if document["unproven"]:
        parts.append(f"{document['unproven']} not proven")
    if document["failed"]:
        parts.append(f"{document['failed']} would not")
    runs = [result["run"]["outcome"] for result in document["results"] if result.get("run")]
    proven, not_tried = runs.count("proven"), runs.count("n/a")
    forks = [f"{proven} proven"] if runs else []
    forks += [f"{not_tried} not tried"] if not_tried else []
    checked = f"{len(document['results'])} checked: {', '.join(parts)}"
    return "; ".join([checked, *([", ".join(forks)] if forks else [])])
