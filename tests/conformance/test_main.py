"""`./dev conformance` tries the version that it is given, and says when nothing was tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance import desk

pytestmark = pytest.mark.starts

ROOT = Path(__file__).resolve().parents[2]


def test_a_version_that_cannot_be_had(tmp_path) -> None:
    """Each scenario asks for that very version, in spite of all that is taken away from a test."""
    (tmp_path / "tmux").symlink_to(shutil.which("tmux") or "")
    # There is no npm to install it with.
    environment = {**os.environ, "PATH": str(tmp_path), "MAM_DEV_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance", "codex", "0.0.1"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    title, *rows, last = done.stdout.splitlines()
    assert title == "codex 0.0.1"
    turn = next(row for row in rows if row.startswith("turn "))
    assert "skipped" in turn and "codex 0.0.1 is not installed" in turn, turn
    assert not any(" FAILED " in row for row in rows), done.stdout
    assert (last.partition(" of ")[0], done.returncode) == ("0", 1)


@pytest.mark.parametrize("kind", ["claude", "hermes"])
def test_the_version_under_test_is_installed_and_vouched_for(kind, home, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(desk, "installed", lambda kind, version: asked.append((kind, version)))
    config = home / ".config" / "mam" / "config.toml"
    monkeypatch.delenv(desk.VERSION, raising=False)
    desk.vouch(home, kind)
    assert "known_versions" not in config.read_text(encoding="utf-8")
    for version in (desk.VERSIONS[kind], "1.2.3"):
        desk.executable_of(kind)
        assert asked.pop() == (kind, version)
        monkeypatch.setenv(desk.VERSION, "1.2.3")
    desk.vouch(home, kind)
    assert f'known_versions = ["{kind} 1.2.3"]' in config.read_text(encoding="utf-8")
