"""A question of somebody who waits elsewhere: publish again what there is of a job. Pure.

A broker forgets what it was told when it is killed, and tells nobody. Who was not connected, or finds that
the broker does not know it any more, asks; the machine that has the job's log publishes it again, and
whoever has an event already leaves it. Only who has the job's token may ask.
"""

from __future__ import annotations

import json

from mam.core import job_event as events

ASK = "ask"
_LARGEST = 4096


def write(job_id: str, token: str, timestamp: str, nonce: str) -> str:
    """Return a question that is signed with the job's token."""
    made = events.make(job_id, ASK, seq=0, attempt=0, timestamp=timestamp, data={"nonce": nonce})
    return events.write(events.sign(made, token))


def is_genuine(payload: bytes, job_id: str, token: str) -> bool:
    """Tell whether these bytes ask for this job and its token signed them."""
    if len(payload) > _LARGEST:
        return False
    try:
        asked = json.loads(payload)
        said = (asked["event"], asked["job_id"], type(asked["data"]))
        return said == (ASK, job_id, dict) and events.is_signed(asked, token)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
