"""A root in a temporary folder."""

from __future__ import annotations

import pytest
from tests.adapters.store.making import Store, new_row


@pytest.fixture
def store(quick_path):
    new_store = Store(quick_path)
    yield new_store
    new_store.registry.close()


@pytest.fixture
def three(store):
    """One session that runs and two that have ended."""
    store.add(
        new_row(1, role="developer"),
        new_row(2, status="stopped", claude_session_id_own="c-2", note="mine"),
        new_row(3, status="terminated", termination_mode="auto-detected"),
    )
    return store
