"""The MCP server with its tools, resources and prompts.

One server serves all clients. A context variable, which every task of a client's connection inherits, holds
the client.
"""

from __future__ import annotations

import json

from mcp.server import MCPServer
from mcp.server.lowlevel.server import NotificationOptions
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

    from mam.app.api.mcp_connection import ConnectedClient

_INSTRUCTIONS = """\
mam runs AI coding agents in tmux. spawn_agent starts one, send_to gives it work, wait_for waits until it is \
idle or done, read_screen shows its terminal, stop_agent ends it; its conversation is kept and resume_agent \
takes it up again. An agent that is blocked_on_prompt waits for a person. Errors have a code and a hint."""

# The bridge sends this notification if a server of another version follows.
_NOTIFICATIONS = NotificationOptions(tools_changed=True)


class Server(MCPServer):
    """mam's tools for agents."""

    def __init__(self) -> None:
        """Register all tools; `list_tools` hides the guarded tools that a client may not use."""
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

    async def serve(self, client: ConnectedClient, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one client until it is gone."""
        current_client.set(client)
        server = self._lowlevel_server
        sink = _Sink(writer)
        async with stdio_server(_Lines(reader, sink), sink) as (received, sent):  # type: ignore[arg-type]
            await server.run(received, sent, server.create_initialization_options(_NOTIFICATIONS))

    async def list_tools(self) -> list[Described]:
        """List the tools that this client may use."""
        hidden = _hidden(current_client.get())
        return [tool for tool in await super().list_tools() if tool.name not in hidden]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool that this client may use; other tools do not exist for it."""
        try:
            names = {tool.name for tool in await self.list_tools()}
        except MamError as error:
            return failed(error)
        if name not in names:
            return failed(Usage(f"there is no tool '{name[:60]}'", hint=f"tools: {', '.join(sorted(names))}"))
        return await super().call_tool(name, arguments, context)


def _hidden(client: ConnectedClient) -> set[str]:
    return set(GUARDED_TOOLS) - set(client.allowed())


class _Lines:
    """A client's lines, in the form of a file, which the `mcp` package reads.

    An invalid message is answered here: the package ignores it, and the client would wait for ever.
    """

    def __init__(self, reader: StreamReader, sink: _Sink) -> None:
        self._reader = reader
        self._sink = sink

    def __aiter__(self) -> _Lines:
        """Iterate over the lines."""
        return self

    async def __anext__(self) -> str:
        """Return the next line that is a valid message."""
        while line := await self._next():
            if not line.strip():
                continue
            if _is_message(line):
                return line
            await self._sink.write(_refusal(line))
            await self._sink.flush()
        raise StopAsyncIteration

    async def _next(self) -> str:
        """Return the next line; an empty string at the end, and for a line that is too long."""
        try:
            return (await self._reader.readline()).decode("utf-8", "replace")
        except (ValueError, ConnectionError):
            return ""


class _Sink:
    """The way to the client, in the form of a file, which the `mcp` package writes."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        """Send a line."""
        self._writer.write(text.encode())

    async def flush(self) -> None:
        """Wait until the client has read enough."""
        await self._writer.drain()


def _is_message(line: str) -> bool:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return False
    # The package takes a request with an invalid id for a notification.
    return not isinstance(message, JSONRPCNotification) or json.loads(line).get("id") is None


def _refusal(line: str) -> str:
    """Return the answer to an invalid message, with its id if that is readable."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message, code, reason = None, PARSE_ERROR, "the line is not JSON"
    else:
        code, reason = INVALID_REQUEST, "the line is not a message of JSON-RPC 2.0"
    number = message.get("id") if isinstance(message, dict) else None
    message_id = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    answer = {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": reason}}
    return json.dumps(answer) + "\n"
