"""The kinds of agents as parameters of tests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.program import PROGRAMS, taking_part


def with_long(scenario: str) -> list[Any]:
    """Return the kinds of a scenario as parameters, of which some are for `./dev test --all` alone."""
    return [
        pytest.param(kind, marks=[pytest.mark.long] if scenario in PROGRAMS[kind].long else [])
        for kind in taking_part(scenario)
    ]
