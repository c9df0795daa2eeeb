"""The commands that start this very mam."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mam
from mam.app.context import own_command


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """A folder in which sys.executable lies, with nothing else in it."""
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


def test_the_arguments_follow(bin_folder):
    python = str(bin_folder / "python3")
    assert own_command.argv("mcp", "--x") == [python, "-P", "-m", "mam", "mcp", "--x"]
    assert own_command.argv(safe_path=False) == [python, "-m", "mam"]


class TestExactCommand:
    def test_the_name_where_it_means_this_very_mam(self, bin_folder, tmp_path):
        program(bin_folder)
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "mam").symlink_to(bin_folder / "mam")
        assert own_command.exact_command(str(bin_folder)) == ["mam"]
        assert own_command.exact_command(str(tmp_path / "links")) == ["mam"]

    def test_the_path_where_the_name_means_another_or_nothing(self, bin_folder, tmp_path):
        installed = program(bin_folder)
        program(tmp_path / "other")
        assert own_command.exact_command(str(tmp_path / "other")) == [installed]
        assert own_command.exact_command("") == [installed]

    def test_the_module_where_no_program_was_installed(self, bin_folder):
        assert own_command.exact_command("") == [str(bin_folder / "python3"), "-P", "-m", "mam"]


class TestAnyCommand:
    def test_the_name_where_path_has_any(self, bin_folder, tmp_path):
        program(tmp_path / "other")
        assert own_command.any_command(str(tmp_path / "other")) == ["mam"]

    def test_the_module_where_path_has_none(self, bin_folder):
        program(bin_folder)
        assert own_command.any_command("") == [str(bin_folder / "python3"), "-m", "mam"]
