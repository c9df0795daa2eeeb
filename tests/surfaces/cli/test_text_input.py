"""Texts from files: regular ones and those that the shell opened, and nothing that could wait for ever."""

import io
import os

import pytest
from tests.surfaces.cli.calling import call

from mam.core.errors import InvalidPrompt
from mam.surfaces.cli.text_input import read_argument, read_prompt

TEXT = "a\r\nbü\n"


@pytest.fixture
def named_pipe(tmp_path):
    """The path of a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.fixture
def opened():
    """The number of an open pipe that holds a text, as the shell passes one for `<(command)`."""
    read, write = os.pipe()
    os.write(write, TEXT.encode())
    os.close(write)
    yield read
    os.close(read)


def test_a_regular_file_is_read_as_it_is_also_through_a_link(tmp_path) -> None:
    (tmp_path / "text").write_bytes(TEXT.encode())
    (tmp_path / "link").symlink_to("text")
    assert read_prompt(str(tmp_path / "text")) == read_prompt(str(tmp_path / "link")) == TEXT


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_pipe_that_the_shell_opened_is_read(opened, folder) -> None:
    assert read_prompt(f"{folder}/{opened}") == TEXT


def test_stdin_is_read_by_both_of_its_names(opened, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode()), encoding="utf-8"))
    assert read_argument("-") == TEXT
    before = os.dup(0)
    try:
        os.dup2(opened, 0)
        assert read_prompt("/dev/stdin") == TEXT
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("pipe", "not a regular file"),
        ("/dev/null", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (".", "directory"),
        ("nowhere", "No such file"),
        ("a\0b", "NUL"),
        ("latin", "not UTF-8"),
        ("large", "more than 4 MB"),
    ],
)
def test_anything_else_is_refused_with_a_way_out(named_pipe, tmp_path, monkeypatch, path, reason) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin").write_bytes(b"\xff")
    # The limit falls into the middle of a character.
    (tmp_path / "large").write_bytes(b"x" + "ü".encode() * (2 * 1024 * 1024))
    with pytest.raises(InvalidPrompt, match=reason) as refused:
        read_prompt(path)
    assert refused.value.hint


def test_a_stdin_that_is_not_text_or_is_closed_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    with pytest.raises(InvalidPrompt, match="stdin is not UTF-8"):
        read_argument("-")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidPrompt, match="cannot read stdin"):
        read_argument("-")


@pytest.mark.parametrize(
    "words",
    [
        ("job", "submit", "--prompt-file"),
        ("create", "--agent", "practice", "--prompt-file"),
        ("send", "one", "--file"),
        ("broadcast", "--all", "--file"),
        ("job", "event", "00ab12cd", "--signed"),
    ],
)
def test_no_verb_waits_for_a_named_pipe(home, workspace, named_pipe, monkeypatch, capsys, words) -> None:
    monkeypatch.chdir(workspace)
    answer = call(capsys, [*words, named_pipe, "--json"])
    assert (answer.code, answer.error["code"]) == (64, "invalid_prompt")
    assert "is not a regular file" in answer.error["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("task", "add", "-", "--role", "dev"),
        ("board", "create", "card", "--body", "-"),
        ("board", "comment", "t_1", "-"),
    ],
)
def test_every_verb_refuses_a_stdin_that_is_not_text(home, workspace, monkeypatch, capsys, words) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    answer = call(capsys, [*words, "--json"])
    assert (answer.code, answer.error["code"]) == (64, "invalid_prompt")
