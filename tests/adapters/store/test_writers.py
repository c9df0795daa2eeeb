"""Many processes at once: no change is lost, no writer fails, and readers always find all sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.adapters.store.making import check_invariants, new_row

ROOT = Path(__file__).resolve().parents[3]
PROCESSES, CHANGES, ROWS = 8, 100, 10

pytestmark = pytest.mark.slow


@pytest.fixture
def ten(store):
    store.add(*(new_row(number) for number in range(1, ROWS + 1)))
    store.registry.close()
    return store


@pytest.fixture
def workers(ten):
    """Start worker processes, and kill them all afterwards."""
    started = []

    def start(task: str, amount: int):
        command = [sys.executable, "-m", "tests.adapters.store.writers", task, str(ten.root)]
        process = subprocess.Popen(
            [*command, str(len(started)), str(amount)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer(process) -> dict:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def check_counts(store, answers) -> None:
    expected: Counter[str] = Counter()
    for acknowledged in answers:
        expected.update(acknowledged["done"])
    assert sum(expected.values()) >= PROCESSES * CHANGES
    assert {key: row.get("count", 0) for key, row in store.rows().items()} == {
        key: expected[key] for key in store.rows()
    }


@pytest.mark.promise("P1")
def test_no_change_is_lost(ten, workers):
    writers = [workers("count", CHANGES) for _ in range(PROCESSES)]
    readers = [workers("read", 60) for _ in range(2)]
    answers = [answer(process) for process in writers]
    (ten.root / "done").touch()
    assert all(answer(process)["looks"] for process in readers)
    assert [acknowledged["refused"] for acknowledged in answers] == [0] * PROCESSES
    check_counts(ten, answers)
    check_invariants(ten)


def test_no_change_and_no_edit_is_lost(ten, workers):
    """A person edits the file while programs write: mam records each edit, or refuses it with a reason."""
    writers = [workers("count", CHANGES) for _ in range(PROCESSES)]
    editor = workers("edit", 40)
    edits = answer(editor)
    answers = [answer(process) for process in writers]
    ten.again()
    ten.touch()
    check_counts(ten, answers)
    rows = ten.rows()
    for session_id, key, value in edits["taken"]:
        assert rows[session_id].get(key) == value, f"{key} was acknowledged and is lost"
    assert len(edits["taken"]) + edits["refused"] >= 40
    check_invariants(ten)
