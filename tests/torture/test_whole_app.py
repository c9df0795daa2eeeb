"""Any sequence of verbs, deaths, clocks and edits, at length.

`--hypothesis-profile deep` tries other sequences each time, and 5,000 of them.
"""

from __future__ import annotations

from hypothesis import settings
from tests.faults.whole_app import try_sequences

EXAMPLES, STEPS = 200, 50


def test_any_verbs_deaths_and_clocks(whole_app) -> None:
    try_sequences(whole_app, max(EXAMPLES, settings().max_examples), STEPS)
