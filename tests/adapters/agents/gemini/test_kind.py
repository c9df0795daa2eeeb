"""Gemini CLI as a kind: what it is launched with, and which words arrive."""

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
        "words", [["do it"], ["do", "it"], ["-i", "do it"], ["--prompt-interactive=do it"]]
    )
    def test_a_prompt_is_given_once(self, words) -> None:
        own = ["--include-directories", "/a", "--skip-trust"]
        assert launch(*own, *words).argv == ["/bin/gemini", *own, *words]
        assert launch(*own, *words, conversation="N", resume=True).argv == [
            "/bin/gemini",
            "--resume",
            "N",
            *own,
        ]

    def test_nothing_is_passed_that_was_not_asked_for(self) -> None:
        assert launch().argv == ["/bin/gemini"]
        assert (launch().env, launch().settings) == ({}, None)

    @pytest.mark.parametrize(
        ("facts", "words"),
        [
            ({"conversation": "N"}, ["--session-id", "N"]),
            ({"conversation": "N", "resume": True}, ["--resume", "N"]),
            ({"permissions": "ask"}, ["--approval-mode", "default"]),
            ({"permissions": "auto"}, ["--approval-mode", "auto_edit"]),
            ({"permissions": "skip"}, ["--approval-mode", "yolo"]),
            ({"model": "gemini-3.8-flash"}, ["--model", "gemini-3.8-flash"]),
        ],
    )
    def test_words_for_a_wish(self, facts, words) -> None:
        assert launch(**facts).argv == ["/bin/gemini", *words]

    def test_the_callers_own_arguments_come_last(self) -> None:
        args = ["--include-directories", "/a", "--", "-r"]
        assert launch(*args, conversation="N").argv == ["/bin/gemini", "--session-id", "N", *args]

    @pytest.mark.parametrize(
        "words",
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
    def test_options_that_choose_a_conversation_or_directory_are_refused(self, words) -> None:
        with pytest.raises(Usage, match="for mam to pass"):
            launch(*words)

    def test_what_an_outer_gemini_sets_is_not_inherited(self) -> None:
        assert "GEMINI_CLI_TRUST_WORKSPACE" in launch(environ={"GEMINI_CLI": "1"}).without
        # Without the mark of an outer one it is a person's own setting.
        assert "GEMINI_CLI_TRUST_WORKSPACE" not in launch().without

    def test_the_store_of_the_row_is_the_one_that_is_used(self) -> None:
        assert "GEMINI_CLI_HOME" in launch().without
        assert "GEMINI_CLI_HOME" not in launch(stores={"GEMINI_CLI_HOME": "/g"}).without


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
        # Enter would be taken by a list of files, or be a new line.
        ("look at @notes", "look at @notes "),
        ("it ends in \\", "it ends in \\ "),
        # Commands, also of the user's own making, and what it would take out.
        ("/quit", None),
        ("  /my-command with words", None),
        ("/", None),
        ("a\u200bb", None),
        ("a\u202eb", None),
        ("a\x85b", None),
    ],
)
def test_words(text, typed) -> None:
    assert KIND.typed(text) == typed


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
def test_any_at_before_a_path_attaches_a_file(text, is_kept) -> None:
    assert KIND.keeps(text) is is_kept


def test_a_long_text_needs_a_longer_pause() -> None:
    assert KIND.pause("") == KIND.pause_before_enter < KIND.pause("x" * 50_000) < KIND.pause("x" * 1_000_000)


def test_it_says_what_it_cannot() -> None:
    assert (KIND.can_fork, KIND.has_hooks) == (False, False)
    assert KIND.answer_keys(KIND.look(_empty()), "trust") is None


def _empty():
    from mam.adapters.agents.kind import Screen

    return Screen("")
