"""The end of a command: what a record says, and how it is told."""

from __future__ import annotations

import pytest

from mam.core import command_end


@pytest.mark.parametrize(
    ("content", "detail", "facts"),
    [
        (b'{"exit_status": 0, "bytes": 3}', "exit 0: the last", {"exit_status": 0}),
        (b'{"exit_status": 3}', "exit 3: the last", {"exit_status": 3, "reason": "exit status"}),
        (b'{"signal": 9}', "ended by signal 9 (SIGKILL): the last", {"signal": 9, "reason": "signal"}),
        (b'{"signal": 64}', "ended by signal 64: the last", {"signal": 64, "reason": "signal"}),
        (b'{"failure": "no", "reason": "prompt"}', "no", {"exit_status": None, "reason": "prompt"}),
    ],
)
def test_what_a_record_says(content, detail, facts):
    end = command_end.parse(content.ljust(100) + b"\n")
    assert (end.detail("the last"), end.facts()) == (detail, facts)
    assert end.is_success == (facts.get("exit_status") == 0)
    assert not end.detail("").endswith(": ")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"{", b"[]", b'{"exit_status": "0"}', b'{"exit_status": true}', b"\xff", b"null"]
)
def test_what_is_no_end(content):
    assert command_end.parse(content) is None


@pytest.mark.parametrize(
    ("status", "detail", "facts"),
    [
        (0, "exit 0: the last", {"exit_status": 0}),
        (3, "exit 3: the last", {"exit_status": 3, "reason": "exit status"}),
        (255, "exit 255: the last", {"exit_status": 255, "reason": "exit status"}),
    ],
)
def test_a_status_of_the_pane_is_that_of_the_command(status, detail, facts):
    end = command_end.without_record(status)
    assert (end.detail("the last"), end.facts(), end.is_success) == (detail, facts, status == 0)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (137, "it or its runner was ended by signal 9 (SIGKILL)"),
        (192, "it or its runner was ended by signal 64"),
        (None, "its runner is gone and left no record"),
    ],
)
def test_an_end_that_nobody_knows(status, why):
    """The status of a pane does not tell whether the signal ended the command or its runner."""
    end = command_end.without_record(status)
    assert not end.is_success
    assert end.facts() == {"exit_status": status, "reason": "runner gone"}
    assert end.detail("x") == f"nobody knows how the command ended: {why}"
