"""Writes `startup_answers.json`, the copy of the server's answers that a bridge gives by itself.

python -m tests.surfaces.mcp.renew_startup_answers
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from tests.surfaces.mcp.client import HELLO

import mam
from mam.core.settings import GUARDED_TOOLS
from mam.surfaces.mcp.server_thread import Service
from mam.surfaces.mcp.startup_answers import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN_PROTOCOL_VERSIONS[-1],
        "io.modelcontextprotocol/clientInfo": HELLO["clientInfo"],
        "io.modelcontextprotocol/clientCapabilities": HELLO["capabilities"],
    }
}
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


@contextmanager
def asking(fleet: Any, **introduction: Any) -> Iterator[Callable[..., dict[str, Any]]]:
    """Give a function that asks a new server in this process, as a client that has just connected."""
    service = Service(fleet)
    ours, theirs = socket.socketpair()
    hello = {"cwd": fleet.root, "environ": dict(os.environ), **introduction}
    try:
        with ours, ours.makefile("rwb") as file:
            service.add_client(theirs)
            file.write(json.dumps(hello).encode() + b"\n")

            def ask(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
                request = {"jsonrpc": "2.0", "id": 1, "method": method}
                file.write(
                    json.dumps(request | ({} if params is None else {"params": params})).encode() + b"\n"
                )
                file.flush()
                answer: dict[str, Any] = json.loads(file.readline())
                return answer

            yield ask
    finally:
        service.end()


def answers_of_server(fleet: Any) -> dict[str, Any]:
    """Return what the copy should hold: what the server answers."""
    allow = list(GUARDED_TOOLS)
    with asking(fleet, allow=allow) as ask:
        introduced = ask("initialize", HELLO)["result"]
        lists = {field: ask(method)["result"][field] for method, field in LISTS.items()}
    with asking(fleet, allow=allow) as ask:
        discovered = ask("server/discover", ENVELOPE)["result"]
    stamp = discovered["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert stamp == introduced["serverInfo"]
    return {
        "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
        "server": {key: value for key, value in introduced["serverInfo"].items() if key != "version"},
        "capabilities": introduced["capabilities"],
        "instructions": introduced["instructions"],
        "envelope": {
            "versions": discovered["supportedVersions"],
            "capabilities": discovered["capabilities"],
            "result": {key: discovered[key] for key in ("cacheScope", "resultType", "ttlMs")},
        },
        **lists,
    }


def main() -> None:
    """Write the copy."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        with mam.open(folder) as fleet:
            text = json.dumps(answers_of_server(fleet), indent=1, ensure_ascii=False)
    Path(FILE).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
