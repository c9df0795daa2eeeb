"""The shim, compiled once, and a machine to break: both only where they can be."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import settle_in
from tests.faults.machine import Machine
from tests.faults.whole_app import WholeApp, WorkerServer
from tests.processes import end_processes_of

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """The library that counts calls and makes them fail."""
    if sys.platform != "linux":
        pytest.skip("faults are injected with LD_PRELOAD and glibc: Linux only")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("faults need a C compiler; ./dev setup installs one")
    sources = [Path(__file__).with_name(name) for name in ("shim.c", "power_loss.c")]
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, *sources, "-ldl"], check=True
    )
    return library


@pytest.fixture(scope="module")
def machine(shim):
    """A home, a tmux server and a root for the cases of one module."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="mam-t-", dir=memory if os.access(memory, os.W_OK) else None))
    name = f"mam-test-{os.getpid()}-f{next(_numbers)}"
    with pytest.MonkeyPatch.context() as patch:
        settle_in(place / "home", patch)
        patch.setenv("TMUX_SERVER_NAME", name)
        made = Machine(shim, place, name)
        yield made
        made.close()
        made.tmux.kill_server()
        assert made.tmux.server_pid() is None
        end_processes_of(place / "home")
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def whole_app(shim, machine):
    """Begin the state machine over the whole app with nothing; its root, home and tmux are the machine's."""
    server = WorkerServer(shim, machine.place)

    @contextmanager
    def begin():
        app = WholeApp(machine, server)
        try:
            yield app
        finally:
            app.close()

    yield begin
    server.close()
