"""The real agent programs: what mam adds to their own boot, against a model on loopback.

A program that is not installed and cannot be is left out, and that is said.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from tests.conformance.desk import opened
from tests.conformance.install import Unavailable
from tests.conformance.program import PROGRAMS
from tests.conformance.stage import end_processes_of

from bench.measure import Budget, Row, alternate, until
from bench.stage import Stage
from mam.adapters.agents.kind import Request, Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.desk import Desk

_numbers = itertools.count(1)


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Start each kind bare and by `create`, in turns; both end when the same eyes see the same box."""
    for kind in list(PROGRAMS)[:1] if quick else PROGRAMS:
        try:
            yield from measure_kind(kind, quick, tell)
        except Unavailable as reason:
            tell(f"{kind} is left out: {reason}")


def measure_kind(kind: str, quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Return one row for one program."""
    with Stage() as stage, pytest.MonkeyPatch.context() as patch:
        stage.move_in(patch)
        home = stage.folder / "home"
        with opened(kind, home, stage.server, stage.root, patch) as desk:
            tell(f"starting {kind} bare and with mam")
            stage.keep_server()
            alone, with_mam = f"{kind} alone, until its box", f"mam create {kind}, until ready"
            found = alternate(
                1 if quick else 7,
                {alone: lambda: bare(stage, desk), with_mam: lambda: create(desk)},
            )
            stage.tmux.kill_server(timeout=60)
            end_processes_of(home)
    settles = desk.fleet._access.context.kind(kind).ready_settle_seconds * 1000
    yield Row(with_mam, found[with_mam], alone, found[alone], Budget("beyond", 150 + settles))


def bare(stage: Stage, desk: Desk) -> float:
    """Return the seconds until the program shows its box in a pane that mam knows nothing of."""
    kind = desk.fleet._access.context.kind(desk.kind)
    program = shutil.which(kind.program([desk.kind])) or desk.kind
    request = Request(
        command=[desk.kind, *desk.arguments()],
        program=program,
        environ=dict(os.environ),
        stores=kind.stores(os.environ),
        permissions=desk.program.permissions,
    )
    what = kind.launch(request)
    pane = f"bare-{next(_numbers)}"
    env = [word for key, value in {**os.environ, **what.env}.items() for word in ("-e", f"{key}={value}")]
    began = time.perf_counter()
    stage.ask_tmux(
        *("new-session", "-d", "-s", pane, "-x", "200", "-y", "50", "-c", str(desk.workspace), *env),
        *("--", *what.argv),
    )
    until(lambda: _shows_box(stage, desk, pane), f"the box of {desk.kind}")
    seconds = time.perf_counter() - began
    stage.ask_tmux("kill-session", "-t", f"={pane}")
    return seconds


def _shows_box(stage: Stage, desk: Desk, pane: str) -> bool:
    found = [one for one in desk.tmux.panes().panes if one.session_name == pane]
    if not found:
        return False
    seen = desk.tmux.look(found[0].id)
    look = desk.fleet._access.context.kind(desk.kind).read_screen(
        Screen(seen.screen, seen.cursor_x, seen.cursor_y)
    )
    return look.box is not None and not look.dialog


def create(desk: Desk) -> float:
    """Return the seconds of a create."""
    began = time.perf_counter()
    session = desk.create(f"bench-{next(_numbers)}")
    seconds = time.perf_counter() - began
    session.stop(force=True)
    return seconds
