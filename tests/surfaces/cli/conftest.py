"""Fixtures for the command line in this process, with a temporary home, tmux server and workspace."""

from __future__ import annotations

import pytest
from tests.surfaces.cli.calling import Answer, call
from tests.surfaces.cli.terminal import Terminal


@pytest.fixture
def run(home, tmux_server, workspace, monkeypatch, capsys):
    """Run a command in the workspace, and return its answer."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> Answer:
        return call(capsys, arguments)

    return run


@pytest.fixture
def terminal(home, tmux_server, workspace):
    """Start a command in a pseudo-terminal; a command that still runs at the end is killed."""
    started: list[Terminal] = []

    def start(*arguments: str, **options) -> Terminal:
        started.append(Terminal(arguments, workspace, **options))
        return started[-1]

    yield start
    for process in started:
        process.close()
