"""mam interrupt: cut a session's turn short."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Cut a session's turn short in the way of its program (Escape, twice for opencode, Ctrl-C for Hermes)
and return once it is seen to rest. One that rests is left as it is; a dialog is not refused by it.

Exit code 0 it rests, 2 a dialog is open or nobody is there, 3 pressed and not seen to rest."""
EXAMPLES = """
  mam interrupt api
  mam interrupt api web"""


def add_options(parser: Parser) -> None:
    """Whom."""
    from mam.surfaces.cli.parser import add_names

    add_names(parser)


def run(call: Invocation) -> int:
    """Interrupt each."""
    from mam.core.errors import Usage
    from mam.surfaces.cli import batch, targets

    names = targets.several(call)
    if not names:
        raise Usage("name a session", hint="mam interrupt NAME")

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        done = fleet.messages.interrupt(name)
        return done, show(done)

    return batch.run(call, names, work, several=len(names) > 1)


def show(done: dict[str, Any]) -> str:
    """Return what came of it in one line."""
    from mam.surfaces.cli.render_sessions import clean

    name = clean(done["session"])
    if done["was"] == done["activity"]:
        return f"{name} was not working"
    back = "; its prompt is back in its box" if done["box"] == "draft" else ""
    return f"interrupted: {name}{back}"
