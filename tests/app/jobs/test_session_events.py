"""What happens to a session ends or advances its job, in the same commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.app.jobs.job_of_session import ROW, entries

from mam.adapters.store.tables import jobs
from mam.app.jobs import session_events
from mam.core.errors import NotAllowed
from mam.core.session_event import Died, Stopped, Stopping


def publish(fleet, event):
    context = fleet._access.context
    context.registry.note(lambda transaction: context.tell_listeners(transaction, event))


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


@pytest.mark.promise("P33")
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
        fleet._access.context.tell_listeners(transaction, Died(row, status))

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


def test_e2_a_session_with_a_broken_job_can_be_stopped(fleet, job, monkeypatch):
    row = {**ROW, "delegate_job_id": job.id}

    def fail(*_arguments, **_options):
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr(session_events.ledger_writer, "emit", fail)
    publish(fleet, Stopping(row))
    publish(fleet, Stopped(row, "enough"))
    assert fleet.jobs.status(job.id)["set_aside"] == "KeyError: 'what nobody foresaw'"
    monkeypatch.undo()
    fleet.jobs.cancel(job.id)
    assert "set_aside" not in fleet.jobs.status(job.id)
