"""The processes that use a root: started, killed, replaced, and asked to pause."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import until

if TYPE_CHECKING:
    from bench.stage import Stage

# A call may wait for a tmux server that hangs, and for the writers before it.
_PAUSE_SECONDS = 180.0
_REPOSITORY = Path(__file__).resolve().parents[2]


class Clients:
    """So many clients; each has a name for as long as the soak lasts, and a process at a time."""

    def __init__(self, stage: Stage, folder: Path, count: int, seed: int) -> None:
        self.stage, self.folder, self.seed = stage, folder, seed
        self.names = [f"c{number}" for number in range(count)]
        self.failed: list[str] = []
        self._runs = dict.fromkeys(self.names, 0)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start one process for each name."""
        for name in self.names:
            self._start(name)

    def _start(self, name: str, clock: float = 0.0) -> None:
        self._runs[name] += 1
        words = (
            str(self.stage.root),
            str(self.folder),
            name,
            str(self._runs[name]),
            str(self.seed),
            str(clock),
        )
        with (self.folder / f"{name}.err").open("ab") as errors:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "bench.soak.client", *words],
                cwd=_REPOSITORY,
                env=self.stage.environ,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )

    def kill(self, name: str, *, clock: float = 0.0) -> str:
        """Kill the process of a client at once, and start the next."""
        process = self._processes[name]
        if process.poll() is not None:
            self.failed.append(f"{name} ended by itself with {process.returncode}: {self._errors(name)}")
        process.kill()
        process.wait()
        self._start(name, clock)
        return name

    def _errors(self, name: str) -> str:
        return (self.folder / f"{name}.err").read_text(encoding="utf-8", errors="replace")[-2000:]

    def pause(self) -> None:
        """Have every client finish its call, and wait for that."""
        (self.folder / "pause").touch()
        for name in self.names:
            (self.folder / f"{name}.paused").unlink(missing_ok=True)
        until(self._are_paused, "clients that pause", seconds=_PAUSE_SECONDS)

    def _are_paused(self) -> bool:
        time.sleep(0.02)
        for name, process in self._processes.items():
            if process.poll() is not None:
                self.kill(name)
        return all((self.folder / f"{name}.paused").exists() for name in self.names)

    def go_on(self) -> None:
        """Let them go on."""
        (self.folder / "pause").unlink()

    def stop(self) -> None:
        """End them all."""
        for process in self._processes.values():
            process.kill()
            process.wait()
