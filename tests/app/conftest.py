"""For the tests of verbs: residents in a thread or as a process, somebody at a broker, a person's window."""

import os
import subprocess
import sys
import threading

import pytest
from tests.app.over_broker import SECONDS
from tests.app.team_desk import Desk
from tests.app.watching import run_apart
from tests.mosquitto import PASSWORDS
from tests.waiting import wait_until

import mam
from mam.adapters.mqtt.connection import Connection
from mam.app.brokers import config as brokers
from mam.app.monitor import resident as residents
from mam.core import drift_detection as rules


@pytest.fixture
def hands_on(monkeypatch):
    """Nothing is fresh from somebody's hands: the tests need not wait for that."""
    monkeypatch.setattr(rules, "HANDS_OFF_SECONDS", -10.0)


@pytest.fixture
def watched(fleet, workspace, hands_on):
    """A resident in a thread of this process, and what it told."""
    fleet.init()
    told: list[dict] = []
    with mam.open(str(workspace)) as own:
        watching = residents.Resident(own._access.context, own.caller, told.append)
        read, write = os.pipe()
        thread = threading.Thread(target=run_apart, args=(watching, read))
        thread.start()
        yield told
        os.write(write, b"!")
        wait_until(lambda: not thread.is_alive(), "the end of the resident")
        for handle in (read, write):
            os.close(handle)


@pytest.fixture
def monitor(home, tmux_server, workspace):
    """Start `mam monitor` as a process; what still lives at the end is killed."""
    started = []

    def start(*words):
        running = subprocess.Popen(
            [sys.executable, "-m", "mam", "monitor", *words],
            cwd=workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(running)
        return running

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
        one.communicate()


@pytest.fixture
def desk(tmux_server, workspace):
    """A person's window in tmux."""
    return Desk(tmux_server, workspace)


@pytest.fixture
def master(desk):
    """A fleet that is called from that window."""
    with desk.fleet() as fleet:
        yield fleet


@pytest.fixture
def remote(mosquitto, workspace):
    """A connection of another machine that has the broker's password."""
    with mam.open(str(workspace)) as own:
        connection = Connection(
            brokers.find(own._access.context), PASSWORDS["mam"], role="test", listens=True
        )
    connection.open(SECONDS)
    yield connection
    connection.close()
