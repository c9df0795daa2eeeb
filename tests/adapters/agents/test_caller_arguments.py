"""Splitting arguments into options, their values, and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.caller_arguments import Options
from mam.core.errors import Usage

OPTIONS = Options(flags=("--flag", "-f"), single=("--one", "-o"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a", "b"], ["a", "b"]),
        (["--flag", "a", "-f", "b"], ["a", "b"]),
        (["--one", "1", "a"], ["a"]),
        (["--one", "--flag", "a"], ["a"]),
        (["--one=1", "a"], ["a"]),
        (["-o1", "a"], ["a"]),
        # The number of values of an unknown option is unknown.
        (["--new", "1", "2", "--flag", "a"], ["a"]),
        (["--new=1", "a"], ["a"]),
        (["-fx", "a"], []),
        (["--flag", "--", "--one", "a"], ["--one", "a"]),
        (["-", ""], ["-", ""]),
        (["--one"], []),
        ([], []),
    ],
)
def test_words(args, words) -> None:
    assert OPTIONS.words(args) == words


def test_without_prompt_keeps_only_options() -> None:
    args = ["a", "--one", "1", "--text", "b", "c", "--flag", "d", "--", "e"]
    assert OPTIONS.without_prompt(args, ["--text"]) == ["--one", "1", "--flag"]


@given(st.lists(st.text("-of=a", max_size=4)))
def test_no_argument_is_lost_or_moved(args) -> None:
    assert [argument for _, part in OPTIONS.parts(args) for argument in part] == args


@pytest.mark.parametrize("args", [["-o", "1", "--choose"], ["--choose=1"], ["-c5"], ["--new", "1", "-c"]])
def test_an_option_that_only_mam_may_pass_is_refused(args) -> None:
    with pytest.raises(Usage, match="keeps track of the card"):
        OPTIONS.refuse(args, ["--choose", "-c"], of="the card", hint="x")


@pytest.mark.parametrize("args", [["--one", "--choose"], ["--", "-c"], ["choose"]])
def test_a_value_or_word_that_looks_like_such_an_option_is_allowed(args) -> None:
    OPTIONS.refuse(args, ["--choose", "-c"])
