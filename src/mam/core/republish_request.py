"""A request over the broker to publish the events of a job again. Pure.

A broker that is killed loses its events, and tells nobody. A client that waits for a job, and was not
connected or lost its session with the broker, sends this request. The machine that has the job's ledger then
publishes the events again; receivers ignore the events that they already have. The job's token signs the
request.
"""

from __future__ import annotations

import json

from mam.core import job_event as events

ASK = "ask"
_LARGEST = 4096


def write(job_id: str, token: str, timestamp: str, nonce: str) -> str:
    """Return a request that is signed with the job's token."""
    request = events.make(job_id, ASK, seq=0, attempt=0, timestamp=timestamp, data={"nonce": nonce})
    return events.write(events.sign(request, token))


def is_genuine(payload: bytes, job_id: str, token: str) -> bool:
    """Tell whether a payload is a request for this job that the job's token signed."""
    if len(payload) > _LARGEST:
        return False
    try:
        request = json.loads(payload)
        fields = (request["event"], request["job_id"], type(request["data"]))
        return fields == (ASK, job_id, dict) and events.is_signed(request, token)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
