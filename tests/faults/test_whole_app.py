"""Any sequence of verbs, deaths, clocks and edits; tests/torture/test_whole_app.py has more of them."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from tests.faults.app_model import RUNNING, Model, Session
from tests.faults.machine import REPOSITORY
from tests.faults.whole_app import WholeApp, try_sequences
from tests.processes import is_running
from tests.waiting import wait_until

EXAMPLES, STEPS = 20, 40


@pytest.mark.slow
@pytest.mark.promise("P1")
@pytest.mark.promise("P2")
@pytest.mark.promise("P33")
@pytest.mark.promise("P34")
def test_any_verbs_deaths_and_clocks(whole_app) -> None:
    try_sequences(whole_app, EXAMPLES, STEPS)


@pytest.mark.parametrize("how", ["agent", "pane"])
def test_an_agent_that_ends_by_itself_can_be_picked(how) -> None:
    """The launcher of a launch that was withdrawn is in one listing, and neither running nor in the next."""
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    pane = SimpleNamespace(id="%1", pid=ended.pid, mark="s_00000001", dead=False)
    listings = iter([[pane]])
    tmux = SimpleNamespace(
        panes=lambda: SimpleNamespace(panes=next(listings, [])), kill_pane=lambda *_words, **_options: False
    )
    model = Model({"k1": Session("one", id=pane.mark)})
    app = WholeApp.__new__(WholeApp)
    app.machine, app.worlds = SimpleNamespace(tmux=tmux), [model]
    WholeApp.kill.__wrapped__(app, 0, how)
    session = model.sessions["k1"]
    assert (session.status, session.alive) == (RUNNING, False)


_STARTER = """
import sys
from tests.faults.machine import REPOSITORY
from pathlib import Path
from tests.faults.whole_app import WorkerServer
server = WorkerServer(Path(sys.argv[1]), Path(sys.argv[2]))
connection = server.connect()
print(server.process.pid, connection.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.starts
def test_the_server_and_its_workers_end_with_whoever_started_them(shim, home, quick_path) -> None:
    command = [sys.executable, "-c", _STARTER, str(shim), str(quick_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        starter.kill()
    wait_until(lambda: not any(map(is_running, pids)), lambda: f"the end of {pids}")
