"""mam archive: mark ended sessions as archived."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Mark ended sessions as archived. They stay in the registry and can still be resumed."
EXAMPLES = """
  mam archive demo-app-creator-claude
  mam ls --status archived"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions."""
    from mam.surfaces.cli.parser import add_names

    add_names(parser)


def run(call: Invocation) -> int:
    """Archive each session."""
    from mam.core.errors import Usage
    from mam.surfaces.cli import each_session, targets
    from mam.surfaces.cli.render_sessions import line

    names = targets.sessions(call)
    if not names:
        raise Usage("name a session", hint="mam ls shows them")

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        session = fleet.sessions.archive(name)
        return {"session": session.row}, f"archived: {line(session.row)}"

    return each_session.run(call, names, work, several=len(names) > 1)
