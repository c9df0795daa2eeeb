"""Finding programs on PATH, and running one apart."""

from __future__ import annotations

import os

import pytest

from mam.adapters.system.concurrent_program import Running
from mam.adapters.system.program_lookup import similar, which


@pytest.fixture
def path(tmp_path, monkeypatch):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
    for name, mode in (
        ("one/claude", 0o644),
        ("two/claude", 0o755),
        ("two/codex", 0o755),
        ("two/my-tool", 0o755),
    ):
        (tmp_path / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / name).chmod(mode)
    (tmp_path / "one" / "codex").mkdir()
    monkeypatch.chdir(tmp_path)
    return f"{tmp_path}/one:{tmp_path}/none:{tmp_path}/two"


def test_the_first_executable_file(path, tmp_path):
    assert which("claude", path) == str(tmp_path / "two" / "claude")
    assert which("codex", path) == str(tmp_path / "two" / "codex")
    assert which("gemini", path) is None


@pytest.mark.parametrize("name", ["", "a\0b", "one/claude", "one/codex", "../nothing"])
def test_what_cannot_be_run_is_no_program(path, name):
    assert which(name, path) is None


def test_a_name_with_a_slash_is_taken_as_it_is(path, tmp_path):
    assert which("two/claude", path) == str(tmp_path / "two" / "claude")
    assert which(str(tmp_path / "two" / "claude"), "") == str(tmp_path / "two" / "claude")


def test_an_empty_part_of_path_is_the_current_directory(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "two")
    assert which("claude", ":/nonexistent") == str(tmp_path / "two" / "claude")


def test_similar_names(path):
    assert similar("claud", path, ["claude", "codex", "gemini"])[0] == "claude"
    assert similar("my-tol", path) == ["my-tool"]
    assert similar("claud", path, ["claude"]) == ["claude"]
    assert similar("zzzzzz", path, ["claude"]) == []


def test_at_most_three(tmp_path):
    assert len(similar("aaaa", "", ["aaaa1", "aaaa2", "aaaa3", "aaaa4"])) == 3


def test_a_program_that_closed_its_output_has_not_ended():
    script = "exec >/dev/null 2>&1; sleep 1.5; exit 3"
    assert Running(["/bin/sh", "-c", script], os.environ).finish(30).status == 3


def test_an_unknown_status_is_no_success(monkeypatch):
    running = Running(["/bin/sh", "-c", "exit 7"], dict(os.environ))
    assert running.has_ended(10)
    monkeypatch.setattr(type(running._child), "wait", lambda self, seconds: None)
    assert running.finish(10).status not in (0, None)
