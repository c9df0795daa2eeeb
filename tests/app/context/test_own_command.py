"""The words that start this very mam."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mam
from mam.app.context import own_command


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A Python of a folder of its own, as sys.executable names it."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    return tmp_path / "bin"


def program(folder) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "mam").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "mam").chmod(0o755)
    return str(folder / "mam")


def test_it_starts_this_very_mam_whatever_lies_in_the_directory(tmp_path):
    (tmp_path / "mam").mkdir()
    (tmp_path / "mam" / "__init__.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    answer = subprocess.run(own_command.argv("--version"), cwd=tmp_path, capture_output=True, check=True)
    assert mam.__version__.encode() in answer.stdout


def test_the_arguments_follow(here):
    python = str(here / "python3")
    assert own_command.argv("mcp", "--x") == [python, "-P", "-m", "mam", "mcp", "--x"]
    assert own_command.argv(safe_path=False) == [python, "-m", "mam"]


class TestTyped:
    def test_the_name_where_it_means_this_very_mam(self, here, tmp_path):
        program(here)
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "mam").symlink_to(here / "mam")
        assert own_command.typed(str(here)) == ["mam"]
        assert own_command.typed(str(tmp_path / "links")) == ["mam"]

    def test_the_path_where_the_name_means_another_or_nothing(self, here, tmp_path):
        ours = program(here)
        program(tmp_path / "other")
        assert own_command.typed(str(tmp_path / "other")) == [ours]
        assert own_command.typed("") == [ours]

    def test_the_module_where_no_program_was_installed(self, here):
        assert own_command.typed("") == [str(here / "python3"), "-P", "-m", "mam"]


class TestNamed:
    def test_the_name_where_path_has_any(self, here, tmp_path):
        program(tmp_path / "other")
        assert own_command.named(str(tmp_path / "other")) == ["mam"]

    def test_the_module_where_path_has_none(self, here):
        program(here)
        assert own_command.named("") == [str(here / "python3"), "-m", "mam"]
