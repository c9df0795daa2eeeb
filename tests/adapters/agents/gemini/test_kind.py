"""The kind of Gemini CLI: its launch, and the texts that arrive."""

from pathlib import Path

import pytest

from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.kind import Request
from mam.core.errors import Usage

KIND = Gemini()


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"HOME": "/h"}} | facts
    return KIND.launch(Request(command=["gemini", *args], program="/bin/gemini", **facts))


class TestLaunch:
    @pytest.mark.parametrize(
        "args", [["do it"], ["do", "it"], ["-i", "do it"], ["--prompt-interactive=do it"]]
    )
    def test_a_resume_does_not_repeat_the_prompt(self, args) -> None:
        own = ["--include-directories", "/a", "--skip-trust"]
        assert launch(*own, *args).argv == ["/bin/gemini", *own, *args]
        assert launch(*own, *args, conversation="N", resume=True).argv == [
            "/bin/gemini",
            "--resume",
            "N",
            *own,
        ]

    def test_mam_adds_only_what_the_request_needs(self) -> None:
        assert launch().argv == ["/bin/gemini"]
        assert (launch().env, launch().settings) == ({}, None)

    @pytest.mark.parametrize(
        ("facts", "args"),
        [
            ({"conversation": "N"}, ["--session-id", "N"]),
            ({"conversation": "N", "resume": True}, ["--resume", "N"]),
            ({"permissions": "ask"}, ["--approval-mode", "default"]),
            ({"permissions": "auto"}, ["--approval-mode", "auto_edit"]),
            ({"permissions": "skip"}, ["--approval-mode", "yolo"]),
            ({"model": "gemini-3.8-flash"}, ["--model", "gemini-3.8-flash"]),
        ],
    )
    def test_the_arguments_for_a_request(self, facts, args) -> None:
        assert launch(**facts).argv == ["/bin/gemini", *args]

    def test_the_arguments_of_the_caller_come_last(self) -> None:
        args = ["--include-directories", "/a", "--", "-r"]
        assert launch(*args, conversation="N").argv == ["/bin/gemini", "--session-id", "N", *args]

    @pytest.mark.parametrize(
        "args",
        [
            ["--resume", "latest"],
            ["--resume=5"],
            ["-r"],
            ["-r5"],
            ["--session-id", "x"],
            ["--sessionId=x"],
            ["--session-file", "x"],
            ["--list-sessions"],
            ["--delete-session", "1"],
            ["-w", "tree"],
            ["--worktree"],
        ],
    )
    def test_options_that_choose_a_conversation_or_directory_are_refused(self, args) -> None:
        with pytest.raises(Usage, match="only mam may pass"):
            launch(*args)

    def test_what_an_outer_gemini_sets_is_not_inherited(self) -> None:
        assert "GEMINI_CLI_TRUST_WORKSPACE" in launch(environ={"GEMINI_CLI": "1"}).unset
        # Outside of a Gemini a person has set the variable.
        assert "GEMINI_CLI_TRUST_WORKSPACE" not in launch().unset

    def test_the_launch_uses_the_store_of_the_row(self) -> None:
        assert "GEMINI_CLI_HOME" in launch().unset
        assert "GEMINI_CLI_HOME" not in launch(stores={"GEMINI_CLI_HOME": "/g"}).unset


@pytest.mark.parametrize(
    ("environ", "stores"),
    [
        ({"HOME": "/h"}, {"HOME": "/h"}),
        ({"HOME": "/h", "GEMINI_CLI_HOME": ""}, {"HOME": "/h"}),
        ({"HOME": "/h", "GEMINI_CLI_HOME": "/g"}, {"GEMINI_CLI_HOME": "/g"}),
        ({"GEMINI_CLI_HOME": "g"}, {"GEMINI_CLI_HOME": str(Path("g").absolute())}),
    ],
)
def test_stores(environ, stores) -> None:
    assert KIND.stores(environ) == stores


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("plain words", "plain words"),
        ("!echo hi", "!echo hi"),
        ("# title", "# title"),
        ("?what", "?what"),
        ("/etc/passwd is a file", "/etc/passwd is a file"),
        ("// a comment", "// a comment"),
        ("@notes.txt what", "@notes.txt what"),
        # A list of files would take the Enter, or Enter would make a new line.
        ("look at @notes", "look at @notes "),
        ("it ends in \\", "it ends in \\ "),
        # Commands, also those of the user, and signs that Gemini removes.
        ("/quit", None),
        ("  /my-command with words", None),
        ("/", None),
        ("a\u200bb", None),
        ("a\u202eb", None),
        ("a\x85b", None),
    ],
)
def test_a_text_arrives_as_text_or_is_refused(text, typed) -> None:
    assert KIND.text_to_type(text) == typed


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("look at @notes", False),
        ("a|@n", False),
        ("somebody@example.org", False),
        ("@.hidden", False),
        ('@"a name"', False),
        ("\\@x", True),
        ("@ noon, @. and @", True),
        ("(@) @, @!", True),
    ],
)
def test_a_mention_does_not_arrive_unchanged(text, is_kept) -> None:
    assert KIND.keeps_unchanged(text) is is_kept


def test_a_long_text_needs_a_longer_pause() -> None:
    assert KIND.pause("") == KIND.pause_before_enter < KIND.pause("x" * 50_000) < KIND.pause("x" * 1_000_000)


def test_what_gemini_cannot_do() -> None:
    assert (KIND.can_fork, KIND.has_hooks) == (False, False)
    assert KIND.answer_keys(KIND.read_screen(_empty()), "trust") is None


def _empty():
    from mam.adapters.agents.kind import Screen

    return Screen("")
