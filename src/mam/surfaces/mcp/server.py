"""The MCP server: the tools, resources and prompts, each client with its own caller.

There is one server for all clients. Who calls is in a context variable that every task of a client's
connection inherits.
"""

from __future__ import annotations

import json

from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, jsonrpc_message_adapter

import mam
from mam.core.errors import MamError, Usage
from mam.core.settings import GUARDED_TOOLS
from mam.surfaces.mcp import prompts, resources
from mam.surfaces.mcp.tool import current_client, failed
from mam.surfaces.mcp.tools import all_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from typing import Any

    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult, InputRequiredResult
    from mcp_types import Tool as Described

    from mam.app.agent_tools.connected_client import ConnectedClient

_INSTRUCTIONS = """\
mam runs AI coding agents in tmux. spawn_agent starts one, send_to gives it work, wait_for waits until it is \
idle or done, read_screen shows its terminal, stop_agent ends it; its conversation is kept and resume_agent \
takes it up again. An agent that is blocked_on_prompt waits for a person. Errors have a code and a hint."""


class Server(MCPServer):
    """mam's tools for agents."""

    def __init__(self) -> None:
        """Register everything; which guarded tools a client has is decided when it asks."""
        super().__init__(
            "mam",
            title="multi-agent-mux",
            instructions=_INSTRUCTIONS,
            version=mam.__version__,
            tools=list(all_tools()),
            log_level="CRITICAL",
        )
        resources.add(self)
        prompts.add(self)

    async def serve(self, who: ConnectedClient, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one client until it is gone."""
        current_client.set(who)
        server = self._lowlevel_server
        sink = _Sink(writer)
        async with stdio_server(_Lines(reader, sink), sink) as (received, sent):  # type: ignore[arg-type]
            await server.run(received, sent, server.create_initialization_options())

    async def list_tools(self) -> list[Described]:
        """List what this client may see."""
        hidden = _hidden(current_client.get())
        return [one for one in await super().list_tools() if one.name not in hidden]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call what this client may see; anything else is no tool."""
        try:
            known = {one.name for one in await self.list_tools()}
        except MamError as error:
            return failed(error)
        if name not in known:
            return failed(Usage(f"there is no tool '{name[:60]}'", hint=f"tools: {', '.join(sorted(known))}"))
        return await super().call_tool(name, arguments, context)


def _hidden(who: ConnectedClient) -> set[str]:
    return set(GUARDED_TOOLS) - set(who.allowed())


class _Lines:
    """A client's lines, as the package reads them from a file.

    What is no message is answered here: the package drops it, and the client would wait for ever.
    """

    def __init__(self, reader: StreamReader, sink: _Sink) -> None:
        self._reader = reader
        self._sink = sink

    def __aiter__(self) -> _Lines:
        """Iterate over the lines."""
        return self

    async def __anext__(self) -> str:
        """Return the next line that is a message."""
        while line := await self._next():
            if not line.strip():
                continue
            if _is_message(line):
                return line
            await self._sink.write(_refusal(line))
            await self._sink.flush()
        raise StopAsyncIteration

    async def _next(self) -> str:
        """Return the next line; one without an end is the end."""
        try:
            return (await self._reader.readline()).decode("utf-8", "replace")
        except (ValueError, ConnectionError):
            return ""


class _Sink:
    """Where answers go, as the package writes them to a file."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        """Take a line."""
        self._writer.write(text.encode())

    async def flush(self) -> None:
        """Wait while the client is slow."""
        await self._writer.drain()


def _is_message(line: str) -> bool:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return False
    # A request whose id is of a strange form looks like a notification.
    return not isinstance(message, JSONRPCNotification) or json.loads(line).get("id") is None


def _refusal(line: str) -> str:
    """Return the answer to what is no message; by its id, where one can be read."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said, code, reason = None, PARSE_ERROR, "this is no JSON"
    else:
        code, reason = INVALID_REQUEST, "this is no message of JSON-RPC 2.0"
    number = said.get("id") if isinstance(said, dict) else None
    known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    answer = {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": reason}}
    return json.dumps(answer) + "\n"
