"""The kinds of agents as parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def with_long(kinds: Iterable[str], *long: str) -> list[Any]:
    """Return kinds as parameters, of which some are for `./dev test --all` alone."""
    return [pytest.param(kind, marks=[pytest.mark.long] if kind in long else []) for kind in kinds]
