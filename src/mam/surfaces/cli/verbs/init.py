"""mam init: make this directory a root."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Make this directory a root: it holds the registry for itself and all directories below.
Without `mam init`, the first command that records something makes its directory a root."""
EXAMPLES = """
  mam init
  mam init --workspace ~/projects/shop"""


def add_options(parser: Parser) -> None:
    """Add nothing: the verb has no options."""


def run(call: Invocation) -> int:
    """Make the root if there is none, and print the path of its registry."""
    from mam.core.safe_text import one_line

    existing_file = call.fleet.registry_file if call.fleet.exists else None
    file = call.fleet.init()
    state = "is a root already" if file == existing_file else "is now a root"
    return call.say({"registry": file}, f"this directory {state}; its registry is {one_line(file)}")
