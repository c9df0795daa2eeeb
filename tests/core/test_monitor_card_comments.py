"""Comments on the card of a monitor, and what ends the monitor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core import monitor_card_comments

PLAIN = [
    "stop",
    "Stop monitoring",
    "please\n  STOP \nthanks",
    "stop  monitoring.",
    "thanks!\r\nstop!\r\n",
    "stop.",
    "please stop monitoring",
    "stop monitoring now",
    "Stop monitoring please",
    "Please stop.",
    "OK, you can stop monitoring now, thanks!",
    "Could you please stop monitoring?",
    "Hi, thank you. Please stop the monitoring right away",
    "@mam-monitor stop watching",
    "stop \N{OCTAGONAL SIGN}",
    "Enough - stop",
]
UNCLEAR = [
    "it stopped",
    "stop it",
    "stopped",
    "when does it stop?",
    "stop?",
    "the build will stop",
    "stop monitoring at 5",
    "if the build fails, stop monitoring",
    "should I stop monitoring?",
    "you should have stopped",
    "stop the build",
    "please end the monitoring",
    "cancel monitoring",
]
OTHER = [
    "",
    "do not stop",
    "don't stop",
    "Please don\N{RIGHT SINGLE QUOTATION MARK}t stop monitoring",
    "do not stop monitoring",
    "never stop",
    "you must not stop monitoring now",
    "no need to stop",
    "non-stop",
    "st\nop",
    "unstoppable",
    "> stop",
    "cancel the order",
    "hello",
    "stop " * 100,
]


@pytest.mark.parametrize("body", PLAIN)
def test_s001_19_who_plainly_asks_for_the_end_is_heard(body) -> None:
    assert monitor_card_comments.says_stop("default", body)
    assert not monitor_card_comments.says_stop(monitor_card_comments.AUTHOR, body)
    assert not monitor_card_comments.is_unclear("default", body)


@pytest.mark.parametrize("body", UNCLEAR)
def test_s001_19_what_may_ask_for_the_end_is_not_obeyed_and_answered(body) -> None:
    assert not monitor_card_comments.says_stop("default", body)
    assert monitor_card_comments.is_unclear("default", body)
    assert not monitor_card_comments.is_unclear(monitor_card_comments.AUTHOR, body)


@pytest.mark.parametrize("body", OTHER)
def test_s001_19_what_asks_for_no_end_is_left_alone(body) -> None:
    assert not monitor_card_comments.says_stop("default", body)
    assert not monitor_card_comments.is_unclear("default", body)


@pytest.mark.parametrize("body", PLAIN)
@pytest.mark.parametrize(
    "words", ["do not {}", "don't {}", "{} tomorrow", "the agent says {}", "if it fails {}"]
)
def test_s001_19_with_any_other_word_in_its_line_nothing_stops(words, body) -> None:
    for line in body.splitlines():
        if "stop" in line.casefold():
            assert not monitor_card_comments.says_stop("default", words.format(line))


@given(st.text())
def test_any_text_is_read(body) -> None:
    assert monitor_card_comments.says_stop("x", body) in (True, False)
    assert not (monitor_card_comments.says_stop("x", body) and monitor_card_comments.is_unclear("x", body))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=500), max_size=60))
def test_every_line_is_in_a_comment_and_no_comment_is_too_long(lines) -> None:
    short = [line[:400] for line in lines]
    comments = monitor_card_comments.comments_of(short)
    assert "\n".join(comments).split("\n") == (short or [""])
    assert all(len(comment.encode()) <= monitor_card_comments.LONGEST_COMMENT for comment in comments)


def test_few_comments_hold_many_lines() -> None:
    assert monitor_card_comments.comments_of(["a", "b"]) == ["a\nb"]
    assert len(monitor_card_comments.comments_of(["x" * 100] * 50)) == 3


def test_a_line_of_a_difference() -> None:
    drift = {"class": "A", "message": "one: gone\x1b[31m\nreally", "written": True}
    assert monitor_card_comments.line_of(drift, 0) == "1970-01-01T00:00:00Z A: one: gone[31m really"
    assert monitor_card_comments.line_of({**drift, "written": False}, 0).endswith(" (not written)")
    assert len(monitor_card_comments.line_of({**drift, "message": "x" * 9000}, 0)) == 500


def test_a_heartbeat_has_numbers() -> None:
    assert monitor_card_comments.note_of(0, None, 2) == "alive, 0 drifts, none so far; 2 running"
    assert monitor_card_comments.note_of(1, 0, 0) == "alive, 1 drift, last at 1970-01-01T00:00:00Z; 0 running"


@pytest.mark.parametrize("output", ["done", "it looked\nDone: nobody needs it", "done."])
def test_a_judge_says_done(output) -> None:
    assert monitor_card_comments.is_done(monitor_card_comments.verdict_of(0, output))


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (1, "done"),
        (None, "done"),
        (0, ""),
        (0, "continue"),
        (0, "not done"),
        (0, "done\ncontinue"),
        (0, "wait"),
    ],
)
def test_anything_else_goes_on(status, output) -> None:
    assert not monitor_card_comments.is_done(monitor_card_comments.verdict_of(status, output))


@pytest.mark.parametrize(("cap", "end"), [(8 * 3600, 8 * 3600 - 60), (60, 54), (5, 4)])
def test_it_ends_before_it_is_ended(cap, end) -> None:
    assert monitor_card_comments.ends_at(100.0, cap) == 100 + end
