"""Clients of a root with a resident of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.surfaces.mcp.client import Client

from mam.app.context import resident_start_and_lock

INSIDE = Path(__file__).with_name("client.py")


@pytest.fixture
def resident(home):
    """Residents are started on demand in this test."""
    config = home / ".config" / "mam" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('resident = "off"', ""), encoding="utf-8")


@pytest.fixture
def client(fleet, workspace, resident):
    """A client of a root that exists, introduced."""
    fleet.init()
    with Client(workspace) as opened:
        opened.greet()
        yield opened


@pytest.fixture
def holder(fleet):
    """Say which process is the resident now."""
    return lambda: (resident_start_and_lock.lock(fleet._access.context).holder() or {}).get("pid")


class Inside:
    """A session that has an MCP client of its own and does what it is told."""

    def __init__(self, fleet, folder, until, name, *, prefix=(), **options) -> None:
        self.orders, self.answers = folder / f"{name}.orders", folder / f"{name}.answers"
        self.until = until
        self.answers.touch()
        self.session = fleet.sessions.create(
            "env",
            name=name,
            args=[*prefix, sys.executable, "-P", str(INSIDE), str(self.orders), str(self.answers)],
            wait=False,
            **options,
        )
        self.id = self.session.id

    def call(self, tool, **arguments):
        before = len(self._said())
        with self.orders.open("a", encoding="utf-8") as file:
            file.write(json.dumps([tool, arguments]) + "\n")
        self.until(lambda: len(self._said()) > before, 60)
        return self._said()[-1]

    def _said(self):
        text = self.answers.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.fixture
def inside(fleet, resident, tmp_path, until):
    """Start a session that is a client: `inside(name)`."""
    return lambda name, **options: Inside(fleet, tmp_path, until, name, **options)
