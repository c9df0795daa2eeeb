"""Any sequence of verbs, deaths, clocks and edits; tests/torture/test_whole_app.py has more of them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from tests.faults.whole_app import take_steps

pytestmark = pytest.mark.slow
EXAMPLES, STEPS = 20, 40


@pytest.mark.promise("P1")
@pytest.mark.promise("P2")
@pytest.mark.promise("P33")
@pytest.mark.promise("P34")
def test_any_verbs_deaths_and_clocks(whole_app) -> None:
    @settings(max_examples=EXAMPLES, phases=[Phase.generate])
    @given(chance=some.randoms(use_true_random=True))
    def try_sequences(chance: Random) -> None:
        with whole_app() as app:
            take_steps(app, chance, STEPS)

    try_sequences()
