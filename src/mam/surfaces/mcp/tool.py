"""Makes MCP tools of functions: each gets a fleet, a schema and a tier, and its errors become results.

A tool calls only verbs of the API. It runs in a thread with a fleet of its own, because threads cannot share
a SQLite connection.
"""

from __future__ import annotations

import json
import threading
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from mam.app.api.fleet_object import Fleet, fleet_of_client
from mam.core.errors import Broken, MamError, Usage
from mam.surfaces.mcp.read_only_tool_names import READS
from mam.surfaces.mcp.tool_hints import error_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp.server.mcpserver import Context

    from mam.app.api.mcp_connection import ConnectedClient

    Work = Callable[..., Any]

# The client that calls. Every task and thread of a client's connection inherits this variable.
current_client: ContextVar[ConnectedClient] = ContextVar("current_client")

# The tier of a tool is the most that it may do. Every tool has one.
READ, CHANGE, DESTROY = "read", "change", "destroy"
_TIERS = (READ, CHANGE, DESTROY)

# The limit is high because each waiting call occupies a thread, and must not block other clients.
_MOST_THREADS = 256


class ToolCall:
    """One call of a tool: the fleet with the client's rights, and a function that reports progress."""

    def __init__(self, fleet: Fleet, tell: Callable[[str], None], cancelled: threading.Event) -> None:
        self.client = current_client.get()
        self.fleet = fleet
        self.tell = tell
        # Set when the client is gone or has cancelled the call.
        self.cancelled = cancelled

    def pause(self, seconds: float) -> bool:
        """Sleep for so many seconds; return True if nobody waits for the answer any more."""
        return self.cancelled.wait(seconds)


class FleetTool(Tool):
    """A tool of the `mcp` package that runs on a fleet."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Check the arguments, run the tool, and return its result; an error is a result, too."""
        try:
            checked = self.fn_metadata.arg_model.model_validate(arguments, strict=True, extra="forbid")
        except ValidationError as error:
            return self._failed(_as_usage(error))
        values = checked.model_dump_one_level()
        cancelled = threading.Event()
        try:
            result = await anyio.to_thread.run_sync(
                self._work,
                values,
                _progress_sender(context),
                cancelled,
                abandon_on_cancel=self.name in READS,
                limiter=_limiter(),
            )
        except MamError as error:
            return self._failed(error)
        except Exception as error:
            return self._failed(Broken(f"a bug in mam: {type(error).__name__}: {error}"))
        finally:
            cancelled.set()
        return CallToolResult(content=[_text(result)], structured_content=result)

    def _failed(self, error: MamError) -> CallToolResult:
        return failed(error, self.parameters["properties"])

    def _work(
        self, values: dict[str, Any], tell: Callable[[str], None], cancelled: threading.Event
    ) -> dict[str, Any]:
        client = current_client.get()
        with fleet_of_client(client) as fleet:
            fleet.on_progress(tell)
            result: dict[str, Any] = self.fn(ToolCall(fleet, tell, cancelled), **values)
        return result


def make(work: Work, tier: str, *, idempotent: bool = False, open_world: bool = False) -> FleetTool:
    """Make a tool of a function whose first parameter is the ToolCall; its docstring is the description."""
    if tier not in _TIERS or (tier == READ) != (work.__name__ in READS):
        raise ValueError(f"{work.__name__} is not of the tier {tier}")
    tool = FleetTool.from_function(
        work,
        description=" ".join((work.__doc__ or "").split()),
        context_kwarg="call",
        annotations=ToolAnnotations(
            read_only_hint=tier == READ,
            destructive_hint=tier == DESTROY,
            idempotent_hint=idempotent or tier == READ,
            open_world_hint=open_world,
        ),
        structured_output=True,
    )
    tool.parameters = {**_lean(tool.parameters), "additionalProperties": False}
    tool.fn_metadata.output_schema = _lean_answer(tool.fn_metadata.output_schema)
    return tool  # type: ignore[return-value]  # made by its own class


def failed(error: MamError, arguments: Collection[str] = ()) -> CallToolResult:
    """Return an error of a tool with these arguments as a result."""
    document = error_document(error, guarded_tools, arguments)
    return CallToolResult(content=[_text(document)], structured_content=document, is_error=True)


def guarded_tools() -> Collection[str]:
    """Return the guarded tools that the client has."""
    try:
        return current_client.get().allowed()
    except MamError:
        # The settings cannot be read. The client is told so, and has none.
        return ()


def _text(document: dict[str, Any]) -> TextContent:
    return TextContent(type="text", text=json.dumps(document, ensure_ascii=False))


def _as_usage(error: ValidationError) -> Usage:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"])) or "the arguments"
    return Usage(f"{field}: {first['msg']}", hint="the input schema of the tool shows its arguments")


def _progress_sender(context: Context[Any, Any]) -> Callable[[str], None]:
    """Return a function that sends progress to the client from the tool's thread, if the client wants it."""
    steps = iter(range(1, 1_000_000))

    def tell(text: str) -> None:
        try:
            anyio.from_thread.run(context.report_progress, next(steps), None, text)
        except RuntimeError:
            # The loop has ended, and the client with it.
            return

    return tell


_limiters: list[anyio.CapacityLimiter] = []


def _limiter() -> anyio.CapacityLimiter:
    if not _limiters:
        _limiters.append(anyio.CapacityLimiter(_MOST_THREADS))
    return _limiters[0]


def _lean(schema: Any) -> Any:
    """Return a schema without titles, which repeat the names.

    Each client reads the schemas into its model's context, so each byte costs. Defaults stay, also empty
    ones: without them a model cannot know what happens if it leaves an argument out.
    """
    if isinstance(schema, list):
        return [_lean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _lean(part) for name, part in value.items()} if key == "properties" else _lean(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _lean_answer(schema: Any) -> Any:
    """Return the schema of a result, which no model reads: without descriptions, and with short unions."""
    lean = _lean(schema)
    for part in (lean, *lean.get("$defs", {}).values()):
        part.pop("description", None)
        for name, field in part.get("properties", {}).items():
            kinds = [alternative.get("type") for alternative in field.get("anyOf", ())]
            if kinds and all(isinstance(kind, str) for kind in kinds):
                part["properties"][name] = {"type": kinds}
    return lean
