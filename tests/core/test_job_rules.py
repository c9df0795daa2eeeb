"""Jobs: how events change the status, when a timeout is due, and what text an agent gets."""

from __future__ import annotations

import pytest

from mam.core import job_event as events
from mam.core import job_rules as rules
from mam.core.job_file_format import parse_record, record


@pytest.mark.parametrize(
    ("status", "name", "data", "expected"),
    [
        ("pending", "registered", {}, "pending"),
        ("pending", "agent_launched", {}, "pending"),
        ("pending", "dropped", {}, "pending"),
        ("pending", "started", {}, "running"),
        ("pending", "progress", {}, "running"),
        ("running", "permission_required", {}, "running"),
        ("running", "checking", {}, "checking"),
        ("checking", "progress", {}, "checking"),
        ("checking", "validated", {}, "checking"),
        ("checking", "completed", {}, "completed"),
        ("checking", "error", {"reason": "validation failed"}, "error"),
        ("running", "completed", {"stopped": True}, "cancelled"),
        ("running", "error", {"reason": "cancelled"}, "cancelled"),
        ("pending", "error", {}, "error"),
        ("completed", "error", {}, "completed"),
        ("error", "completed", {}, "error"),
        ("cancelled", "started", {}, "cancelled"),
    ],
)
def test_what_an_entry_does(status, name, data, expected):
    assert rules.status_after(status, name, data) == expected


def facts(**changes):
    defaults = {
        "began": 1000.0,
        "timeout": 3600.0,
        "idle_timeout": 120.0,
        "last_news": 1000.0,
        "activity": "idle",
        "activity_at": 1000.0,
        "may_nudge": True,
        "has_worked": True,
    }
    return {**defaults, **changes}


@pytest.mark.parametrize(
    ("now", "changes", "due"),
    [
        (1001.0, {}, None),
        (1004.0, {}, rules.NUDGE),
        (1004.0, {"has_worked": False}, None),
        (1031.0, {"has_worked": False}, rules.NUDGE),
        (1004.0, {"may_nudge": False}, None),
        (1004.0, {"activity": "waiting"}, None),
        (1121.0, {"may_nudge": False}, rules.QUIET),
        (1121.0, {"activity": "waiting"}, rules.QUIET),
        (1121.0, {"activity": "unknown"}, None),
        (1121.0, {"activity": "booting"}, None),
        (1121.0, {"activity": None}, rules.QUIET),
        (1121.0, {"activity": "working"}, None),
        (1121.0, {"idle_timeout": 0.0, "may_nudge": False}, None),
        (4601.0, {"activity": "working"}, rules.WALL),
        (4601.0, {"activity": "working", "timeout": 0.0}, None),
    ],
)
def test_when_something_is_due(now, changes, due):
    arguments = facts(**changes)
    assert rules.overdue(now=now, **arguments) == due
    later = rules.next_due(**arguments)
    assert (later is not None and later <= now) == (due is not None)


@pytest.mark.parametrize(
    ("detail", "passed"),
    [
        ("PASS", True),
        ("Pass: all is well", True),
        ("**PASS** - fine", True),
        ("Verdict: PASS", True),
        ("FAIL: the tests PASS but", False),
        ("not a PASS", False),
        ("PASSWORD is wrong", False),
        ("", False),
    ],
)
def test_what_a_reviewer_says(detail, passed):
    assert rules.says_pass(detail) is passed


def test_an_agent_is_told_its_job_and_every_command():
    text = rules.instructions("1f00ab42", "mam job event --job 1f00ab42 --attempt 1")
    for name in events.ON_THE_WIRE:
        assert f"mam job event --job 1f00ab42 --attempt 1 --event {name}" in text
    # A full disk also exits with 2; the agent must repeat its last event then.
    assert "2 not finished: it says whether" in text
    task = "do $(it)\n`now`"
    assert rules.prompt(text, task).endswith(f"\n{task}")


def test_a_record_of_the_original_loads():
    old = {
        "schema_version": 1,
        "job_id": "1f00ab42",
        "status": "running",
        "created_at": "2026-06-20T10:00:00+00:00",
        "updated_at": "2026-06-20T10:00:05+00:00",
        "prompt": "x",
        "agent": "codex",
        "agent_session": "tmux:codex",
        "broker": {"host": "localhost", "port": 1883, "tls": False, "username": None, "password": None},
        "topic_prefix": "python/mqtt/jobs",
        "timeout_sec": 60,
        "idle_timeout_sec": 0,
        "expected_artifacts": ["out.txt"],
        "last_seq": 7,
        "auth_token": "secret",
    }
    fields = parse_record(old)
    assert fields is not None
    assert {key: fields[key] for key in old if not key.endswith("_sec")} == {
        key: value for key, value in old.items() if not key.endswith("_sec")
    }
    assert (fields["timeout_sec"], fields["idle_timeout_sec"], fields["attempt"]) == (60.0, 0.0, 1)


@pytest.mark.parametrize(
    "document", [None, [], {}, {"job_id": "x"}, {"job_id": "1f00ab42", "status": "odd", "schema_version": 1}]
)
def test_what_is_no_record(document):
    assert parse_record(document) is None


def test_our_own_record_reads_back():
    document = record(
        "1f00ab42",
        "x",
        {"timeout_sec": -1},
        status="pending",
        attempt=2,
        last_seq=3,
        session_id=None,
        created_at=0.0,
        updated_at=0.0,
        last_event_at=0.0,
    )
    fields = parse_record(document)
    assert fields is not None
    assert {**fields, "timeout_sec": -1} == document
    assert fields["timeout_sec"] == rules.TIMEOUT_SECONDS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[
            (field, odd)
            for field in ("created_at", "workdir", "agent_session", "reason")
            for odd in (5, ["x"])
        ],
        *[(field, odd) for field in ("workdir", "agent") for odd in ("\ud800", "a\0b")],
        *[("last_seq", odd) for odd in (-1, 10**30, True, "7")],
        *[("timeout_sec", odd) for odd in (float("inf"), float("nan"), -1, True, "60")],
        *[("auth_token", odd) for odd in ("é" * 20, "x" * 5000, 5)],
        ("validation", 5),
        ("max_rounds", "3"),
        ("attempt", 10**18),
    ],
)
def test_what_does_not_fit_in_a_record_is_left_away(field, value):
    plain = {"schema_version": 1, "job_id": "1f00ab42", "status": "running"}
    assert parse_record({**plain, field: value}) == parse_record(plain)


def test_odd_words_in_a_record():
    plain = {"schema_version": 1, "job_id": "1f00ab42", "status": "running"}
    fields = parse_record({**plain, "prompt": "\ud800 x", "expected_artifacts": [1, "a\0", "b", {}]})
    assert fields is not None
    assert (fields["prompt"], fields["expected_artifacts"]) == ("? x", ["b"])
