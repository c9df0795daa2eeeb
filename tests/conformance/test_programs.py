"""Each real program starts against the model server, answers a turn, and leaves."""

from __future__ import annotations

import os

import pytest
from tests.conformance import install
from tests.conformance.install import Unavailable, installed
from tests.conformance.kinds import with_long
from tests.conformance.program import PROGRAMS
from tests.conformance.stage import stage
from tests.processes import processes_of


def need(kind):
    try:
        return installed(kind)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.parametrize("kind", with_long("bare"))
def test_answers_a_turn_and_leaves(kind, terminals):
    need(kind)
    with stage(kind, terminals) as one:
        one.ready()
        assert not one.model.turns(), "a turn that nobody asked for"
        one.ask("remember the word xylophone")
        one.pane.wait_for("pong 1: remember the word xylophone")
        assert len(one.model.saw("remember the word xylophone")) == 1
        assert one.leave() == 0
        home = one.home
    assert not processes_of(home)


class TestInstall:
    @pytest.fixture
    def nowhere(self, tmp_path, monkeypatch):
        """An empty cache, and a PATH without npm."""
        monkeypatch.setattr(install, "_ENVIRONMENT", {"MAM_DEV_CACHE": str(tmp_path), "PATH": str(tmp_path)})
        return tmp_path

    def test_without_npm_says_so(self, nowhere):
        with pytest.raises(Unavailable, match="no npm"):
            installed("claude")

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("echo first trouble >&2; exit 7", "failed: first trouble"),
            ("sleep 60", "outlasted its deadline"),
            (
                'mkdir -p "$3/node_modules/@openai/codex"\n'
                'echo \'{"version": "0.1"}\' >"$3/node_modules/@openai/codex/package.json"',
                "0.1 instead of",
            ),
        ],
    )
    def test_an_install_that_fails_says_why_and_is_not_taken_for_done(
        self, nowhere, monkeypatch, script, reason
    ):
        monkeypatch.setitem(install.DEADLINES, "npm", 1.0)
        monkeypatch.setitem(install._ENVIRONMENT, "PATH", f"{nowhere}:/usr/bin:/bin")
        npm = nowhere / "npm"
        npm.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        npm.chmod(0o755)
        for _ in range(2):
            with pytest.raises(Unavailable, match=reason):
                installed("codex")

    def test_an_installed_program_needs_no_npm(self, nowhere):
        place = nowhere / "agents" / f"gemini-{PROGRAMS['gemini'].install.version}"
        place.mkdir(parents=True)
        (place / ".installed").touch()
        assert installed("gemini") == place / "node_modules" / ".bin" / "gemini"

    @pytest.mark.slow
    @pytest.mark.long
    def test_pip_is_heard_as_well(self, tmp_path, monkeypatch):
        offline = {"MAM_DEV_CACHE": str(tmp_path), "PATH": os.environ["PATH"], "PIP_NO_INDEX": "1"}
        monkeypatch.setattr(install, "_ENVIRONMENT", offline)
        with pytest.raises(Unavailable, match="No matching distribution"):
            installed("hermes")
        assert not list(tmp_path.rglob(".installed"))
