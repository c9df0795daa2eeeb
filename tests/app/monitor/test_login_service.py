"""The unit of a root: where it lies, that strange paths survive it, and what is said without systemd."""

import os
import shlex
import sys
from pathlib import Path

import pytest

import mam
from mam.app.monitor import login_service

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="systemd units are of Linux")


@pytest.fixture
def systemctl(tmp_path, monkeypatch):
    """A stand-in for systemctl that writes down what it was asked."""
    log = tmp_path / "asked"
    script = tmp_path / "bin" / "systemctl"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$*" >> {log}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    return log


def test_it_is_written_started_and_removed(home, workspace, systemctl) -> None:
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        report = fleet.monitor.install()
        unit = Path(report["unit"])
        assert unit.parent == home / ".config" / "systemd" / "user"
        assert report["notes"] == []
        text = unit.read_text(encoding="utf-8")
        assert "KillMode=process" in text
        assert f'"--workspace" "{workspace}"' in text
        assert '"--resident"' not in text
        again = fleet.monitor.uninstall()
        assert again["changed"]
        assert not unit.exists()
        assert fleet.monitor.uninstall()["changed"] is False
    calls = systemctl.read_text(encoding="utf-8").splitlines()
    assert calls == [
        "--user daemon-reload",
        f"--user enable --now {unit.name}",
        f"--user disable --now {unit.name}",
    ]


def test_it_looks_where_its_installer_looks(home, workspace, systemctl, monkeypatch, tmp_path) -> None:
    """A service has no environment of a shell's: it would ask another tmux server, and miss ours."""
    monkeypatch.setenv("TMUX_TMPDIR", f"{tmp_path}/100% $HOME")
    monkeypatch.setenv("TMUX_SERVER_NAME", "mine")
    monkeypatch.setenv("MAM_BROKER_PASSWORD", "secret")
    with mam.open(str(workspace)) as fleet:
        text = login_service.unit(fleet._access.context)[1]
    variables = [line.partition("=")[2] for line in text.splitlines() if line.startswith("Environment=")]
    assert f'"TMUX_TMPDIR={tmp_path}/100%% $HOME"' in variables
    assert '"TMUX_SERVER_NAME=mine"' in variables
    assert f'"PATH={os.environ["PATH"]}"' in variables
    assert "secret" not in variables


def test_two_roots_of_one_name_have_two_units(home, tmp_path) -> None:
    units = set()
    for parent in ("a", "b"):
        root = tmp_path / parent / "app"
        root.mkdir(parents=True)
        with mam.open(str(root)) as fleet:
            units.add(login_service.unit(fleet._access.context)[0])
    assert len(units) == 2


def test_words_survive_the_quoting() -> None:
    word = 'a "b" \\ $HOME %h é\n'
    quoted = login_service._quoted(word)
    assert quoted == '"a \\"b\\" \\\\ $$HOME %%h é\\x0a"'
    assert shlex.split(login_service._quoted("a b")) == ["a b"]


def test_without_systemd_it_says_what_to_do(home, workspace, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with mam.open(str(workspace)) as fleet:
        notes = fleet.monitor.install()["notes"]
    assert notes[0] == "systemctl is not on PATH; run it yourself: systemctl --user daemon-reload"
