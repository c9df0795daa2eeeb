"""mam explain: why a session counts as idle, working or waiting."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = """\
Show every piece of evidence about what a session is doing, how old it is, and the rule that
decided. Evidence that says otherwise is marked with !. Reads only."""
EXAMPLES = """
  mam explain demo-app-creator-claude
  mam explain api --json"""


def add_options(parser: Parser) -> None:
    """Which one."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)


def run(call: Invocation) -> int:
    """Print evidence and verdict."""
    from mam.surfaces.cli import targets

    found = call.fleet.sessions.explain(targets.one(call))
    return call.say(found, *([] if call.as_json else show(found, call.paint())))


def show(found: dict[str, Any], paint: Paint) -> list[str]:
    """Return the verdict, the rule, and a table of the evidence."""
    from mam.core.liveness import Liveness
    from mam.core.times import short_age
    from mam.surfaces.cli.render_sessions import activity, clean
    from mam.surfaces.cli.table import Column, render

    columns = (
        Column(" "),
        Column("SOURCE"),
        Column("SAYS"),
        Column("AGE"),
        Column("DETAIL", least=10, from_end=True),
    )
    rows = []
    for one in found["evidence"]:
        disagrees = one["source"] in found["disagreeing"]
        mark = "!" if disagrees else "*" if one["source"] == found["activity_source"] else " "
        says = " ".join(clean(word) for word in (one["state"], one["waiting_for"]) if word)
        cells = (mark, clean(one["source"]), says, short_age(one["age_s"]), clean(one["detail"]))
        rows.append([(text, "yellow" if disagrees else None) for text in cells])
    lines = [
        f"{paint(clean(found['session']), 'bold')}: {activity(found)}",
        f"because {clean(found['rule'])}",
    ]
    if found["disagreeing"]:
        lines.append(paint(f"{', '.join(map(clean, found['disagreeing']))} says otherwise", "yellow"))
    pane = found.get("pane") or {}
    if pane.get("state") not in (None, Liveness.ALIVE):
        lines.append(f"its pane is {clean(pane['state'])}: {clean(pane.get('reason'))}")
    return [*lines, "", *render(columns, rows, paint)] if rows else lines
