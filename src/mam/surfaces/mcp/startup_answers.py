"""The answers to what MCP clients ask when they start, from a copy of the server's answers.

The `mcp` package takes most of a second to load. A bridge gives these answers by itself while the server
loads. It answers only requests of the usual form; the server answers, or refuses, all others.

`startup_answers.json` is the copy. A test compares it with what the server answers.
"""

from __future__ import annotations

import json
import os

import mam
from mam.core.errors import MamError
from mam.core.settings import GUARDED_TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    Message = dict[str, Any]

FILE = os.path.join(os.path.dirname(__file__), "startup_answers.json")
# A request of protocol 2026-07-28 and later names its version and its client in these fields of `_meta`.
_VERSION = "io.modelcontextprotocol/protocolVersion"
_CLIENT = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SERVER = "io.modelcontextprotocol/serverInfo"
# The methods that list something, with the field of the list.
_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class StartupAnswers:
    """The answers for one client."""

    def __init__(self, allowed: Callable[[], Collection[str]]) -> None:
        """`allowed` returns the guarded tools that this client may use."""
        self._allowed = allowed
        # The first request decides how the client speaks: with `initialize`, or with an envelope.
        self._has_envelopes: bool | None = None
        # Read at the first request. An upgrade may replace the file while the bridge runs.
        self._copy: Message | None = None

    def result(self, message: Message) -> Message | None:
        """Return the result of a request; None if the server must answer it."""
        method, params = message.get("method"), message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not _is_id(message["id"]) or not isinstance(params, dict):
            return None
        if self._copy is None:
            self._copy = _read_copy()
        copy = self._copy
        if not copy:
            return None
        if method == "initialize":
            return self._initialize(params, copy) if self._has_envelopes is None else None
        if set(params) - {"_meta"} or not isinstance(params.get("_meta", {}), dict):
            return None
        if has_envelope(message):
            return self._answer_in_envelope(method, params["_meta"], copy)
        if self._has_envelopes:
            return None
        if method == "ping":
            return {}
        return self._list(method, copy) if self._has_envelopes is False else None

    def _initialize(self, params: Message, copy: Message) -> Message | None:
        requested = params.get("protocolVersion")
        if not (
            isinstance(requested, str)
            and _is_implementation(params.get("clientInfo"))
            and _are_capabilities(params.get("capabilities"))
        ):
            return None
        self._has_envelopes = False
        versions = copy["versions"]
        return {
            "capabilities": copy["capabilities"],
            "instructions": copy["instructions"],
            "protocolVersion": requested if requested in versions else versions[-1],
            "serverInfo": _server(copy),
        }

    def _answer_in_envelope(self, method: object, meta: Message, copy: Message) -> Message | None:
        """Answer a request of protocol 2026-07-28 and later, which has no `initialize`."""
        envelope = copy["envelope"]
        if self._has_envelopes is False or not (
            meta.get(_VERSION) in envelope["versions"]
            and _is_implementation(meta.get(_CLIENT))
            and _are_capabilities(meta.get(_CAPABILITIES))
        ):
            return None
        self._has_envelopes = True
        if method == "server/discover":
            result: Message | None = {
                "capabilities": envelope["capabilities"],
                "instructions": copy["instructions"],
                "supportedVersions": envelope["versions"],
            }
        else:
            result = self._list(method, copy)
        if result is None:
            return None
        return {**result, **envelope["result"], "_meta": {_SERVER: _server(copy)}}

    def _list(self, method: object, copy: Message) -> Message | None:
        field = _LISTS.get(method) if isinstance(method, str) else None
        if field is None:
            return None
        entries = copy[field]
        if field == "tools":
            try:
                hidden = set(GUARDED_TOOLS) - set(self._allowed())
            except MamError:
                # The settings or the registry cannot be read. The server says so.
                return None
            entries = [tool for tool in entries if tool["name"] not in hidden]
        return {field: entries}


def _read_copy() -> Message:
    """Return the copy; {} if it cannot be read: then the server answers everything."""
    try:
        with open(FILE, encoding="utf-8") as file:
            copy = json.load(file)
    except (OSError, ValueError):
        return {}
    return copy if isinstance(copy, dict) else {}


def has_envelope(message: Message) -> bool:
    """Tell whether a request names its protocol version itself, as from 2026-07-28 on."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and _VERSION in meta


def server_version(result: object) -> str | None:
    """Return the version of mam that a server names in its answer to an introduction."""
    if not isinstance(result, dict):
        return None
    meta = result.get("_meta")
    server = result.get("serverInfo") or (meta.get(_SERVER) if isinstance(meta, dict) else None)
    version = server.get("version") if isinstance(server, dict) else None
    return version if isinstance(version, str) else None


def _server(copy: Message) -> Message:
    return {**copy["server"], "version": mam.__version__}


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_implementation(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("name", "version"))


def _are_capabilities(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(part, dict) for part in value.values())
