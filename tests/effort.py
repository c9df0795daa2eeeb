"""How much work a call is, counted and not timed: a busy machine changes a time, and never a count."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def count_calls(work: Callable[[], T]) -> tuple[T, int]:
    """Return what a function returns, and how many functions it has called, those written in C included."""
    count = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return result, count
