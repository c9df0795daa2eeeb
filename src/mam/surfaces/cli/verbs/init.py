"""mam init: make this directory a root."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Make this directory a root: the place of the registry for it and every directory below.
Without it, the first `mam create` makes its directory one."""
EXAMPLES = """
  mam init
  mam init --workspace ~/projects/shop"""


def add_options(parser: Parser) -> None:
    """No options of its own."""


def run(call: Invocation) -> int:
    """Make the root and say where the registry is."""
    from mam.core.safe_text import one_line

    file = call.fleet.init()
    return call.say({"registry": file}, f"this is a root now; its registry is {one_line(file)}")
