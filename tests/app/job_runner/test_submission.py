"""What a submission refuses, with a way out and before anything is recorded. Nothing is started."""

import os

import pytest

import mam
from mam.core.errors import AgentMissing, InvalidPath, InvalidPrompt, Refused, SessionNotFound, Usage


@pytest.fixture
def jobs(home, workspace, tmp_path, monkeypatch):
    """The jobs of a fleet in a workspace with a directory and a file, where no agent is installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "true").symlink_to("/bin/true")
    (tmp_path / "bin" / "vim").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (workspace / "folder").mkdir()
    (workspace / "notes.txt").touch()
    os.mkfifo(workspace / "pipe")
    with mam.open(str(workspace)) as fleet:
        yield fleet.jobs


LOOP = {"type": "loop", "reviewer": "vim"}


@pytest.mark.parametrize(
    ("options", "error", "words", "hint"),
    [
        ({"session": "nobody"}, SessionNotFound, "nobody", "mam ls"),
        ({"session": ""}, Usage, "--session is empty", "leave it out"),
        ({"agent": "gemini"}, AgentMissing, "gemini", "PATH"),
        ({"agent": ""}, Usage, "--agent is empty", "leave it out"),
        ({"command": ["true"], "type": "loop", "reviewer": "gemini"}, AgentMissing, "gemini", "PATH"),
        ({"command": ["true"], **LOOP}, Refused, "vim", "another reviewer: claude, codex, gemini"),
        ({"command": ["true"], "validate": "folder"}, InvalidPath, "is a directory", "a script"),
        ({"command": ["true"], "validate": "pipe"}, InvalidPath, "is not a regular file", "a script"),
        ({"command": ["true"], "validate": "nowhere"}, InvalidPath, "does not exist", "a script"),
        ({"command": ["true"], "validate": ""}, Usage, "is empty", "leave it out"),
        ({"command": ["true"], "workdir": ""}, Usage, "is empty", "leave it out"),
        ({"command": ["true"], "expect": ["a", ""]}, Usage, "is empty", "report.md"),
        ({"command": ["true"], "expect": [" "]}, Usage, "is empty", "report.md"),
        ({"command": ["true"], "timeout": 1e9}, Usage, "timeout", "0 means never"),
        ({"command": ["./folder"]}, AgentMissing, "'./folder' of the command is a directory", "a program"),
        ({"command": ["./pipe"]}, AgentMissing, "is not a regular file", "a program"),
        ({"command": ["./notes.txt"]}, AgentMissing, "is not executable", "chmod"),
        ({"command": ["./nowhere"]}, AgentMissing, "does not exist", "full path"),
        ({"command": ["notes.txt/x"]}, AgentMissing, "does not exist", "full path"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_recorded(
    jobs, workspace, options, error, words, hint
) -> None:
    with pytest.raises(error, match=words) as refused:
        jobs.submit("x", **options)
    assert type(refused.value) is error
    assert hint in refused.value.hint
    assert sorted(path.name for path in workspace.iterdir()) == ["folder", "notes.txt", "pipe"]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("", "empty"), (" \n", "empty"), ("a\0b", "NUL"), ("\udcff", "Unicode"), ("x" * 1024 * 1024, "1 MB")],
)
def test_a_prompt_that_nobody_can_be_given_is_refused_with_a_way_out(jobs, prompt, words) -> None:
    with pytest.raises(InvalidPrompt, match=words) as refused:
        jobs.submit(prompt, command=["true"])
    assert refused.value.hint
    assert "put it into a file" not in refused.value.hint
