"""Building the shim and running a sweep with it, for the gate and for the torture."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mam.adapters.tmux.client import Tmux

HERE = Path(__file__).parent


def build_shim(folder: Path) -> Path:
    """Compile the shim, or skip where that cannot be."""
    if sys.platform != "linux":
        pytest.skip("the crash shim is for Linux's loader")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler for the crash shim")
    library = folder / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "shim.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return library


def sweep(shim: Path, folder: Path, scenario: str, mode: str, step: int = 1) -> dict:
    """Run one sweep in a process of its own and return what it found."""
    server = f"mam-sweep-{os.getpid()}-{scenario}-{mode.lower()}"
    env = {**os.environ, "LD_PRELOAD": str(shim), "SWEEP_DIR": str(folder), "TMUX_SERVER_NAME": server}
    command = [sys.executable, str(HERE / "sweep.py"), scenario, mode, str(step)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)
    finally:
        Tmux(server).kill_server()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
