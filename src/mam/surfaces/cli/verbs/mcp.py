"""mam mcp: serve the verbs to agents as MCP tools, over standard input and output."""

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
Serve the verbs as MCP tools over standard input and output. An MCP client starts this command:
`claude mcp add mam -- mam mcp`, `codex mcp add mam -- mam mcp`; docs/mcp.md has others. The root's
resident runs one server for all clients. This process only forwards lines to it, and reconnects
when the resident has restarted.

A client that runs inside a session acts as that session: it may message and stop the sessions that
it started. Any other client acts as the user. Tools whose effect cannot be undone are not offered
unless --allow names them; for sessions the setting `mcp.allow` decides."""
EXAMPLES = """
  mam mcp
  mam mcp --allow answer_prompt --allow kill
  mam mcp --workspace ~/work/shop"""


def add_options(parser: Parser) -> None:
    """Add the option for guarded tools."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=GUARDED_TOOLS,
        help="also offer this tool; may be repeated",
    )


def run(call: Invocation) -> int:
    """Forward lines to the resident's server; if residents are switched off, serve in this process."""
    if is_terminal(sys.stdin):
        call.show_progress(
            "waiting for an MCP client, which usually starts this command (docs/mcp.md); Ctrl-D ends it"
        )
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

    Bridge(fleet.mcp.connect, fleet.mcp.start_resident, hello, lambda: fleet.mcp.allowed(hello)).run()
    return 0
