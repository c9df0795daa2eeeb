"""What agents pay for mam's tools: the start of a bridge, a call among 100 sessions, memory, and the list."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.crowd import settle
from bench.measure import Budget, Row, Times, alternate, run, until
from bench.stage import PYTHON, Stage, mam
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.store.root_paths import of_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASS = "python -c pass"
IMPORT = "python -c 'import mcp'"
# The schemas of the original at their smallest, in KB.
_ORIGINAL = 17.282
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Client:
    """A client with a bridge of its own."""

    def __init__(self, stage: Stage) -> None:
        self.process = subprocess.Popen(
            mam("mcp"),
            cwd=stage.root,
            env=stage.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0

    def ask(self, method: str, **params: Any) -> bytes:
        """Ask, and return the line that answers."""
        self._last += 1
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if b'"result"' not in answer:
            raise RuntimeError(f"{method}: {answer.decode()}")
        return answer

    def greet(self) -> None:
        """Introduce itself, and wait for the first answer."""
        self.ask("initialize", **_HELLO)

    def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool."""
        self.ask("tools/call", name=tool, arguments=arguments)

    def close(self) -> None:
        """Leave."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(10)


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Start the resident by the first client, then compare what follows with commands of the same run."""
    count = 5 if quick else 100
    tell(f"serving tools among {count} sessions")
    with ExitStack() as stack:
        stage = stack.enter_context(Stage())
        (stage.home / ".config" / "mam" / "config.toml").write_text("", encoding="utf-8")
        settle(stage, count, alive=True).close()
        stack.callback(_end_resident, stage)
        imported, introduced, called = _cold_starts(stage, 1 if quick else 10)
        client = Client(stage)
        stack.callback(client.close)
        client.greet()
        # The bridge may answer before there is a server. What follows is measured with one.
        client.call("list_agents")
        listed = len(client.ask("tools/list")) / 1000
        memory = Times((_memory(client.process.pid),))
        name = json.loads(client.ask("resources/read", uri="mam://sessions"))["result"]["contents"][0]["text"]
        agent = json.loads(name)["sessions"][0]["id"]
        acts = {
            PASS: lambda: run([PYTHON, "-c", "pass"], stage.environ),
            "mam ls": lambda: run(mam("ls", "--workspace", str(stage.root)), stage.environ),
            "bridge": lambda: _start(stage),
            "list_agents": lambda: client.call("list_agents"),
            "get_agent_state": lambda: client.call("get_agent_state", agent_id=agent),
        }
        found = alternate(2 if quick else 30, acts)
    limit = None if quick else Budget("times", 8)
    yield Row("mam mcp, start to first answer", found["bridge"], PASS, found[PASS], limit)
    limit = None if quick else Budget("ms", 300)
    yield Row("initialize and tools/list, resident cold", introduced, PASS, found[PASS], limit)
    limit = None if quick else Budget("times", 1.3)
    yield Row("the same and a first tool call, resident cold", called, IMPORT, imported, limit)
    for tool in ("list_agents", "get_agent_state"):
        what = f"{tool}, {count} sessions"
        limit = None if quick else Budget("times", 1)
        yield Row(what, found[tool], f"mam ls, {count} sessions", found["mam ls"], limit)
    yield Row("an attached agent's bridge: MB", memory, "15 MB", Times((15.0,)), Budget("times", 1.2))
    yield Row("the list of tools: KB", Times((listed,)), "the original's", Times((_ORIGINAL,)))


def _cold_starts(stage: Stage, rounds: int) -> tuple[Times, Times, Times]:
    """Return the times of `import mcp`, of the first lists and of the first tool call without a resident."""
    found: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        began = time.perf_counter()
        run([PYTHON, "-c", "import mcp"], stage.environ)
        imported = time.perf_counter() - began
        _end_resident(stage)
        began = time.perf_counter()
        client = Client(stage)
        client.greet()
        client.ask("tools/list")
        introduced = time.perf_counter() - began
        client.call("list_agents")
        called = time.perf_counter() - began
        client.close()
        found.append((imported * 1000, introduced * 1000, called * 1000))
    imports, lists, calls = zip(*found, strict=True)
    return Times(imports), Times(lists), Times(calls)


def _start(stage: Stage) -> float:
    began = time.perf_counter()
    client = Client(stage)
    client.greet()
    seconds = time.perf_counter() - began
    client.close()
    return seconds


def _memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def _end_resident(stage: Stage) -> None:
    """End the resident that the first client had started, as a service manager does."""
    import os
    import signal

    lock = ProcessLock(str(Path(of_root(str(stage.root)).state) / "resident.lock"))
    holder = lock.holder()
    if holder is not None:
        os.kill(holder["pid"], signal.SIGTERM)
        until(lambda: lock.holder() is None, "the end of the resident")
