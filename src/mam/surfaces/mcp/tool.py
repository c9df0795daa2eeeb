"""What a tool is: a function on a fleet, with a schema, a tier, and errors that are results.

A tool calls verbs of the API and nothing else. It runs in a thread with a fleet of its own, because
SQLite's connections are not shared between threads.
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

from mam.app.agent_tools.connected_client import ConnectedClient
from mam.app.api.fleet import Fleet, fleet_of_client
from mam.core.errors import Broken, MamError, Usage
from mam.surfaces.mcp.read_only_tools import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.mcpserver import Context

    Work = Callable[..., Any]

# Who calls; every task and thread of a client's connection inherits it.
current_client: ContextVar[ConnectedClient] = ContextVar("current_client")

# What a tool may do, at most. One without a tier does not exist.
READ, CHANGE, DESTROY = "read", "change", "destroy"
_TIERS = (READ, CHANGE, DESTROY)

# Waiting must not keep others from being served.
_MOST_THREADS = 256


class ToolCall:
    """One call of a tool: the fleet as the caller sees it, and a way to tell how it goes."""

    def __init__(self, fleet: Fleet, tell: Callable[[str], None], over: threading.Event) -> None:
        self.who = current_client.get()
        self.fleet = fleet
        self.tell = tell
        # Set when the client is gone, or wants no answer any more.
        self.over = over

    def pause(self, seconds: float) -> bool:
        """Sleep so long; True if nobody waits for the answer any more."""
        return self.over.wait(seconds)


class FleetTool(Tool):
    """A tool of the package's that runs on a fleet."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Check the arguments, do it, and answer; whatever goes wrong is an answer, too."""
        try:
            checked = self.fn_metadata.arg_model.model_validate(arguments, strict=True, extra="forbid")
        except ValidationError as error:
            return failed(_as_usage(error))
        given = checked.model_dump_one_level()
        over = threading.Event()
        try:
            done = await anyio.to_thread.run_sync(
                self._work,
                given,
                _teller(context),
                over,
                abandon_on_cancel=self.name in READS,
                limiter=_limiter(),
            )
        except MamError as error:
            return failed(error)
        except Exception as error:
            return failed(Broken(f"a bug in mam: {type(error).__name__}: {error}"))
        finally:
            over.set()
        return CallToolResult(content=[_text(done)], structured_content=done)

    def _work(
        self, given: dict[str, Any], tell: Callable[[str], None], over: threading.Event
    ) -> dict[str, Any]:
        who = current_client.get()
        with fleet_of_client(who) as fleet:
            if self.name not in READS:
                who.check_claim(fleet.caller)
            fleet.on_progress(tell)
            done: dict[str, Any] = self.fn(ToolCall(fleet, tell, over), **given)
        return done


def make(work: Work, tier: str, *, idempotent: bool = False, open_world: bool = False) -> FleetTool:
    """Make a tool of a function whose first parameter is the call; its docstring is the description."""
    if tier not in _TIERS or (tier == READ) != (work.__name__ in READS):
        raise ValueError(f"{work.__name__} is not of the tier {tier}")
    made = FleetTool.from_function(
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
    made.parameters = {**_lean(made.parameters), "additionalProperties": False}
    made.fn_metadata.output_schema = _lean_answer(made.fn_metadata.output_schema)
    return made  # type: ignore[return-value]  # made by its own class


def failed(error: MamError) -> CallToolResult:
    """Return an error as a result: the same document that the command line prints."""
    document = error.as_json()
    return CallToolResult(content=[_text(document)], structured_content=document, is_error=True)


def _text(document: dict[str, Any]) -> TextContent:
    return TextContent(type="text", text=json.dumps(document, ensure_ascii=False))


def _as_usage(error: ValidationError) -> Usage:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"])) or "the arguments"
    return Usage(f"{where}: {first['msg']}", hint="the tool's input schema says what it takes")


def _teller(context: Context[Any, Any]) -> Callable[[str], None]:
    """Return what sends progress to the client from the tool's thread; to one that asked for it."""
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
    """Return a schema without titles that repeat the names and defaults that mean nothing.

    Every client pays for each byte.
    """
    if isinstance(schema, list):
        return [_lean(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _lean(one) for name, one in value.items()} if key == "properties" else _lean(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and not value)
    }


def _lean_answer(schema: Any) -> Any:
    """Return the schema of an answer, which no model reads: without words, and with short alternatives."""
    lean = _lean(schema)
    for one in (lean, *lean.get("$defs", {}).values()):
        one.pop("description", None)
        for name, field in one.get("properties", {}).items():
            kinds = [other.get("type") for other in field.get("anyOf", ())]
            if kinds and all(isinstance(kind, str) for kind in kinds):
                one["properties"][name] = {"type": kinds}
    return lean
