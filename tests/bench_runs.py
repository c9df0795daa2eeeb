"""Programs of the benchmarks with a temporary folder of their own, and nothing of them left afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder with a short name: a socket's path has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="mam-t-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def begin_module(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a module in the temporary folder, which must be empty at the end."""

    def begin(module: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    yield begin
    # An agent whose pane was closed takes a moment to leave.
    wait_until(lambda: not users_of(folder), lambda: f"the end of {users_of(folder)}")
    assert not list(folder.iterdir())
    if sys.platform == "linux":
        assert str(folder) not in Path("/proc/self/mounts").read_text(encoding="utf-8")


def users_of(folder: Path, variable: str = "") -> list[int]:
    """Return the processes that have this folder in their environment, or in this variable of it."""
    wanted, found = f"{variable}={folder}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
