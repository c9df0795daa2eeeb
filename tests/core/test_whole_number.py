"""Numbers that others wrote: Python takes more signs for digits than `int` reads, and reads not all."""

import pytest

from mam.core.whole_number import whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("007", 7), ("0" * 5000, 0), ("123456789012345678", 123456789012345678)]
)
def test_digits_are_a_number(text, number) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", " 1", "+1", "-1", "1_0", "1.0", "0x1", "²", "٣", "9" * 19, "9" * 5000])
def test_anything_else_is_none(text) -> None:
    assert whole_number(text) is None
