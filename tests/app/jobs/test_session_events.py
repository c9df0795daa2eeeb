"""What an agent is seen to do, reported on its job: in any order, once, and only of its own task."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import mam
from mam.adapters.store.tables import jobs
from mam.app.jobs import session_events
from mam.app.jobs.create import new_id, register
from mam.core.errors import NotAllowed
from mam.core.session_event import Died, Stopped, Stopping

ROW = {"id": "s_1f00ab42", "name": "one", "agent": "practice"}


@pytest.fixture
def fleet(quick_path, home):
    with mam.open(str(quick_path)) as opened:
        yield opened


@pytest.fixture
def job(fleet):
    found = register(fleet._access.context, fleet.caller, new_id(), "do it")
    at = found.created_at
    fleet._access.context.registry.note(
        lambda draft: jobs.update(draft, found, session_id=ROW["id"], data={"prompted_at": at})
    )
    return found


@pytest.fixture
def hear(fleet, job):
    row = {**ROW, "delegate_job_id": job.id}

    def hear(state, after, waiting_for=None, ended=None):
        context, at = fleet._access.context, job.created_at + after
        ended_at = None if ended is None else job.created_at + ended
        return context.registry.note(
            lambda draft: session_events.hear(
                context, draft, row, state, waiting_for, at=at, ended_at=ended_at
            )
        )

    return hear


def publish(fleet, event):
    context = fleet._access.context
    context.registry.note(lambda draft: context.publish(draft, event))


def told(fleet, job):
    return [(one["event"], one["detail"]) for one in fleet.jobs.logs(job.id)["events"]][1:]


ENDED = ("progress", "the agent ended its turn")


def test_a_turn_with_a_question(fleet, job, hear):
    for state, after, asked in (
        ("idle", 0.5, None),
        ("working", 1, None),
        ("working", 2, None),
        ("waiting", 3, "permission"),
        ("waiting", 4, "permission"),
        ("working", 5, None),
        ("idle", 6, None),
        ("idle", 7, None),
    ):
        hear(state, after, asked)
    assert told(fleet, job) == [("started", ""), ("permission_required", "permission"), ENDED]
    hear("working", 8)
    hear("idle", 9)
    assert told(fleet, job)[3:] == [ENDED]


@pytest.mark.parametrize(
    "order", list(itertools.permutations([("working", 1.0), ("idle", 2.0), ("idle", 3.0)]))
)
def test_hooks_may_be_heard_late(fleet, job, hear, order):
    for state, after in order:
        hear(state, after)
    assert told(fleet, job) == [("started", ""), ENDED]


def test_a_turn_that_nobody_saw_is_reported_once_from_the_agents_record(fleet, job, hear):
    hear("idle", 1, ended=-5)
    assert told(fleet, job) == [], "that turn was before the task"
    hear("idle", 2, ended=1.5)
    assert told(fleet, job) == [("started", ""), ENDED]
    hear("idle", 3, ended=1.5)
    hear("idle", 4, ended=3.5)
    assert told(fleet, job) == [("started", ""), ENDED]


def test_a_turn_that_was_seen_is_not_reported_again_from_the_record(fleet, job, hear):
    hear("working", 1)
    hear("idle", 2)
    hear("idle", 3, ended=1.9)
    assert told(fleet, job) == [("started", ""), ENDED]


def test_what_was_before_the_task_speaks_of_something_else(fleet, job, hear):
    assert hear("working", -5) is None
    assert hear("unknown", 5) is None
    assert hear("idle", 6) is None
    assert told(fleet, job) == []


def test_another_session_says_nothing_of_it(fleet, job):
    row = {**ROW, "id": "s_00000000", "delegate_job_id": job.id}
    at = job.created_at + 1
    fleet._access.context.registry.note(
        lambda draft: session_events.hear(fleet._access.context, draft, row, "working", None, at=at)
    )
    assert told(fleet, job) == []


def test_an_ended_job_is_left_alone(fleet, job, hear):
    fleet.jobs.event(job.id, "completed")
    assert hear("working", 1) is None
    assert told(fleet, job) == [("completed", "")]


def test_stop_and_death(fleet, job):
    row = {**ROW, "delegate_job_id": job.id}
    publish(fleet, Stopping(row))
    publish(fleet, Stopped(row, "enough"))
    assert told(fleet, job) == [("progress", "terminating"), ("completed", "enough")]
    assert fleet.jobs.status(job.id)["status"] == "cancelled"
    publish(fleet, Died(row, 1))
    publish(fleet, Stopping(row))
    assert len(told(fleet, job)) == 2


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
    assert [one["event"] for one in fleet.jobs.logs(job.id)["events"]][-2:] == ["progress", "completed"]


@pytest.mark.parametrize(
    ("given", "status", "detail"),
    [
        (None, 2, "agent bootstrap failed (exit 2)"),
        (1.0, 137, "the agent ended without a report (exit 137)"),
        (1.0, None, "the agent ended without a report (exit unknown)"),
    ],
)
def test_a_death_ends_the_job_in_the_same_commit(fleet, job, given, status, detail):
    row = {**ROW, "delegate_job_id": job.id}

    def work(draft):
        jobs.update(draft, jobs.find(draft, job.id), data={"prompted_at": given})
        fleet._access.context.publish(draft, Died(row, status))

    fleet._access.context.registry.note(work)
    assert told(fleet, job) == [("error", detail)]


def test_an_agent_that_has_reported_may_leave(fleet, job):
    fleet._access.context.registry.note(
        lambda draft: jobs.update(draft, jobs.find(draft, job.id), data={"expected_artifacts": ["x"]})
    )
    fleet.jobs.event(job.id, "completed")
    row = {**ROW, "delegate_job_id": job.id}
    publish(fleet, Died(row, 0))
    assert fleet.jobs.status(job.id)["status"] == "checking"
