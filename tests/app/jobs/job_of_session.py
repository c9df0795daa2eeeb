"""A session that works on a job, and what the job's log says."""

from __future__ import annotations

ROW = {"id": "s_1f00ab42", "name": "one", "agent": "practice"}


def entries(fleet, job):
    return [(entry["event"], entry["detail"]) for entry in fleet.jobs.logs(job.id)["events"]][1:]
