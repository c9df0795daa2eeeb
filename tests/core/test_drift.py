"""The drift letter, for each combination of status and observation."""

import itertools

import pytest

from mam.core.drift import letter
from mam.core.row import STATUSES, settled


def row(status):
    return settled({"id": "s_1", "name": "n", "agent": "claude", "status": status, "workspace": "/w"})


@pytest.mark.parametrize(("status", "there"), list(itertools.product(STATUSES, [True, False, None])))
def test_only_a_running_row_that_is_surely_gone_is_a(status, there) -> None:
    found = letter(row(status), is_there=there, own=None, own_on_disk=None, chosen_on_disk=False)
    assert (found == "A") is (status == "running" and there is False)


def test_c_and_d() -> None:
    assert letter(row("running"), is_there=True, own=None, own_on_disk=None, chosen_on_disk=True) == "C"
    assert letter(row("stopped"), is_there=False, own=None, own_on_disk=None, chosen_on_disk=True) == "-"
    assert letter(row("stopped"), is_there=False, own="x", own_on_disk=False, chosen_on_disk=False) == "D"
    assert letter(row("running"), is_there=True, own="x", own_on_disk=None, chosen_on_disk=False) == "-"
