"""The command line."""

from __future__ import annotations

import pytest

from mam.practice.options import HELP, Usage, parse


def test_everything_at_once():
    options = parse(
        [
            "--resume",
            "a",
            "--fork-session",
            "--session-id=b",
            "--settings",
            "{}",
            "--permissions",
            "auto",
            "--model",
            "m",
            "--name",
            "n",
            "--suggestion",
            "try it",
            "--trust-dialog",
            "--slow-start",
            "0.5",
            "--ignore-sigterm",
            "--speed",
            "100",
            "the prompt",
        ]
    )
    assert vars(options) == {
        "resume": "a",
        "fork_session": True,
        "session_id": "b",
        "settings": "{}",
        "permissions": "auto",
        "model": "m",
        "name": "n",
        "suggestion": "try it",
        "trust_dialog": True,
        "slow_start": 0.5,
        "ignore_sigterm": True,
        "speed": 100.0,
        "prompt": "the prompt",
        "version": False,
        "help": False,
    }


def test_defaults():
    options = parse([])
    assert (options.permissions, options.model, options.speed, options.prompt) == (
        "ask",
        "practice-1",
        40,
        "",
    )
    assert parse(["--permissions", "default"]).permissions == "ask"


def test_a_prompt_may_look_like_an_option():
    assert parse(["--", "--version"]).prompt == "--version"


def test_a_prompt_may_hold_bytes_that_are_no_text():
    assert parse(["a\udcffb"]).prompt == "a\ufffdb"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["--speed"],
        ["--speed", "fast"],
        ["--speed", "nan"],
        ["--speed", "-1"],
        ["--slow-start", "inf"],
        ["--permissions", "all"],
        ["--name="],
        ["--trust-dialog=yes"],
        ["one", "two"],
        ["--fork-session"],
        ["--resume", "a", "--session-id", "b"],
    ],
)
def test_what_cannot_be_understood(arguments):
    with pytest.raises(Usage):
        parse(arguments)


def test_help_has_an_example():
    assert "example:\n  python -m mam.practice" in HELP
