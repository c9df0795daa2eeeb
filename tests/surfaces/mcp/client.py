"""An MCP client by hand: it starts `mam mcp` as any client does and speaks lines of JSON.

Run as a program it does so inside a session, as an agent would: it reads calls from a file, one JSON object
per line, and writes each answer to another.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Client:
    """A client with its bridge."""

    def __init__(self, cwd, *command, env=None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mam", "mcp", *command],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.notes: list[dict] = []
        self._answers: dict[int, dict] = {}
        self._lines: queue.Queue = queue.Queue()
        self._last = 0
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def greet(self):
        answer = self.ask("initialize", **HELLO)
        self.tell("notifications/initialized")
        return answer

    def tell(self, method, **params) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method, **params) -> int:
        """Ask without waiting for the answer."""
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def finish(self, number, timeout: float = 60.0):
        """Wait for an answer."""
        deadline = time.monotonic() + timeout
        while number not in self._answers:
            message = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert message is not None, "the bridge ended"
            if "method" in message:
                self.notes.append(message)
            else:
                self._answers[message["id"]] = message
        return self._answers.pop(number)

    def ask(self, method, **params):
        return self.finish(self.begin(method, **params))

    def call(self, tool, **arguments):
        """Call a tool and return what it answers: a document, also for an error."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert result["isError"] == ("error" in result["structuredContent"])
        return result["structuredContent"]

    def _write(self, message) -> None:
        self.write_line(json.dumps(message))

    def write_line(self, line) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self) -> int:
        """Leave, as a client does; the bridge ends by itself."""
        self.process.stdin.close()
        try:
            return self.process.wait(15)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._listening.join()
            self.process.stdout.close()


def main(orders: str, answers: str) -> None:
    """Follow the orders as they come, until one says end."""
    result = 0
    with Client(Path.cwd()) as client, Path(answers).open("a", encoding="utf-8") as file:
        client.greet()
        while True:
            lines = Path(orders).read_text(encoding="utf-8").splitlines() if Path(orders).exists() else []
            for line in lines[result:]:
                result += 1
                tool, arguments = json.loads(line)
                file.write(json.dumps(client.call(tool, **arguments)) + "\n")
                file.flush()
            time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
