"""The fuzz tests with many random examples each, which differ from run to run: `--hypothesis-profile deep`.

A failure prints a blob that brings the example back. What it finds becomes an explicit example of its test.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "fuzz").glob("test_*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_many_random_examples(path: Path) -> None:
    """Each file in a process of its own: its settings are read when it is imported."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--hypothesis-profile", "deep", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    # What is wrong with pytest itself stands in stderr.
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5_000:]
