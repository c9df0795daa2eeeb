"""The error tree: each class has its own code, and an exit code of the contract."""

import inspect

import pytest

from mam.core import errors
from mam.core.errors import MamError

LEAVES = [
    error_class
    for _, error_class in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error_class, MamError) and error_class is not MamError
]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_each_says_what_it_is(leaf: type[MamError]) -> None:
    error = leaf()
    assert leaf.exit_code in (1, 2, 3, 4, 64, 65, 70)
    assert str(error)
    assert "\n" not in str(error)
    assert leaf.__name__ in (errors.__doc__ or "")
    assert set(error.as_json()["error"]) == {"code", "message", "hint", "retryable"}


def test_codes_are_unique() -> None:
    codes = [leaf.code for leaf in LEAVES]
    assert len(codes) == len(set(codes))


def test_messages_carry_no_control_characters() -> None:
    error = MamError("a\x1b[31m\nb", hint="c\rd")
    assert str(error) == "a[31m b"
    assert error.hint == "c d"


def test_an_error_of_a_class_with_a_way_out_has_it_as_its_hint() -> None:
    assert errors.TerminalsDown("'one' was not renamed").hint == errors.TerminalsDown.way_out
    assert errors.TerminalsDown("it belongs to another user", hint="ask them").hint == "ask them"
    assert errors.PaneGone("its pane is gone").hint is None
