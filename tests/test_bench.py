"""The benchmarks run at all: each at its smallest size, and nothing of them is left afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from bench.__main__ import FAMILIES
from bench.measure import Budget, Row, Times, alternate
from bench.table import relation, render

# Those that start real programs, or load many packages again and again.
LONG = ("agents", "send", "transcripts", "mcp", "broker")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def folder():
    """A temporary folder with a short name: a socket's path has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="mam-t-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def begin(folder):
    """Start the benchmarks with a temporary folder of their own, which must be empty at the end."""

    def begin(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bench", *words],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    yield begin
    # An agent whose pane was closed takes a moment to leave.
    deadline = time.monotonic() + 30
    while servers(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not servers(folder)
    assert not list(folder.iterdir())


def servers(folder: Path) -> list[int]:
    """Return the processes that were started with this folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMUX_TMPDIR={folder}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.starts
@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in FAMILIES]
)
def test_each_family_measures_something(begin, family):
    process = begin(family, "--quick", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert rows
    assert all(row["median_ms"] > 0 and row["beside_median_ms"] > 0 and row["runs"] > 0 for row in rows)


@pytest.mark.starts
def test_an_interrupt_leaves_nothing(begin, folder):
    process = begin("screens")
    deadline = time.monotonic() + 30
    while not servers(folder):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")


def test_an_unknown_name_is_refused(begin):
    process = begin("nothing")
    assert "there is no benchmark 'nothing'" in process.communicate(timeout=30)[1]
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
