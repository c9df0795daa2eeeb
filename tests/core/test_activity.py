"""Activity: which source decides, and that disagreeing evidence is listed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.activity import (
    EXITED,
    IDLE,
    SOURCES,
    STATES,
    UNKNOWN,
    WAITING,
    WORKING,
    Evidence,
    fuse,
    needs_screen,
)

NOW = 1000.0
ALIVE = Evidence("process", "booting", 0)


def test_a_dead_process_has_ended_whatever_a_hook_says() -> None:
    verdict = fuse([Evidence("process", EXITED, NOW), Evidence("hook", WORKING, NOW)], NOW)
    assert (verdict.state, verdict.source) == (EXITED, "process")


def test_a_fresh_hook_wins_over_the_screen() -> None:
    verdict = fuse([ALIVE, Evidence("hook", WORKING, NOW - 0.5), Evidence("screen", IDLE, NOW)], NOW)
    assert (verdict.state, verdict.source) == (WORKING, "hook")
    assert [item.source for item in verdict.disagreeing] == ["screen"]


def test_a_stale_hook_loses_to_a_live_screen() -> None:
    verdict = fuse([ALIVE, Evidence("hook", WORKING, NOW - 60), Evidence("screen", IDLE, NOW)], NOW)
    assert (verdict.state, verdict.source) == (IDLE, "screen")
    assert [item.source for item in verdict.disagreeing] == ["hook"]


def test_a_state_file_that_was_written_after_a_fresh_hook_wins_over_it() -> None:
    hook = Evidence("hook", WORKING, NOW - 1.0)
    verdict = fuse([ALIVE, Evidence("state-file", IDLE, NOW - 0.5), hook], NOW)
    assert (verdict.state, verdict.source) == (IDLE, "state-file")
    assert [item.source for item in verdict.disagreeing] == ["hook"]
    verdict = fuse([ALIVE, Evidence("state-file", IDLE, NOW - 1.5), hook], NOW)
    assert (verdict.state, verdict.source) == (WORKING, "hook")


def test_an_agreeing_hook_gives_the_age() -> None:
    verdict = fuse([ALIVE, Evidence("hook", IDLE, NOW - 60), Evidence("screen", IDLE, NOW)], NOW)
    assert (verdict.source, verdict.at) == ("hook", NOW - 60)


def test_what_a_screen_does_not_know_is_no_evidence() -> None:
    verdict = fuse(
        [ALIVE, Evidence("hook", WAITING, NOW - 60, "permission"), Evidence("screen", UNKNOWN, NOW)], NOW
    )
    assert (verdict.state, verdict.waiting_for) == (WAITING, "permission")


def test_nothing_known_is_unknown() -> None:
    assert fuse([], NOW).state == UNKNOWN


@given(
    st.lists(
        st.builds(Evidence, st.sampled_from(SOURCES), st.sampled_from(STATES), st.floats(0, NOW)),
        max_size=8,
        unique_by=lambda item: item.source,
    )
)
def test_every_verdict_comes_from_evidence(evidence: list[Evidence]) -> None:
    verdict = fuse(evidence, NOW)
    assert verdict.state == UNKNOWN or any(
        (item.source, item.state) == (verdict.source, verdict.state) for item in evidence
    )
    if any(item.source == "process" and item.state == EXITED for item in evidence):
        assert verdict.state == EXITED


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([ALIVE], True),
        ([ALIVE, Evidence("hook", IDLE, 0)], False),
        ([ALIVE, Evidence("hook", WORKING, NOW - 1)], False),
        ([ALIVE, Evidence("hook", WORKING, NOW - 60)], True),
        ([Evidence("process", EXITED, NOW)], False),
    ],
)
def test_when_a_listing_looks_at_the_screen(evidence: list[Evidence], expected: bool) -> None:
    assert needs_screen(evidence, NOW) is expected


def test_the_surest_look_decides() -> None:
    evidence = [ALIVE, Evidence("screen", IDLE, NOW), Evidence("state-file", WORKING, NOW - 30)]
    assert fuse(evidence, NOW).state == WORKING


def test_a_dialog_that_no_hook_knows_of_wins_over_a_fresh_hook() -> None:
    evidence = [ALIVE, Evidence("hook", IDLE, NOW), Evidence("screen", WAITING, NOW, "trust")]
    verdict = fuse(evidence, NOW)
    assert (verdict.state, verdict.waiting_for) == (WAITING, "trust")


def test_what_it_waits_for_is_taken_from_whoever_knows() -> None:
    evidence = [ALIVE, Evidence("title", WAITING, NOW), Evidence("screen", WAITING, NOW, "permission")]
    assert fuse(evidence, NOW).waiting_for == "permission"


def test_who_says_that_nothing_is_known_does_not_spare_a_look() -> None:
    runs = Evidence("process", "booting", NOW - 60)
    assert needs_screen([runs, Evidence("state-file", "unknown", NOW - 1)], NOW)
    assert not needs_screen([runs, Evidence("hook", "working", NOW - 1)], NOW)
