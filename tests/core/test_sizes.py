"""Sizes as people read them."""

from __future__ import annotations

import pytest

from mam.core.sizes import short_size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 KiB"),
        (12 << 10, "12 KiB"),
        ((1 << 20) - 1, "1023 KiB"),
        (1 << 20, "1.0 MiB"),
        (236_000_000, "225.1 MiB"),
        (3 << 30, "3.0 GiB"),
    ],
)
def test_a_size_has_the_unit_that_fits(count, text) -> None:
    assert short_size(count) == text
