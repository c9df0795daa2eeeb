"""Places and drivers for the practice agent: in a pseudo-terminal, and in a tmux server of our own."""

from __future__ import annotations

import os

import pytest
from tests.practice.drive import Panes, Runs, Store, tmux, wait_for
from tests.processes import is_running


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory):
    """Where started agents keep their bytecode, also when the run itself writes none."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def store(tmp_path, bytecode):
    """The data folder and the working folder of one test."""
    return Store(tmp_path, bytecode)


@pytest.fixture
def runs(store):
    """Agents in pseudo-terminals; those that still live at the end are killed."""
    with Runs(store) as started:
        yield started


@pytest.fixture(scope="session")
def server():
    """One private tmux server for all tests of this folder."""
    name = f"mam-test-practice-{os.getpid()}"
    # A session that stays: a server whose last session ends goes away while the next one is being made.
    tmux(name, "new-session", "-d", "exec cat")
    yield name
    pid = int(tmux(name, "display-message", "-p", "#{pid}"))
    tmux(name, "kill-server")
    wait_for(lambda: not is_running(pid), "the end of the tmux server")


@pytest.fixture
def panes(server, store):
    """Agents in tmux panes."""
    return Panes(server, store)


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The working folder of this very process, and the data folder below it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path
