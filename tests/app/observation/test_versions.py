"""The version of the program: read at launch, recorded and shown; and what mam refuses an untested one."""

import json
import os
import sys
from pathlib import Path

import pytest

import mam
from mam.adapters.agents import catalogue
from mam.adapters.agents.practice import Practice
from mam.adapters.system import process
from mam.adapters.system.concurrent_program import Running
from mam.adapters.system.program_lookup import package_version, parse_version, which
from mam.adapters.tmux.client import Tmux
from mam.core.errors import DialogOpen, UntestedVersion

QUICK = ["--speed", "0"]


class Dated(Practice):
    """A practice agent whose version matters."""

    known_versions = ("1.2.3",)
    packages = ("@dated/agent",)


class Mute(Dated):
    """A practice agent whose only evidence is the screen."""

    has_hooks = False

    def read_transcript_evidence(self, *args):
        return []


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """A folder at the head of PATH, in which `practice-agent` can be put."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def use(monkeypatch, kind, folder, version):
    """Make `practice` that kind, run by a script that names a version and becomes the real one."""
    script = folder / "practice-agent"
    answer = f'[ "$1" = --version ] && {{ echo "agent {version} (x)"; exit; }}'
    script.write_text(f'#!/bin/sh\n{answer}\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(kind, "program", lambda self, command: str(script))
    monkeypatch.setitem(catalogue._loaded, "practice", kind())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.325 (Claude Code)", "2.1.325"),
        ("codex-cli 0.166.0\n", "0.166.0"),
        ("Hermes Agent v0.9.1-rc.2", "0.9.1-rc.2"),
        ("1.18.33", "1.18.33"),
        ("no number", None),
        ("", None),
    ],
)
def test_what_programs_print(text, version) -> None:
    assert parse_version(text) == version


def test_the_package_beside_a_program(tmp_path) -> None:
    package = tmp_path / "lib" / "node_modules" / "@dated" / "agent"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "agent.js").write_text("")
    (package / "package.json").write_text(json.dumps({"name": "@dated/agent", "version": "1.2.3"}))
    (tmp_path / "agent").symlink_to(package / "bin" / "agent.js")
    program = str(tmp_path / "agent")
    assert package_version(program, Dated.packages) == "1.2.3"
    assert package_version(program, ("another",)) is None
    assert package_version(program, ()) is None
    for damaged in ("[" * 100_000, '{"name": ["@dated/agent"], "version": "1.2.3"}', '{"name": {}}'):
        (package / "package.json").write_text(damaged)
        assert package_version(program, Dated.packages) is None


def test_a_program_that_does_not_end_or_start(tmp_path) -> None:
    silent = Running([which("sleep", "/bin:/usr/bin") or "", "600"], {})
    assert silent.finish(0.05).status is None
    assert Running([str(tmp_path / "gone")], {}).finish(1).output == "No such file or directory"


def test_it_is_read_kept_and_shown(fleet, monkeypatch, bin_folder) -> None:
    use(monkeypatch, Dated, bin_folder, "1.2.3")
    session = fleet.sessions.create("practice", args=QUICK)
    assert session.row["pane"]["version"] == "1.2.3"
    assert "version: 1.2.3" in Path(fleet.registry_file).read_text(encoding="utf-8")
    assert (session.status()["agent_version"], session.status()["version_tested"]) == ("1.2.3", True)
    use(monkeypatch, Dated, bin_folder, "1.3.0")
    session.stop()
    assert session.resume().row["pane"]["version"] == "1.3.0"
    assert session.status()["version_tested"] is False
    (finding,) = [item for item in fleet.monitor.doctor() if item["check"] == "version practice"]
    assert finding["ok"] is None
    assert "1.3.0" in finding["message"]
    assert 'known_versions = ["practice 1.3.0"]' in finding["mend"]


def test_a_hook_is_enough_for_an_untested_version(fleet, monkeypatch, bin_folder) -> None:
    use(monkeypatch, Dated, bin_folder, "9.9.9")
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    assert session.transcript()["turns"][0]["text"] == "hello"
    session.wait("idle", timeout=10)
    assert session.stop().row["termination_mode"] == "graceful"
    assert session.row["status"] == "running"


@pytest.mark.parametrize(("version", "state"), [("1.2.3", "submitted"), ("9.9.9", "held")])
def test_a_suggestion_of_an_untested_version_may_be_a_draft(
    fleet, monkeypatch, bin_folder, version, state
) -> None:
    use(monkeypatch, Dated, bin_folder, version)
    session = fleet.sessions.create("practice", args=[*QUICK, "--suggestion", 'Try "fix the tests"'])
    assert 'Try "fix the tests"' in session.read()
    receipt = session.send("hello", timeout=2)
    assert receipt["state"] == state, receipt
    typed = []
    with monkeypatch.context() as patch:
        if state == "held":
            assert "version" in receipt["reason"]
            patch.setattr(Tmux, "paste", lambda *args, **more: typed.append(args))
        assert session.stop().row["status"] == "stopped"
    assert not typed


def test_the_screen_alone_is_not_enough_for_an_untested_version(
    fleet, monkeypatch, bin_folder, workspace, home
) -> None:
    use(monkeypatch, Mute, bin_folder, "9.9.9")
    with pytest.raises(UntestedVersion, match=r"practice 9\.9\.9") as refused:
        fleet.sessions.create("practice", name="mute", args=QUICK, prompt="hello")
    assert "known_versions" in (refused.value.hint or "")
    session = fleet.sessions.get("mute")
    assert "hello" not in session.read()
    typed = []
    with monkeypatch.context() as patch:
        patch.setattr(Tmux, "paste", lambda *args, **more: typed.append(args))
        assert session.stop().row["status"] == "stopped"
    assert not typed, "the exit word was typed although only the screen showed idle"

    config = home / ".config" / "mam" / "config.toml"
    config.write_text('resident = "off"\nknown_versions = ["practice 9.9.9"]\n', encoding="utf-8")
    with mam.open(str(workspace)) as again:
        session = again.sessions.create("practice", name="confirmed", args=QUICK, prompt="hello")
        assert session.status()["version_tested"] is True


def test_a_dialog_of_an_untested_version_is_not_answered(fleet, monkeypatch, bin_folder) -> None:
    use(monkeypatch, Dated, bin_folder, "9.9.9")
    with pytest.raises(DialogOpen, match="trust") as refused:
        fleet.sessions.create("practice", name="asks", args=[*QUICK, "--trust-dialog"], trust=True)
    assert "not tested with this version" in (refused.value.hint or "")


def test_a_program_that_prints_without_end_or_leaves_children(tmp_path, until) -> None:
    endless = Running([which("yes", "/bin:/usr/bin") or "", "1.2.3"], {})
    assert endless.finish(20).status is None
    script = tmp_path / "parent"
    script.write_text(f"#!/bin/sh\nsleep 4321 & echo $! > {tmp_path}/child\nsleep 4321\n")
    script.chmod(0o755)
    parent = Running([str(script)], {"PATH": "/bin:/usr/bin"})
    child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip()))
    assert parent.finish(0.05).status is None
    until(lambda: process.identify(child) is None)


def test_what_lies_beside_a_program_is_read_only_if_it_is_a_plain_file(tmp_path) -> None:
    program = tmp_path / "agent"
    program.touch()
    os.mkfifo(tmp_path / "package.json")
    assert package_version(str(program), Dated.packages) is None
