"""The command line in this process, with a home, a tmux server and a workspace of its own."""

from __future__ import annotations

import pytest
from tests.surfaces.cli.calling import Said, call
from tests.surfaces.cli.terminal import Terminal


@pytest.fixture
def run(home, tmux_server, workspace, monkeypatch, capsys):
    """Run a command in the workspace and return what it said."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> Said:
        return call(capsys, words)

    return run


@pytest.fixture
def terminal(home, tmux_server, workspace):
    """Start a command in a pseudo-terminal; what still lives at the end is killed."""
    started: list[Terminal] = []

    def start(*words: str, **options) -> Terminal:
        started.append(Terminal(words, workspace, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()
