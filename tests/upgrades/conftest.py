"""A root in a temporary folder."""

from __future__ import annotations

import pytest
from tests.adapters.store.making import Store


@pytest.fixture
def store(quick_path):
    new_store = Store(quick_path)
    yield new_store
    new_store.registry.close()
