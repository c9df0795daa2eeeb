"""A private tmux server for the real programs of one test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.terminal import Terminals


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    with Terminals(f"mam-conf-{os.getpid()}", tmp_path) as opened:
        yield opened
