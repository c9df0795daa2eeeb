"""A fleet with a job that the session of `job_of_session` works on."""

from __future__ import annotations

import pytest
from tests.app.jobs.job_of_session import ROW

import mam
from mam.adapters.store.tables import jobs
from mam.app.jobs.new_job import new_id, record_job


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
