"""The observed activity of an agent is reported to its job: in any order, once, and only for its task."""

from __future__ import annotations

import itertools

import pytest
from tests.app.jobs.job_of_session import ROW, entries

from mam.app.jobs.report_activity import report_activity


@pytest.fixture
def report(fleet, job):
    row = {**ROW, "delegate_job_id": job.id}

    def report(state, after, waiting_for=None, ended=None, asks=None):
        context, at = fleet._access.context, job.created_at + after
        ended_at = None if ended is None else job.created_at + ended
        return context.registry.note(
            lambda transaction: report_activity(
                context, transaction, row, state, waiting_for, at=at, ended_at=ended_at, asks=asks
            )
        )

    return report


ENDED = ("progress", "the agent ended its turn")


def test_a_turn_with_a_question(fleet, job, report):
    for state, after, waiting_for in (
        ("idle", 0.5, None),
        ("working", 1, None),
        ("working", 2, None),
        ("waiting", 3, "permission"),
        ("waiting", 4, "permission"),
        ("working", 5, None),
        ("idle", 6, None),
        ("idle", 7, None),
    ):
        report(state, after, waiting_for)
    assert entries(fleet, job) == [("started", ""), ("permission_required", "permission"), ENDED]
    report("working", 8)
    report("idle", 9)
    assert entries(fleet, job)[3:] == [ENDED]


def test_s002_20_a_permission_names_the_tool_and_what_it_asks_for(fleet, job, report):
    report("working", 1)
    report("waiting", 2, "permission", asks="Bash:touch x")
    report("waiting", 3, "permission")
    report("waiting", 4, "permission", asks="Bash:touch x")
    assert entries(fleet, job)[1:] == [("permission_required", "Bash:touch x")]
    report("waiting", 5, "permission", asks="Bash:touch y")
    assert entries(fleet, job)[2:] == [("permission_required", "Bash:touch y")]


def test_s002_20_what_only_the_screen_showed_is_told_again_with_the_tool(fleet, job, report):
    report("waiting", 1, "permission")
    report("waiting", 2, "permission", asks="Bash:touch x")
    report("working", 3)
    report("waiting", 4, "permission")
    assert entries(fleet, job) == [
        ("permission_required", "permission"),
        ("permission_required", "Bash:touch x"),
        ("permission_required", "permission"),
    ]


@pytest.mark.parametrize(
    "order", list(itertools.permutations([("working", 1.0), ("idle", 2.0), ("idle", 3.0)]))
)
def test_hooks_may_be_heard_late(fleet, job, report, order):
    for state, after in order:
        report(state, after)
    assert entries(fleet, job) == [("started", ""), ENDED]


def test_a_turn_between_two_looks_is_reported_once_from_the_agents_record(fleet, job, report):
    report("idle", 1, ended=-5)
    assert entries(fleet, job) == [], "that turn was before the task"
    report("idle", 2, ended=1.5)
    assert entries(fleet, job) == [("started", ""), ENDED]
    report("idle", 3, ended=1.5)
    report("idle", 4, ended=3.5)
    assert entries(fleet, job) == [("started", ""), ENDED]


def test_an_observed_turn_is_not_reported_again_from_the_record(fleet, job, report):
    report("working", 1)
    report("idle", 2)
    report("idle", 3, ended=1.9)
    assert entries(fleet, job) == [("started", ""), ENDED]


def test_what_was_before_the_task_speaks_of_something_else(fleet, job, report):
    assert report("working", -5) is None
    assert report("unknown", 5) is None
    assert report("idle", 6) is None
    assert entries(fleet, job) == []


def test_another_session_says_nothing_of_it(fleet, job):
    row = {**ROW, "id": "s_00000000", "delegate_job_id": job.id}
    at = job.created_at + 1
    fleet._access.context.registry.note(
        lambda transaction: report_activity(fleet._access.context, transaction, row, "working", None, at=at)
    )
    assert entries(fleet, job) == []


def test_an_ended_job_is_left_alone(fleet, job, report):
    fleet.jobs.event(job.id, "completed")
    assert report("working", 1) is None
    assert entries(fleet, job) == [("completed", "")]
