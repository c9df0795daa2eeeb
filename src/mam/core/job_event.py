"""An event of a job: how it is written, signed and read, and whether it counts. Pure.

An event may come from anybody who can write to the broker, twice, late, and in any order. It counts if
the job's own token signed it, for the attempt that is under way, and once. Of terminal events the first
one counts.
"""

from __future__ import annotations

import json
import re

from mam.core.errors import EventRefused
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    # {schema_version, seq, job_id, event, timestamp, detail, data}; data has attempt and hmac_sig.
    Event = dict[str, Any]

SCHEMA = 1
STARTED, PERMISSION, PROGRESS, COMPLETED, ERROR = (
    "started",
    "permission_required",
    "progress",
    "completed",
    "error",
)
ON_THE_WIRE = (STARTED, PERMISSION, PROGRESS, COMPLETED, ERROR)
TERMINAL = (COMPLETED, ERROR)
# Only in the log.
REGISTERED, LAUNCHED, CHECKING, VALIDATED, CANCELLED, TIMEOUT, DROPPED = (
    "registered",
    "agent_launched",
    "checking",
    "validated",
    "cancelled",
    "timeout",
    "dropped",
)
NAMES = (*ON_THE_WIRE, REGISTERED, LAUNCHED, CHECKING, VALIDATED, CANCELLED, TIMEOUT, DROPPED)
# What an event that was handed in turns out to be.
APPLIED, LATE, DUPLICATE = "applied", "late", "duplicate"
EVENTS, STATUS = "events", "status"
PREFIX = "python/mqtt/jobs"
LONGEST_DETAIL, LARGEST, DEEPEST = 500, 64 * 1024, 16
# What stands around the data of an event, at most.
_AROUND = 8 * 1024
_FIELDS = {"schema_version", "seq", "job_id", "event", "timestamp", "detail", "data"}
_JOB_ID = re.compile(r"[0-9a-f]{8}\Z")
_SIGNATURE = re.compile(r"[0-9a-f]{64}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)\Z", re.ASCII)
LAST_SEQ = 2**53 - 1
# What others may count up to: ours go on from there.
HIGHEST_GIVEN = LAST_SEQ // 2
# A shorter token is no secret, and may stand in any text.
_SECRET = 16


def is_job_id(text: object) -> bool:
    """Tell whether this has the form of a job's id."""
    return isinstance(text, str) and bool(_JOB_ID.match(text))


def topic(prefix: str, job_id: str, suffix: str) -> str:
    """Return where the events, or the status, of a job are published."""
    return f"{prefix}/{job_id}/{suffix}"


def make(
    job_id: str,
    event: str,
    *,
    seq: int,
    attempt: int,
    timestamp: str,
    detail: str = "",
    data: dict[str, Any] | None = None,
) -> Event:
    """Return an event that is not signed yet; a detail that is too long is cut."""
    return {
        "schema_version": SCHEMA,
        "seq": seq,
        "job_id": job_id,
        "event": event,
        "timestamp": timestamp,
        "detail": one_line(detail, LONGEST_DETAIL),
        "data": {**(data or {}), "attempt": attempt},
    }


def canonical(event: Event) -> bytes:
    """Return what is signed: the event without its signature, as JSON that has only one form."""
    data = {key: value for key, value in event["data"].items() if key != "hmac_sig"}
    return _dump({**event, "data": data})


def sign(event: Event, token: str) -> Event:
    """Return the event with its signature. Where the token itself stands in it, a mark stands instead."""
    if len(token) >= _SECRET and token in write(event):
        event = {**event, **{key: _without(token, event[key]) for key in ("detail", "data")}}
    signature = _signature(event, token)
    return {**event, "data": {**event["data"], "hmac_sig": signature}}


def is_signed(event: Event, token: str) -> bool:
    """Tell whether the job's token made the signature; it takes the same time whatever the answer is."""
    given = event["data"].get("hmac_sig")
    if not token or not isinstance(given, str) or not _SIGNATURE.match(given):
        return False
    from hmac import compare_digest

    return compare_digest(_signature(event, token), given)


def _signature(event: Event, token: str) -> str:
    # OpenSSL is loaded with it, which verbs that only know of jobs do without.
    from hmac import digest

    return digest(token.encode(), canonical(event), "sha256").hex()


def write(event: Event) -> str:
    """Return an event as it is published and kept."""
    return _dump(event).decode()


def parse(payload: bytes | str, job_id: str | None = None) -> Event:
    """Return the event that a payload holds; EventRefused says what is wrong with it.

    With `job_id` it must be an event of that job. Whether it is genuine is another question: `judge`.
    """
    text = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
    if len(text) > LARGEST:
        raise EventRefused("it is larger than 64 KB")
    try:
        event = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except EventRefused:
        raise
    except (ValueError, RecursionError):
        raise EventRefused("it is not JSON") from None
    if not isinstance(event, dict):
        raise EventRefused("it is not an event")
    if event.get("schema_version") != SCHEMA or type(event["schema_version"]) is not int:
        raise EventRefused("its schema_version is not 1")
    if set(event) != _FIELDS:
        raise EventRefused("it has other fields than an event")
    _check_fields(event)
    if job_id is not None and event["job_id"] != job_id:
        raise EventRefused("it is an event of another job")
    return event


def check_data(data: dict[str, Any]) -> None:
    """Refuse what could be recorded here and would be believed nowhere else."""
    if _depth(data) >= DEEPEST:
        raise EventRefused("its data is nested too deeply")
    try:
        size = len(_dump(data))
    except ValueError:
        raise EventRefused("its data is not JSON") from None
    if size > LARGEST - _AROUND:
        raise EventRefused("its data is too large", hint="put it into a file and name the file")


def attempt_of(event: Event) -> int:
    """Return the attempt that an event speaks of; one that says nothing speaks of the first."""
    attempt = event["data"].get("attempt", 1)
    return attempt if type(attempt) is int else 0


def judge(
    event: Event,
    *,
    token: str,
    attempt: int,
    seen: Event | None,
    ended: int | None,
    has_completed: bool,
) -> str:
    """Return whether a parsed event is applied, late or a duplicate; raise EventRefused where it is neither.

    `seen` is the recorded event of the same attempt and number, `ended` the number of the terminal event of a
    job that has one, `has_completed` tells whether the agent's own `completed` is being checked. One that is
    late belongs into the log, and changes nothing. The signature is looked at first: who cannot sign learns
    nothing about the job.
    """
    if not is_signed(event, token):
        raise EventRefused("its signature is not the job's")
    said = attempt_of(event)
    if said != attempt:
        raise EventRefused(
            f"it is of {'an older' if said < attempt else 'no'} attempt ({said}, now it is {attempt})"
        )
    if seen is not None and seen["data"].get("hmac_sig") == event["data"]["hmac_sig"]:
        return DUPLICATE
    if event["event"] in TERMINAL:
        if ended is not None or has_completed:
            raise EventRefused("the job has its terminal event already")
        return APPLIED
    if seen is not None:
        raise EventRefused(f"its number {event['seq']} was used by another event")
    if ended is None:
        return APPLIED
    if event["seq"] > ended:
        raise EventRefused("the job has ended")
    return LATE


def _check_fields(event: Event) -> None:
    if not is_job_id(event["job_id"]):
        raise EventRefused("its job_id is not the id of a job")
    if type(event["seq"]) is not int or not 0 < event["seq"] <= LAST_SEQ:
        raise EventRefused("its seq is not a number from 1")
    _check_one_of(event["event"], ON_THE_WIRE)
    if not isinstance(event["timestamp"], str) or not _TIME.match(event["timestamp"]):
        raise EventRefused("its timestamp is not a time")
    if not isinstance(event["detail"], str) or len(event["detail"]) > LONGEST_DETAIL:
        raise EventRefused(f"its detail is not a text of at most {LONGEST_DETAIL} characters")
    if not isinstance(event["data"], dict):
        raise EventRefused("its data is not an object")
    if _depth(event["data"]) >= DEEPEST:
        raise EventRefused("its data is nested too deeply")


def _check_one_of(name: object, known: Collection[str]) -> None:
    if not isinstance(name, str) or name not in known:
        raise EventRefused(f"its event is none of {', '.join(known)}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one key: one would be signed and the other one read."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise EventRefused("a key stands in it twice")
    return found


def _no_constant(_name: str) -> None:
    raise EventRefused("it is not JSON")


def _without(token: str, value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(token, "[token]")
    if isinstance(value, dict):
        return {_without(token, key): _without(token, one) for key, one in value.items()}
    return [_without(token, one) for one in value] if isinstance(value, list) else value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [
        inner
        for one in level
        if isinstance(one, (dict, list))
        for inner in (one.values() if isinstance(one, dict) else one)
    ]:
        depth += 1
    return depth


def _dump(value: Any) -> bytes:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()
