"""mam log: print who did what to which session, and why."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = "Print who did what to which session, when and why; oldest first. It changes nothing."
EXAMPLES = """
  mam log
  mam log demo-app-creator-claude --limit 10
  mam log --since 2h --json"""


def add_options(parser: Parser) -> None:
    """Add the options: the session and the number of entries."""
    from mam.surfaces.cli.parser import add_name, count, span

    add_name(parser, "only entries of this session")
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="the newest N (default 50)")
    parser.add_argument("--since", metavar="TIME", type=span, help="only entries of the last 30m, 2h, 7d")


def run(call: Invocation) -> int:
    """Print the entries."""
    from mam.surfaces.cli import targets

    entries = call.fleet.sessions.log(
        targets.optional_session(call), limit=call.options.limit, since=call.options.since
    )
    return call.say({"entries": entries}, *([] if call.as_json else show(entries, call.paint())))


def show(entries: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return the entries as a table."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not entries:
        return ["the log is empty"]
    columns = (
        Column("AT"),
        Column("BY", worth=2),
        Column("VERB"),
        Column("SESSION", worth=3),
        Column("WHY", least=10, from_end=True, worth=1),
    )
    rows = [
        [
            (clean(entry["at"]), "dim"),
            (clean(entry["by"]), None),
            (clean(entry["verb"]), None),
            (clean(entry["session"]), "bold"),
            (_why(entry), None),
        ]
        for entry in entries
    ]
    return render(columns, rows, paint)


def _why(entry: dict[str, Any]) -> str:
    """Return the reason and the details of an entry."""
    from mam.surfaces.cli.render_sessions import clean

    detail = entry.get("detail") or {}
    parts = [clean(entry["reason"])] if entry.get("reason") else []
    parts += [
        f"{clean(key)}={clean(value, 60)}" for key, value in detail.items() if value not in (None, [], False)
    ]
    return clean(" ".join(parts))
