"""The MCP tools, in one module for each subject."""

from __future__ import annotations

from mam.surfaces.mcp.tools import agents, guarded, jobs, messages, observe, split_panes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.mcp.tool import FleetTool


def all_tools() -> list[FleetTool]:
    """Return every tool; the server shows each client those that it may use."""
    return [*agents.TOOLS, *messages.TOOLS, *observe.TOOLS, *jobs.TOOLS, *split_panes.TOOLS, *guarded.TOOLS]
