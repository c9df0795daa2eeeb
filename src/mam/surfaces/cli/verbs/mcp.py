"""mam mcp: the tools for agents, over standard input and output."""

from __future__ import annotations

import os
import sys

from mam.core.settings import GUARDED_TOOLS
from mam.surfaces.cli.style import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Serve the verbs as MCP tools over standard input and output; an MCP client starts it:
`claude mcp add mam -- mam mcp`, `codex mcp add mam -- mam mcp`; docs/mcp.md has others. The server
itself runs in the root's resident, once for all clients: this process only carries lines, and
finds the server again when the resident was ended.

A client that runs inside a session is that session: it may message and stop what it started.
Anybody else is the operator. Tools that cannot be undone are left out unless --allow names them;
for sessions the setting `mcp.allow` does."""
EXAMPLES = """
  mam mcp
  mam mcp --allow answer_prompt --allow kill
  mam mcp --workspace ~/work/shop"""


def add_options(parser: Parser) -> None:
    """What the client may do beyond the usual."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=GUARDED_TOOLS,
        help="also offer this tool; may be repeated",
    )


def run(call: Invocation) -> int:
    """Carry lines to the resident's server; where there is none and shall be none, serve here."""
    if is_terminal(sys.stdin):
        call.tell("waiting for an MCP client, which starts this itself: docs/mcp.md; Ctrl-D ends it")
    fleet = call.fleet
    hello: dict[str, Any] = {
        "state": fleet.mcp.state,
        "cwd": fleet.workspace,
        "environ": dict(os.environ),
        "allow": call.options.allow,
    }
    if not fleet.mcp.is_hosted():
        from mam.surfaces.mcp.in_process import serve

        serve(fleet, hello)
        return 0
    from mam.surfaces.mcp.bridge import Bridge

    Bridge(fleet.mcp.connect, fleet.mcp.start_resident, hello).run()
    return 0
