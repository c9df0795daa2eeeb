"""Options, their values, and words of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.arguments import Options
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
        # Nobody knows how many values it has.
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


def test_options_alone_are_left() -> None:
    args = ["a", "--one", "1", "--text", "b", "c", "--flag", "d", "--", "e"]
    assert OPTIONS.without_prompt(args, ["--text"]) == ["--one", "1", "--flag"]


@given(st.lists(st.text("-of=a", max_size=4)))
def test_no_word_is_lost_or_moved(args) -> None:
    assert [word for _, words in OPTIONS.parts(args) for word in words] == args


@pytest.mark.parametrize("args", [["-o", "1", "--choose"], ["--choose=1"], ["-c5"], ["--new", "1", "-c"]])
def test_a_choice_is_refused(args) -> None:
    with pytest.raises(Usage, match="keeps track of the card"):
        OPTIONS.refuse(args, ["--choose", "-c"], of="the card", hint="x")


@pytest.mark.parametrize("args", [["--one", "--choose"], ["--", "-c"], ["choose"]])
def test_what_only_looks_like_a_choice_is_none(args) -> None:
    OPTIONS.refuse(args, ["--choose", "-c"])
