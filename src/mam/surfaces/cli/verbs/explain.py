"""mam explain: explain why a session counts as idle, working or waiting."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = """\
Show all evidence about what a session is doing, how old it is, and the rule that decided.
Evidence for another state is marked with !. The command changes nothing."""
EXAMPLES = """
  mam explain demo-app-creator-claude
  mam explain api --json"""


def add_options(parser: Parser) -> None:
    """Add the options: the session."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)


def run(call: Invocation) -> int:
    """Print the activity and the evidence."""
    from mam.surfaces.cli import targets

    document = call.fleet.sessions.explain(targets.session(call))
    return call.say(document, *([] if call.as_json else show(document, call.paint())))


def show(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return the activity, the rule, and a table of the evidence."""
    from mam.core.liveness_values import Liveness
    from mam.core.times import short_age
    from mam.surfaces.cli.render_sessions import activity, clean
    from mam.surfaces.cli.table import Column, render

    columns = (
        Column(" "),
        Column("SOURCE"),
        Column("SAYS"),
        Column("AGE"),
        Column("DETAIL", least=10, from_end=True, worth=1),
    )
    rows = []
    for evidence in document["evidence"]:
        disagrees = evidence["source"] in document["disagreeing"]
        mark = "!" if disagrees else "*" if evidence["source"] == document["activity_source"] else " "
        state = " ".join(clean(word) for word in (evidence["state"], evidence["waiting_for"]) if word)
        cells = (
            mark,
            clean(evidence["source"]),
            state,
            short_age(evidence["age_s"]),
            clean(evidence["detail"]),
        )
        rows.append([(text, "yellow" if disagrees else None) for text in cells])
    lines = [
        f"{paint(clean(document['session']), 'bold')}: {activity(document)}",
        f"because {clean(document['rule'])}",
    ]
    if document["disagreeing"]:
        lines.append(
            paint(f"{', '.join(map(clean, document['disagreeing']))} reports another state", "yellow")
        )
    pane = document.get("pane") or {}
    if pane.get("state") not in (None, Liveness.ALIVE):
        lines.append(f"its pane is {clean(pane['state'])}: {clean(pane.get('reason'))}")
    return [*lines, "", *render(columns, rows, paint)] if rows else lines
