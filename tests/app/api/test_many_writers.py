"""Many processes use the verbs of one root at once; tests/torture/test_many_writers.py does so at length."""

from __future__ import annotations

import pytest
from tests.app.api.many_writers import write_at_once

CHANGES, COMMANDS = 60, 4


@pytest.mark.promise("P1")
@pytest.mark.slow
def test_eight_processes_change_twenty_sessions(fleet) -> None:
    """Nothing acknowledged is lost, no verb finds the database busy, and each refusal has its reason."""
    counts = write_at_once(fleet, CHANGES, COMMANDS)
    assert all(counts[verb] for verb in ("rename", "add", "claim", "report", "commands")), counts
