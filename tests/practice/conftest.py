"""Places and drivers for the practice agent: in a pseudo-terminal, and in a tmux server of our own."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.practice.drive import Panes, Runs, Store


@pytest.fixture
def store(tmp_path):
    """The data folder and the working folder of one test."""
    return Store(tmp_path)


@pytest.fixture
def runs(store):
    """Agents in pseudo-terminals; those that still live at the end are killed."""
    with Runs(store) as started:
        yield started


@pytest.fixture(scope="session")
def server():
    """One private tmux server for all tests of this folder."""
    name = f"mam-test-practice-{os.getpid()}"
    yield name
    subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def panes(server, store):
    """Agents in tmux panes."""
    return Panes(server, store)
