"""The enum of words behaves as `enum.StrEnum` in the uses that are listed here."""

from __future__ import annotations

import copy
import enum  # noqa: TID251  (it is what the class is compared with)
import json
import pickle

import pytest

from mam.core.session_row import Status
from mam.core.string_enum import StrEnum


class Light(StrEnum):
    """Two words."""

    RED = "red"
    GREEN = "green"


class Standard(enum.StrEnum):
    """Two words."""

    RED = "red"
    GREEN = "green"


def facts(words) -> list[object]:
    red = words.RED
    return [
        red == "red",
        red == "red",
        red != words.GREEN,
        red is words("red") is words(words.RED),
        hash(red) == hash("red"),
        {"red": 1}.get(red),
        str(red),
        f"{red}:{red:>5}",
        red.value,
        type(red.value),
        red.name,
        repr(red).replace(words.__name__, "Words"),
        list(words),
        len(words),
        "red" in list(words),
        red in words,
        isinstance(red, words) and isinstance(red, str),
        json.dumps({red: red}),
        copy.copy(red) is red,
        copy.deepcopy({"word": red})["word"] is red,
        words.__doc__,
        red in ("red", "blue"),
        red.upper(),
        sorted(words),
    ]


def test_it_behaves_as_the_enum_of_the_standard_library() -> None:
    assert facts(Light) == facts(Standard)


@pytest.mark.parametrize("word", ["blue", "", "RED", None, 1, ["red"], {}])
def test_another_word_is_refused(word) -> None:
    with pytest.raises(ValueError, match="is not a valid Light"):
        Light(word)


def test_a_word_has_one_member() -> None:
    with pytest.raises(TypeError, match="has the word 'red' twice"):

        class Twice(StrEnum):
            RED = "red"
            SCARLET = "red"


def test_a_member_survives_pickling_as_itself() -> None:
    assert pickle.loads(pickle.dumps(Status.RUNNING)) is Status.RUNNING


def test_a_word_and_its_member_are_one_key() -> None:
    """A row that was read has plain texts."""
    assert {Status.RUNNING: "green"}.get("running") == "green"  # type: ignore[call-overload]
