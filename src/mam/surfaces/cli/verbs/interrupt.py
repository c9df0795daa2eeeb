"""mam interrupt: interrupt a session's turn."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Interrupt a session's turn with the keys of its program (Escape, twice for opencode, Ctrl-C for
Hermes), and return when the session is idle. mam presses no key if the session is idle already, or
if a dialog is open.

Exit code 0 the session is idle, 2 a dialog is open or the session is not alive, 3 the keys were
pressed and nothing proves that the session is idle."""
EXAMPLES = """
  mam interrupt api
  mam interrupt api web"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions."""
    from mam.surfaces.cli.parser import add_names

    add_names(parser)


def run(call: Invocation) -> int:
    """Interrupt each session."""
    from mam.core.errors import Usage
    from mam.surfaces.cli import each_session, targets

    names = targets.sessions(call)
    if not names:
        raise Usage("name a session", hint="mam interrupt NAME")

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        document = fleet.messages.interrupt(name)
        return document, show(document)

    return each_session.run(call, names, work, several=len(names) > 1)


def show(document: dict[str, Any]) -> str:
    """Return the result as one line."""
    from mam.surfaces.cli.render_sessions import clean

    name = clean(document["session"])
    if document["was"] == document["activity"]:
        return f"{name} was not working"
    draft = "; its prompt is back in its input box" if document["box"] == "draft" else ""
    return f"interrupted: {name}{draft}"
