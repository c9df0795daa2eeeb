"""Any sequence of verbs, deaths, clocks and edits, at length.

`--hypothesis-profile deep` tries other sequences each time, and 5,000 of them.
"""

from __future__ import annotations

from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from tests.faults.whole_app import take_steps

EXAMPLES, STEPS = 200, 50


def test_any_verbs_deaths_and_clocks(whole_app) -> None:
    @settings(max_examples=max(EXAMPLES, settings().max_examples), phases=[Phase.generate])
    @given(chance=some.randoms(use_true_random=True))
    def try_sequences(chance: Random) -> None:
        with whole_app() as app:
            take_steps(app, chance, STEPS)

    try_sequences()
