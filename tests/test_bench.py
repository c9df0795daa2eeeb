"""The benchmarks run at all: each at its smallest size, and nothing of them is left afterwards."""

from __future__ import annotations

import json
import signal
from functools import partial

import pytest
from bench.__main__ import FAMILIES
from bench.measure import Budget, Row, Times, alternate
from bench.table import relation, render
from tests.bench_runs import begin_module, folder, users_of
from tests.waiting import wait_until

from mam.adapters.system.load_adjusted_clock import stretched

__all__ = ["begin_module", "folder"]

# Those that start real programs, or load many packages again and again.
LONG = ("agents", "send", "transcripts", "mcp", "broker")


@pytest.fixture
def begin(begin_module):
    """Start the benchmarks."""
    return partial(begin_module, "bench")


@pytest.mark.starts
@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in FAMILIES]
)
def test_each_family_measures_something(begin, family):
    process = begin(family, "--quick", "--json")
    out, err = process.communicate(timeout=stretched(60))
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert rows
    assert all(row["median_ms"] > 0 and row["beside_median_ms"] > 0 and row["runs"] > 0 for row in rows)


@pytest.mark.starts
def test_an_interrupt_leaves_nothing(begin, folder):
    process = begin("screens")
    wait_until(lambda: process.poll() is not None or users_of(folder, "TMUX_TMPDIR"), "a server")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=stretched(60))
    assert (process.returncode, out) == (130, "")


def test_an_unknown_name_is_refused(begin):
    process = begin("nothing")
    assert "there is no benchmark 'nothing'" in process.communicate(timeout=stretched(30))[1]
    assert process.returncode == 64


class TestMeasure:
    def test_rounds_alternate_and_the_first_does_not_count(self):
        calls: list[str] = []
        found = alternate(2, {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")})
        assert calls == ["a", "b", "b", "a", "a", "b"]
        assert [len(times.all) for times in found.values()] == [2, 2]

    def test_an_act_may_say_what_counts(self):
        assert alternate(3, {"a": lambda: 0.5})["a"].median == 500

    def test_p95_is_the_nearest_rank(self):
        assert Times(tuple(map(float, range(1, 101)))).p95 == 95
        assert Times((7.0,)).p95 == 7

    @pytest.mark.parametrize(
        ("budget", "measured", "baseline", "shown", "ok"),
        [
            (Budget("times", 4), 40, 10, "4.00 x", True),
            (Budget("times", 4), 41, 10, "4.10 x", False),
            (Budget("faster", 30), 10, 300, "30.0 x faster", True),
            (Budget("faster", 30), 11, 300, "27.3 x faster", False),
            (Budget("beyond", 100), 150, 50, "+100 ms", True),
            (Budget("beyond", 100), 151, 50, "+101 ms", False),
            (Budget("ms", 50), 50, 900, "18.0 x faster", True),
            (Budget("ms", 50), 51, 900, "17.6 x faster", False),
            (None, 20, 10, "2.00 x", None),
        ],
    )
    def test_a_row_is_judged_by_its_medians(self, budget, measured, baseline, shown, ok):
        row = Row("what", Times((float(measured),)), "beside", Times((float(baseline),)), budget)
        assert (row.ok, relation(row, measured, baseline)) == (ok, shown)
        assert ("OVER" in render([row])[1]) == (ok is False)
