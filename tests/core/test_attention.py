"""Attention: when a session needs a person, to the second."""

import pytest

from mam.core.attention import attention, due_in


@pytest.mark.parametrize(
    ("state", "age", "waiting_for", "has_job", "kind"),
    [
        ("waiting", 119.0, "permission", False, None),
        ("waiting", 120.0, "permission", False, "waiting"),
        ("waiting", 0.0, "limit, resets 3pm", False, "limit"),
        ("idle", 1e6, None, False, None),
        ("idle", 899.0, None, True, None),
        ("idle", 900.0, None, True, "idle-job"),
        ("working", 1799.0, None, True, None),
        ("working", 1800.0, None, False, "wedged"),
        ("exited", 1e6, None, True, None),
        ("unknown", 1e6, None, True, None),
        ("booting", 1e6, None, True, None),
    ],
)
def test_when(state, age, waiting_for, has_job, kind) -> None:
    reason = attention(state, age, waiting_for, has_job=has_job)
    assert (reason.kind if reason else None) == kind
    due = due_in(state, age, has_job=has_job)
    if kind and kind != "limit":
        assert due == 0.0
    elif due:
        assert attention(state, age + due, waiting_for, has_job=has_job), "then it is due"


@pytest.mark.parametrize(
    ("state", "age", "has_job", "kind"),
    [
        ("idle", 2.0, True, None),
        ("idle", 3.0, True, "silent-job"),
        ("idle", 3.0, False, None),
        ("working", 3.0, True, None),
    ],
)
def test_who_keeps_silent_after_a_reminder(state, age, has_job, kind) -> None:
    reason = attention(state, age, None, has_job=has_job, is_silent=True)
    assert (reason.kind if reason else None) == kind
    assert (due_in(state, age, has_job=has_job, is_silent=True) == 0.0) == (kind is not None)


def test_words() -> None:
    assert attention("waiting", 200, "permission").text == "it has waited for a person for 3m (permission)"
    assert attention("waiting", 0, "limit, resets 3pm").text == "it hit a limit: limit, resets 3pm"
