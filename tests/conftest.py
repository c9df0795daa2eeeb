"""What every test stands on: nothing of the person who runs the tests is within reach.

For the whole run HOME, the XDG folders and the folder of tmux's sockets lie in a temporary place, and
no variable of a surrounding agent or tmux is left: even the server `default` is one of the run's own.
A test that starts something asks for `fleet` (or `home` and `tmux_server`) and gets its own.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.mosquitto import Mosquitto
from tests.processes import end_processes_of
from tests.unit import (  # noqa: F401  (hooks)
    pytest_collection_modifyitems,
    pytest_runtest_call,
    pytest_runtest_setup,
)
from tests.waiting import SECONDS, wait_until

import mam
from mam.adapters.store import user_state
from mam.adapters.store.root_paths import find_root
from mam.adapters.system.private_socket import remove_dead_sockets
from mam.adapters.tmux.client import Tmux

_numbers = itertools.count(1)
# No test fails because the machine is busy. The gate tries the same examples on every run and machine, so
# that it is red or green for everybody. The deep profile looks for others: --hypothesis-profile deep
settings.register_profile("gate", deadline=None, derandomize=True, database=None)
settings.register_profile("deep", deadline=None, database=None, max_examples=5000, print_blob=True)
settings.load_profile("gate")
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
_FOREIGN = (
    "MAM_",
    "TMUX",
    "AGENT_SESSIONS_YAML",
    "DELEGATE_",
    "BMAD_",
    "CLAUDE",
    "CODEX",
    "GEMINI",
    "OPENCODE",
    "HERMES",
    # Programs that find themselves in one of these paint nothing.
    "CI_",
    "CONTINUOUS_INTEGRATION",
)
_ALSO_FOREIGN = ("CI",)


def pytest_configure() -> None:
    """Told to end, a run cleans up what it started; begun in the background, it hears Ctrl-C as well."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Leave out what collection makes from every search for garbage: it stays until the run ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def settle_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Make `home` the home of this process and of what it starts."""
    patch.setenv("HOME", str(home))
    for variable, folder in _XDG.items():
        (home / folder).mkdir(parents=True, exist_ok=True)
        patch.setenv(variable, str(home / folder))
    # The user state lies in the home of the password database, unless this names another place.
    patch.setenv("MAM_STATE_HOME", str(home / ".local" / "state" / "mam"))
    # A test that wants a resident says so.
    (home / ".config" / "mam").mkdir(exist_ok=True)
    (home / ".config" / "mam" / "config.toml").write_text('resident = "off"\n', encoding="utf-8")


def _refuse_home(environ: object) -> str:
    raise AssertionError("this test would use the user state of the person who runs it: set MAM_STATE_HOME")


@pytest.fixture(autouse=True, scope="session")
def _apart():
    """Keep the whole run away from the user's home and tmux, and see that no server is left behind."""
    # Not below pytest's own folder: a socket's path has at most 107 bytes.
    place = Path(os.path.realpath(tempfile.mkdtemp(prefix="mam-t-")))
    root = find_root(str(place))
    assert root == str(place), (
        f"{root} holds a registry, and every test below it would use that: move it away"
    )
    with pytest.MonkeyPatch.context() as patch:
        for variable in list(os.environ):
            if variable.startswith(_FOREIGN) or variable in _ALSO_FOREIGN:
                patch.delenv(variable)
        settle_in(place / "home", patch)
        patch.setattr(user_state, "_home", _refuse_home)
        sockets = place / "sockets"
        sockets.mkdir(mode=0o700)
        patch.setenv("TMUX_TMPDIR", str(sockets))
        yield
        left = [str(path) for path in sockets.glob("*/*") if Tmux(str(path)).server_pid() is not None]
        for path in left:
            Tmux(path).kill_server()
    # Residents that tests have killed leave their sockets, which lie outside of any home.
    remove_dead_sockets(f"/tmp/mam-{os.geteuid()}", older_than=0.0)
    shutil.rmtree(place, ignore_errors=True)
    assert not left, f"tests left tmux servers running: {left}"


@pytest.fixture
def quick_path(tmp_path):
    """A folder in memory where there is one: what is written there survives a process, and syncs at once."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    place = Path(tempfile.mkdtemp(prefix="mam-t-", dir=memory))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of this test alone; whatever process still has it at the end is ended."""
    place = tmp_path / "home"
    settle_in(place, monkeypatch)
    yield place
    end_processes_of(place)


@pytest.fixture
def tmux_server(home, monkeypatch):
    """The name of a tmux server of this test alone, also in TMUX_SERVER_NAME; proven gone afterwards."""
    name = f"mam-test-{os.getpid()}-{next(_numbers)}"
    monkeypatch.setenv("TMUX_SERVER_NAME", name)
    yield name
    server = Tmux(name)
    pid = server.server_pid()
    if pid is not None:
        # A test may have stopped it on purpose.
        os.kill(pid, signal.SIGCONT)
    server.kill_server()
    assert server.server_pid() is None


@pytest.fixture
def workspace(tmp_path):
    """An empty directory to work in: the root of the fleet."""
    place = tmp_path / "demo" / "app"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def fleet(home, tmux_server, workspace):
    """A fleet with a home, a tmux server and a workspace of its own."""
    with mam.open(str(workspace)) as opened:
        yield opened


@pytest.fixture
def initialised_fleet(quick_path, home):
    """A fleet with a home, in a root in memory that has a registry; for tests that start no agent."""
    with mam.open(str(quick_path)) as opened:
        opened.init()
        yield opened


@pytest.fixture
def mosquitto(tmp_path, monkeypatch):
    """A broker of this test, and an environment that names it."""
    broker = Mosquitto(tmp_path / "broker").start()
    monkeypatch.setenv("MAM_BROKER", broker.url())
    monkeypatch.setenv("MAM_BROKER_PASSWORD_FILE", str(broker.password_file("mam")))
    yield broker
    broker.stop()


@pytest.fixture
def until():
    """Wait for a condition under a deadline, and return its value."""
    return lambda condition, timeout=SECONDS: wait_until(condition, seconds=timeout)


@pytest.fixture
def until_reported():
    """Wait until an event is the newest that the hooks of a session's agent reported.

    A hook is a process of its own: it may report what the screen has shown for a while.
    """

    def newest_event(session) -> str | None:
        details = {item["source"]: item["detail"] for item in session.explain()["evidence"]}
        return details.get("hook")

    return lambda session, event: wait_until(lambda: newest_event(session) == event, f"the hook {event}")
