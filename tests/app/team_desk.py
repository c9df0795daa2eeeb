"""A person's tmux window for the tests of teams, and a fleet that is called from a pane of it."""

from __future__ import annotations

import os
import subprocess

import mam
from mam.adapters.tmux.client import Tmux, clean_environment
from mam.core import caller as callers
from mam.core.errors import NoTranscript

QUICK = ["--speed", "0"]


class Desk:
    """A tmux session with one pane in which a person sits."""

    def __init__(self, server: str, workspace, width: int = 200, height: int = 60) -> None:
        self.server = server
        self.workspace = workspace
        self.raw("new-session", "-d", "-s", "desk", "-x", str(width), "-y", str(height), "cat")
        shown = self.raw("display-message", "-p", "-t", "=desk:", "#{pane_id} #{window_id} #{pid}")
        self.pane, self.window, self.pid = shown.split()
        self.tmux = Tmux(server)

    def raw(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.server, *words],
            env=clean_environment(os.environ),
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            check=True,
        )
        return done.stdout.strip()

    def environ(self, pane: str | None = None) -> dict[str, str]:
        """Return the environment of a command that is typed into a pane of this server."""
        socket = self.tmux.socket_path()
        return {**os.environ, "TMUX": f"{socket},{self.pid},0", "TMUX_PANE": pane or self.pane}

    def fleet(self, pane: str | None = None, *, session: str | None = None) -> mam.Fleet:
        """Open the fleet as from that pane, in which this session runs."""
        opened = mam.open(str(self.workspace), environ=self.environ(pane))
        if session is not None:
            # The process of the tests does not run in the pane, and would count as unknown.
            opened._access._caller = callers.session(session, os.getpid())
        return opened

    def panes(self) -> list[str]:
        """Return the panes of the window in their order."""
        return self.raw("list-panes", "-t", self.window, "-F", "#{pane_id}").splitlines()

    def place(self, pane: str) -> tuple[int, int]:
        """Return where a pane stands."""
        left, top = self.raw("display-message", "-p", "-t", pane, "#{pane_left} #{pane_top}").split()
        return int(left), int(top)

    def option(self, pane: str, name: str) -> str:
        """Return an option of a pane."""
        return self.raw("show-options", "-p", "-v", "-q", "-t", pane, name)


def said(fleet, name: str) -> list[str]:
    """Return what the agent's own record holds of the user."""
    try:
        found = fleet.sessions.transcript(name, turns=1000)["turns"]
    except NoTranscript:
        return []
    return [turn["text"] for turn in found if turn["role"] == "user"]
