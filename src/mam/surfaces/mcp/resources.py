"""The MCP resources, which a client reads without calling a tool: sessions, screens and events of jobs."""

from __future__ import annotations

import json

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from mam.app.api.fleet_object import Fleet, fleet_of_client
from mam.core.errors import JobNotFound, MamError, SessionNotFound
from mam.surfaces.mcp.tool import current_client, guarded_tools
from mam.surfaces.mcp.tool_hints import error_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import MCPServer


def add(server: MCPServer) -> None:
    """Register the resources."""

    @server.resource("mam://sessions", name="sessions", mime_type="application/json")
    def sessions() -> str:
        """Every session of this root, with its activity."""
        return _read(lambda fleet: json.dumps(fleet.sessions.ls()))

    @server.resource("mam://sessions/{name}/screen", name="screen", mime_type="text/plain")
    def screen(name: str) -> str:
        """What a session's terminal shows."""
        return _read(lambda fleet: fleet.sessions.read(name))

    @server.resource("mam://jobs/{id}/events", name="events", mime_type="application/json")
    def events(id: str) -> str:
        """The log entries of a job, oldest first."""
        return _read(lambda fleet: json.dumps(fleet.jobs.logs(id)["events"]))


def _read(look: Callable[[Fleet], str]) -> str:
    try:
        with fleet_of_client(current_client.get()) as fleet:
            return look(fleet)
    except (JobNotFound, SessionNotFound) as error:
        raise ResourceNotFoundError(_text(error)) from error
    except MamError as error:
        raise ResourceError(_text(error)) from error


def _text(error: MamError) -> str:
    return json.dumps(error_document(error, guarded_tools)["error"])
