"""The observed activity of an agent is reported to its job: in any order, once, and only for its task."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import mam
from mam.adapters.store.tables import jobs
from mam.app.jobs import report_activity
from mam.app.jobs.new_job import new_id, record_job
from mam.core.errors import NotAllowed
from mam.core.session_event import Died, Stopped, Stopping

ROW = {"id": "s_1f00ab42", "name": "one", "agent": "practice"}


@pytest.fixture
def fleet(quick_path, home):
    with mam.open(str(quick_path)) as opened:
        yield opened


@pytest.fixture
def job(fleet):
    registered = record_job(fleet._access.context, fleet.caller, new_id(), "do it")
    at = registered.created_at
    fleet._access.context.registry.note(
        lambda transaction: jobs.update(
            transaction, registered, session_id=ROW["id"], data={"prompted_at": at}
        )
    )
    return registered


@pytest.fixture
def report(fleet, job):
    row = {**ROW, "delegate_job_id": job.id}

    def report(state, after, waiting_for=None, ended=None):
        context, at = fleet._access.context, job.created_at + after
        ended_at = None if ended is None else job.created_at + ended
        return context.registry.note(
            lambda transaction: report_activity.report_activity(
                context, transaction, row, state, waiting_for, at=at, ended_at=ended_at
            )
        )

    return report


def publish(fleet, event):
    context = fleet._access.context
    context.registry.note(lambda transaction: context.publish(transaction, event))


def entries(fleet, job):
    return [(entry["event"], entry["detail"]) for entry in fleet.jobs.logs(job.id)["events"]][1:]


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
        lambda transaction: report_activity.report_activity(
            fleet._access.context, transaction, row, "working", None, at=at
        )
    )
    assert entries(fleet, job) == []


def test_an_ended_job_is_left_alone(fleet, job, report):
    fleet.jobs.event(job.id, "completed")
    assert report("working", 1) is None
    assert entries(fleet, job) == [("completed", "")]


def test_stop_and_death(fleet, job):
    row = {**ROW, "delegate_job_id": job.id}
    publish(fleet, Stopping(row))
    publish(fleet, Stopped(row, "enough"))
    assert entries(fleet, job) == [("progress", "terminating"), ("completed", "enough")]
    assert fleet.jobs.status(job.id)["status"] == "cancelled"
    publish(fleet, Died(row, 1))
    publish(fleet, Stopping(row))
    assert len(entries(fleet, job)) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token.chmod(0o644),
        lambda token: token.write_bytes(b"\xff\xfe"),
        lambda token: token.write_bytes(b""),
        lambda token: token.unlink(),
        lambda token: (token.unlink(), token.mkdir()),
        lambda token: (token.unlink(), token.symlink_to("/dev/zero")),
        lambda token: (token.unlink(), os.mkfifo(token)),
    ],
)
def test_whatever_became_of_the_token_a_session_can_be_ended(fleet, job, spoil):
    row = {**ROW, "delegate_job_id": job.id}
    spoil(Path(fleet._access.context.paths.jobs, f"{job.id}.token"))
    with pytest.raises(NotAllowed):
        fleet.jobs.event(job.id, "started")
    publish(fleet, Stopping(row))
    publish(fleet, Stopped(row, "enough"))
    assert fleet.jobs.status(job.id)["status"] == "cancelled"
    assert [entry["event"] for entry in fleet.jobs.logs(job.id)["events"]][-2:] == ["progress", "completed"]


@pytest.mark.parametrize(
    ("prompted_at", "status", "detail"),
    [
        (None, 2, "agent bootstrap failed (exit 2)"),
        (1.0, 137, "the agent ended without a report (exit 137)"),
        (1.0, None, "the agent ended without a report (exit unknown)"),
    ],
)
def test_a_death_ends_the_job_in_the_same_commit(fleet, job, prompted_at, status, detail):
    row = {**ROW, "delegate_job_id": job.id}

    def work(transaction):
        jobs.update(transaction, jobs.find(transaction, job.id), data={"prompted_at": prompted_at})
        fleet._access.context.publish(transaction, Died(row, status))

    fleet._access.context.registry.note(work)
    assert entries(fleet, job) == [("error", detail)]


def test_an_agent_that_has_reported_may_leave(fleet, job):
    fleet._access.context.registry.note(
        lambda transaction: jobs.update(
            transaction, jobs.find(transaction, job.id), data={"expected_artifacts": ["x"]}
        )
    )
    fleet.jobs.event(job.id, "completed")
    row = {**ROW, "delegate_job_id": job.id}
    publish(fleet, Died(row, 0))
    assert fleet.jobs.status(job.id)["status"] == "checking"
