"""Which tests are unit tests, and the guard that keeps them so.

A unit test starts no tmux, broker or agent, so that `./dev check` runs all of them in a minute. Nobody has to
mark one: a test is one unless it asks for a fixture that starts such a thing, or is marked `starts`. Where a
unit test starts one all the same, the guard fails it. It sees what this process starts, and no grandchildren.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_STARTERS = {
    "tmux_server",
    "mosquitto",  # tests/conftest.py
    "machine",
    "private",
    "server",
    "runs",  # faults, adapters/tmux, practice
    "terminals",
    "shared_desk",  # conformance
}
# The name of a program, or a word of its arguments.
_HEAVY = {"tmux", "mosquitto", "mam.practice"}


class _Running:
    """The unit test that runs now, by name."""

    name: str | None = None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the unit tests."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if not fixtures & _STARTERS and item.get_closest_marker("starts") is None:
            item.add_marker("unit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Know while a unit test is set up. What is taken down after it may be of the whole run."""
    with _running(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Know while a unit test runs."""
    with _running(item):
        return (yield)


@contextmanager
def _running(item: pytest.Item) -> Iterator[None]:
    _Running.name = item.nodeid if item.get_closest_marker("unit") else None
    try:
        yield
    finally:
        _Running.name = None


def _watch_starts(event: str, given: tuple) -> None:
    if _Running.name is None or event not in ("subprocess.Popen", "os.posix_spawn"):
        return
    program, words = given[0], given[1]
    words = [words] if isinstance(words, str | bytes) else words or ()
    named = {Path(os.fsdecode(program or "")).name} | {os.fsdecode(word) for word in words}
    if found := named & _HEAVY:
        raise AssertionError(f"{_Running.name} starts {', '.join(found)}: mark it with pytest.mark.starts")


sys.addaudithook(_watch_starts)
