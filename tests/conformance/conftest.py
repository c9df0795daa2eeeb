"""A private tmux server for the real programs of one test, and a desk for one kind of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.desk import Desk, opened
from tests.conformance.install import Unavailable
from tests.conformance.program import PROGRAMS
from tests.conformance.terminal import Terminals
from tests.conftest import settle_in
from tests.processes import end_processes_of

from mam.adapters.tmux.client import Tmux


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what takes long with a program that is slow to start or to give up to `./dev test --all`."""
    for item in items:
        given = getattr(item, "callspec", None)
        program = PROGRAMS.get(given.params.get("kind", "")) if given is not None else None
        if program is not None and getattr(item, "originalname", "") in program.long:
            item.add_marker("long")


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    with Terminals(f"mam-conf-{os.getpid()}", tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_desk(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One desk for the scenarios of a kind: most of them go on in one session, for a start takes seconds."""
    place = tmp_path_factory.mktemp(kind)
    home, workspace, server = place / "home", place / "demo" / "app", f"mam-test-{os.getpid()}-{kind}"
    workspace.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        settle_in(home, patch)
        patch.setenv("TMUX_SERVER_NAME", server)
        try:
            with opened(kind, home, server, workspace, patch) as desk:
                yield desk
        except Unavailable as reason:
            pytest.skip(str(reason))
        finally:
            end_processes_of(home)
            Tmux(server).kill_server()


@pytest.fixture
def fresh_desk(kind, home, tmux_server, workspace, monkeypatch) -> Iterator[Desk]:
    """A desk of this test alone."""
    try:
        with opened(kind, home, tmux_server, workspace, monkeypatch) as desk:
            yield desk
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def shared(shared_desk: Desk, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """The shared desk; where a scenario fails, the next one gets another session."""
    failed = request.session.testsfailed
    yield shared_desk
    if request.session.testsfailed > failed:
        shared_desk.discard()
