"""Eight processes, five hundred changes each, by API and command line; quiet, and on a busy machine."""

from __future__ import annotations

import pytest
from tests.app.api.many_writers import write_at_once
from tests.processes import busy_loops


@pytest.mark.parametrize("loops", [0, 4], ids=["quiet", "beside four busy loops"])
def test_four_thousand_changes(fleet, loops: int, record_property) -> None:
    with busy_loops(loops):
        counts = write_at_once(fleet, 500, 50)
    for what, count in counts.items():
        record_property(what, count)
