"""Runs hooks: shell commands that get the agent's events on standard input, one after the other.

The agent never waits for a hook while it runs. Hooks run in order, so that a listener gets a prompt before
its end. A hook that hangs is killed after its time limit.
"""

from __future__ import annotations

import os
import signal
import time
from select import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

LIMIT_SECONDS = 5.0


class Hooks:
    """A queue of hook runs; the first of them is running."""

    def __init__(self, commands: dict[str, str]) -> None:
        self._commands = commands
        self._waiting: list[tuple[str, bytes]] = []
        self._running: Popen[bytes] | None = None
        self._unsent = b""
        self._until = 0.0

    def fire(self, event: str, payload: dict[str, object]) -> None:
        """Queue an event; ignore it if no hook is set for it."""
        command = self._commands.get(event)
        if not command:
            return
        import json

        self._waiting.append((command, json.dumps(payload).encode() + b"\n"))
        self.advance()

    def advance(self) -> None:
        """Write to, reap or kill the running hook, and start the next one; never block."""
        self._feed()
        running = self._running
        if running and (running.poll() is not None or time.monotonic() >= self._until):
            self._end()
        while not self._running and self._waiting:
            self._start(*self._waiting.pop(0))

    def deadline(self) -> float | None:
        """Return when `advance` is due even if nothing else happens."""
        return self._until if self._running else None

    def pipe(self) -> list[int]:
        """Return the pipe that waits to be written, for select."""
        stdin = self._running.stdin if self._running and self._unsent else None
        return [stdin.fileno()] if stdin else []

    def finish(self) -> None:
        """Wait for all hooks within the limit; after it, run only the hook of the last event."""
        if self._wait_for_all():
            return
        del self._waiting[:-1]
        self._until = 0.0
        self._wait_for_all()
        self._end()

    def _wait_for_all(self) -> bool:
        until = time.monotonic() + LIMIT_SECONDS
        pause = 0.002
        while self._running or self._waiting:
            self.advance()
            if time.monotonic() >= until:
                return False
            if self._running:
                select([], self.pipe(), [], pause)
                pause = min(pause * 1.5, 0.01)
        return True

    def _start(self, command: str, payload: bytes) -> None:
        # Imported late: it takes a third of the start, and by now the input box is on the screen.
        from subprocess import DEVNULL, PIPE, Popen

        try:
            # A process group of its own: a signal to the agent's terminal must not end the hook that
            # reports the agent's end.
            running = Popen(
                ["/bin/sh", "-c", command],
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                bufsize=0,
                process_group=0,
            )
        except (OSError, ValueError):
            return
        if running.stdin:
            os.set_blocking(running.stdin.fileno(), False)
        self._running, self._unsent = running, payload
        self._until = time.monotonic() + LIMIT_SECONDS
        self._feed()

    def _feed(self) -> None:
        """Write what the pipe takes; a hook that does not read its input is no error."""
        stdin = self._running.stdin if self._running else None
        if not stdin or not self._unsent:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""
        stdin.close()

    def _end(self) -> None:
        """Finish the running hook; kill it with its children if it still runs."""
        running = self._running
        if not running:
            return
        if running.poll() is None:
            try:
                os.killpg(running.pid, signal.SIGKILL)
            except OSError:
                running.kill()
            running.wait()
        if running.stdin:
            running.stdin.close()
        self._running, self._unsent = None, b""
