"""Which copies are kept: hourly for a day, daily for a week, and never too much together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.backup_rotation import (
    CHANGE,
    MANUAL,
    MIGRATION,
    RESTORED,
    Copy,
    kept,
    most_bytes,
    run_and_time,
)

HOUR, DAY = 3600.0, 86400.0
YEAR = 365 * DAY
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
    # A copy a day before them, because a leap of the clock would not count yet.
    chosen = kept([copy(1.0), copy(DAY + 1), *others], NOW)
    assert ages([copy for copy in chosen if copy.reason == reason]) == [60.0, 61.0, longest - 1]


def test_the_week_of_a_copy_begins_with_the_restore_that_used_it() -> None:
    used = Copy("used", NOW - 30 * DAY, RESTORED, 1, is_compressed=True, since=NOW)
    assert kept([copy(1.0), used], NOW + 7 * DAY - 1)[1:] == [used]
    assert kept([copy(1.0), used], NOW + 7 * DAY)[1:] == []


class Copies:
    """The copies of a root that changes again and again, as the resident makes and drops them."""

    def __init__(self) -> None:
        self.copies: list[Copy] = []
        self.made = 0

    def make(self, now: float, reason: str = CHANGE) -> Copy:
        newest = max(self.copies, key=lambda copy: copy.order, default=None)
        run, at = run_and_time(newest, now)
        self.made += 1
        one = Copy(f"{self.made:09d}", at, reason, 1, is_compressed=False, run=run)
        if newest is not None:
            # It is compressed then.
            newest.written_at = now
        self.copies = kept([*self.copies, one], now)
        assert self.copies[0] is one, "the copy that was made last is the newest"
        return one

    def live(self, begin: float, days: float, error: float = 0.0) -> None:
        """Make a copy each half hour, by a clock that is wrong by so much."""
        for count in range(round(days * 48)):
            self.make(begin + count * HOUR / 2 + error)

    def made_within(self, begin: float, end: float) -> int:
        return sum(begin <= copy.made_at < end for copy in self.copies)


RIGHT = 30


@pytest.mark.parametrize("error", [2 * HOUR, 3 * DAY, 40 * DAY, YEAR, 8000 * DAY])
def test_one_copy_from_the_future_costs_no_other(error) -> None:
    """After 14 days as many copies are left as with a right clock; the one copy is gone."""
    root = Copies()
    root.live(NOW, 7)
    before = len(root.copies)
    root.make(NOW + 7 * DAY + error)
    # A jump of less than a week ages the others; one of more counts only if a day bears it out.
    assert error < 7 * DAY or len(root.copies) == before + 1
    root.live(NOW + 7 * DAY + 60, 14)
    assert len(root.copies) in (RIGHT, RIGHT + 1)
    assert root.made_within(NOW + 20 * DAY + HOUR, NOW + 21 * DAY) == 23
    assert max(copy.made_at for copy in root.copies) < NOW + 21 * DAY


@pytest.mark.parametrize("error", [HOUR, 5 * DAY, YEAR, 20_000 * DAY])
def test_a_clock_that_was_put_back_for_some_hours_costs_little(error) -> None:
    root = Copies()
    root.live(NOW, 7)
    before = len(root.copies)
    root.live(NOW + 7 * DAY, 0.25, -error)
    # What the wrong clock adds thins out as ever, and takes no place of what was there.
    assert root.made_within(NOW, NOW + 7 * DAY) >= before - 8
    root.live(NOW + 7.25 * DAY, 0.25)
    assert root.made_within(NOW, NOW + 7.5 * DAY) >= before - 8
    root.live(NOW + 7.5 * DAY, 14)
    assert RIGHT <= len(root.copies) <= RIGHT + 2
    assert root.made_within(NOW + 14 * DAY, NOW + 22 * DAY) >= RIGHT


def test_copies_thin_out_while_the_clock_stays_wrong() -> None:
    """A clock that was put back for good, or leapt ahead for good, leaves as many copies as a right one."""
    for error in (-HOUR, -YEAR, HOUR, YEAR):
        root = Copies()
        root.live(NOW, 7)
        root.live(NOW + 7 * DAY, 14, error)
        assert RIGHT <= len(root.copies) <= RIGHT + 2, error


@pytest.mark.parametrize("reason", [MANUAL, MIGRATION])
def test_a_copy_of_a_person_from_the_future_stays_as_long_as_any_other(reason) -> None:
    root = Copies()
    root.live(NOW, 7)
    odd = root.make(NOW + 7 * DAY + YEAR, reason)
    longest = 7 if reason == MANUAL else 30
    root.live(NOW + 7 * DAY + 60, longest - 1)
    assert odd in root.copies
    root.live(NOW + (6 + longest) * DAY + 60, 2)
    assert odd not in root.copies


def test_a_restore_while_the_clock_was_ahead_keeps_its_copy_for_a_week() -> None:
    root = Copies()
    root.live(NOW, 1)
    used = Copy("used", NOW - 9 * DAY, RESTORED, 1, is_compressed=True, since=NOW + DAY + YEAR)
    root.copies.append(used)
    root.make(NOW + DAY + YEAR + 60)
    root.live(NOW + DAY + 120, 6.5)
    assert used in root.copies
    root.live(NOW + 7.5 * DAY + 120, 2)
    assert used not in root.copies


@given(st.lists(st.tuples(st.floats(-2 * YEAR, 2 * YEAR), st.floats(0, 2 * DAY)), max_size=30))
def test_whatever_the_clock_says_the_copy_made_last_is_the_newest(steps) -> None:
    root, at = Copies(), NOW
    for error, pause in steps:
        at += pause
        root.make(at + error)


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


def made_since(youngest: float) -> st.SearchStrategy[list[Copy]]:
    ages, reasons = st.floats(youngest, 40 * DAY), st.sampled_from([CHANGE, MANUAL, MIGRATION])
    return st.lists(st.builds(copy, ages, reasons, st.integers(0, 100)), max_size=60)


@given(made_since(-2 * DAY), st.integers(0, 2000))
def test_the_newest_is_kept_the_rest_fits_and_keeping_twice_changes_nothing(made, most) -> None:
    chosen = kept(made, NOW, most)
    assert set(chosen) <= set(made)
    assert len(set(chosen)) == len(chosen)
    if made:
        assert max(made, key=lambda copy: (copy.made_at, copy.path)) in chosen
    assert len(chosen) <= 1 or sum(copy.size for copy in chosen) <= most
    assert set(kept(chosen, NOW, most)) == set(chosen)


@given(made_since(0), st.floats(0, 3 * DAY))
def test_what_was_dropped_is_not_missed_later(made, later) -> None:
    """Dropping at one time and again later leaves what dropping at the later time alone would leave."""
    # A copy of each day: no leap of the clock.
    made = [*made, *(copy(days * DAY + 1) for days in range(40))]
    assert kept(kept(made, NOW), NOW + later) == kept(made, NOW + later)
