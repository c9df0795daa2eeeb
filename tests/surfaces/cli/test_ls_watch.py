"""A frame of `mam ls --watch` fits the screen: a line too many would scroll it at each repaint."""

from __future__ import annotations

import io
import os
from types import SimpleNamespace

import pytest

from mam.surfaces.cli import ls_watch, render_listing
from mam.surfaces.cli.style import Paint

HEIGHT = 12


@pytest.mark.parametrize("warnings", [0, 1, 3, 30])
@pytest.mark.parametrize("lines", [1, 8, 9, 10, 11, 100])
def test_a_frame_fits_the_screen_with_its_warnings(monkeypatch, lines, warnings):
    tell = []

    def ls(**_filters):
        for number in range(warnings):
            tell[0](f"problem {number}")
        return {}

    sessions = SimpleNamespace(ls=ls)
    fleet = SimpleNamespace(sessions=sessions, workspace="/", on_warning=tell.append)
    call = SimpleNamespace(fleet=fleet, paint=lambda: Paint(io.StringIO()))
    monkeypatch.setattr(render_listing, "show", lambda *_, **__: [f"session {n}" for n in range(lines)])
    monkeypatch.setattr(os, "get_terminal_size", lambda _handle: os.terminal_size((80, HEIGHT)))
    monkeypatch.setattr(ls_watch.sys, "stdout", SimpleNamespace(fileno=lambda: 1))
    frame = ls_watch._frame(call, {}, is_filtered=False).split("\n")
    assert len(frame) <= HEIGHT
    assert "session 0" in frame[0]
    assert "q quits" in frame[-1]
    assert any("warning: problem 0" in line for line in frame) == bool(warnings)
    shown = [line for line in frame if "session " in line]
    assert len(shown) == lines or any("more lines" in line for line in frame)
