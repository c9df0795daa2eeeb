"""Which copies are kept: hourly for a day, daily for a week, and never too much together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.backup_rotation import CHANGE, MANUAL, MIGRATION, RESTORED, Copy, kept, most_bytes

HOUR, DAY = 3600.0, 86400.0
# The first second of an hour and of a day.
NOW = 20_000 * DAY


def copy(age: float, reason: str = CHANGE, size: int = 1) -> Copy:
    return Copy(f"{NOW - age:015.0f}-{reason}", NOW - age, reason, size, is_compressed=False)


def ages(copies: list[Copy]) -> list[float]:
    return sorted(NOW - copy.made_at for copy in copies)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # The last one of each hour, of the hours of a day.
        ([60.0, 120.0, 3540.0, 3660.0, 7140.0], [60.0, 3660.0]),
        # An older one is kept while it is the last one of its day.
        ([60.0, 25 * HOUR, 26 * HOUR, 47 * HOUR, 49 * HOUR], [60.0, 25 * HOUR, 49 * HOUR]),
        ([60.0, 6.5 * DAY, 7.5 * DAY, 8 * DAY], [60.0, 6.5 * DAY]),
        # The newest one is kept, however old it is.
        ([400 * DAY, 401 * DAY], [400 * DAY]),
        # Also after the clock was put back.
        ([60 - DAY, 120 - DAY, 60.0], [60 - DAY, 60.0]),
        ([], []),
    ],
)
def test_copies_of_changes_thin_out(made, expected) -> None:
    assert ages(kept([copy(age) for age in made], NOW)) == expected


def test_a_full_week_is_one_copy_of_each_hour_and_of_each_day() -> None:
    every_ten_minutes = [copy(minutes * 60.0) for minutes in range(1, 14 * 24 * 60, 10)]
    chosen = ages(kept(every_ten_minutes, NOW))
    assert sum(age < DAY for age in chosen) == 24
    assert sum(age >= DAY for age in chosen) == 6
    assert max(chosen) < 7 * DAY


@pytest.mark.parametrize(
    ("reason", "longest"), [(MANUAL, 7 * DAY), ("restore", 7 * DAY), (MIGRATION, 30 * DAY)]
)
def test_other_copies_are_all_kept_for_a_time(reason, longest) -> None:
    others = [copy(age, reason) for age in (60.0, 61.0, longest - 1, longest, longest + DAY)]
    assert ages(kept([copy(1.0), *others], NOW)) == [1.0, 60.0, 61.0, longest - 1]


def test_the_week_of_a_copy_begins_with_the_restore_that_used_it() -> None:
    used = Copy("used", NOW - 30 * DAY, RESTORED, 1, is_compressed=True, since=NOW)
    assert kept([copy(1.0), used], NOW + 7 * DAY - 1)[1:] == [used]
    assert kept([copy(1.0), used], NOW + 7 * DAY)[1:] == []


def test_too_much_together_costs_hours_first_and_the_newest_never() -> None:
    made = [
        copy(1.0, size=10),
        *(copy(hours * HOUR + 1, size=4) for hours in range(1, 10)),
        *(copy(days * DAY + 1, size=4) for days in range(1, 4)),
        copy(20 * DAY, MIGRATION, size=4),
    ]
    assert ages(kept(made, NOW, 30)) == [1.0, HOUR + 1, *(days * DAY + 1 for days in range(1, 4)), 20 * DAY]
    assert ages(kept(made, NOW, 18)) == [1.0, DAY + 1, 20 * DAY]
    assert ages(kept(made, NOW, 0)) == [1.0]


def test_a_small_database_may_have_more_than_three_sizes() -> None:
    assert most_bytes(1000) == 8 << 20
    assert most_bytes(100 << 20) == 300 << 20


MADE = st.lists(
    st.builds(
        copy,
        st.floats(-2 * DAY, 40 * DAY),
        st.sampled_from([CHANGE, MANUAL, MIGRATION]),
        st.integers(0, 100),
    ),
    max_size=60,
)


@given(MADE, st.integers(0, 2000))
def test_the_newest_is_kept_the_rest_fits_and_keeping_twice_changes_nothing(made, most) -> None:
    chosen = kept(made, NOW, most)
    assert set(chosen) <= set(made)
    assert len(set(chosen)) == len(chosen)
    if made:
        assert max(made, key=lambda copy: (copy.made_at, copy.path)) in chosen
    assert len(chosen) <= 1 or sum(copy.size for copy in chosen) <= most
    assert kept(chosen, NOW, most) == chosen


@given(MADE, st.floats(0, 3 * DAY))
def test_what_was_dropped_is_not_missed_later(made, later) -> None:
    """Dropping at one time and again later leaves what dropping at the later time alone would leave."""
    assert kept(kept(made, NOW), NOW + later) == kept(made, NOW + later)
