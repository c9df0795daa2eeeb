"""An event of a job: how it is written, signed, parsed and accepted. Pure.

Anybody who can publish to the broker can send an event, and events may arrive twice, late and in any order.
An event is accepted once, and only if the job's token signed it for the current attempt. Only the first
terminal event is accepted.
"""

from __future__ import annotations

import json
import re
from math import isinf

from mam.core.errors import EventRefused
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    # {schema_version, seq, job_id, event, timestamp, detail, data}; data has attempt and hmac_sig, and in an
    # event that mam publishes also the incarnation of its database.
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
# Events that appear only in the ledger and are never published.
REGISTERED, LAUNCHED, CHECKING, VALIDATED, CANCELLED, TIMEOUT, DROPPED, PARKED, RELEASED = (
    "registered",
    "agent_launched",
    "checking",
    "validated",
    "cancelled",
    "timeout",
    "dropped",
    "parked",
    "released",
)
_IN_LEDGER = (REGISTERED, LAUNCHED, CHECKING, VALIDATED, CANCELLED, TIMEOUT, DROPPED, PARKED, RELEASED)
NAMES = (*ON_THE_WIRE, *_IN_LEDGER)
# Verdicts about an event that came in.
APPLIED, LATE, DUPLICATE = "applied", "late", "duplicate"
EVENTS, STATUS = "events", "status"
PREFIX = "python/mqtt/jobs"
LONGEST_DETAIL, LARGEST, DEEPEST = 500, 64 * 1024, 16
# The largest size of an event without its data.
_ENVELOPE = 8 * 1024
_FIELDS = {"schema_version", "seq", "job_id", "event", "timestamp", "detail", "data"}
_JOB_ID = re.compile(r"[0-9a-f]{8}\Z")
_SIGNATURE = re.compile(r"[0-9a-f]{64}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)\Z", re.ASCII)
LAST_SEQ = 2**53 - 1
# The highest number that a foreign event may have, so that mam's own numbers never run out.
HIGHEST_GIVEN = LAST_SEQ // 2
# A shorter token is no secret: it may be part of an ordinary text.
_LEAST_SECRET = 16


def is_job_id(text: object) -> bool:
    """Tell whether a text has the form of a job's id."""
    return isinstance(text, str) and bool(_JOB_ID.match(text))


def topic(prefix: str, job_id: str, suffix: str) -> str:
    """Return the topic on which the events, or the status, of a job are published."""
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
    """Return an unsigned event; a detail that is too long is cut."""
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
    """Return the bytes to sign: the event without its signature, as JSON in its only form."""
    data = {key: value for key, value in event["data"].items() if key != "hmac_sig"}
    return _dump({**event, "data": data})


def sign(event: Event, token: str) -> Event:
    """Return the event with its signature; `[token]` replaces the token itself in its detail and data."""
    if len(token) >= _LEAST_SECRET and token in write(event):
        event = {**event, **{key: _without(token, event[key]) for key in ("detail", "data")}}
    signature = _signature(event, token)
    return {**event, "data": {**event["data"], "hmac_sig": signature}}


def is_signed(event: Event, token: str) -> bool:
    """Tell whether the job's token made the signature. The comparison takes constant time."""
    signature = event["data"].get("hmac_sig")
    if not token or not isinstance(signature, str) or not _SIGNATURE.match(signature):
        return False
    from hmac import compare_digest

    return compare_digest(_signature(event, token), signature)


def _signature(event: Event, token: str) -> str:
    # Imported here because hmac loads OpenSSL, which slows the start of verbs that sign nothing.
    from hmac import digest

    return digest(token.encode(), canonical(event), "sha256").hex()


def write(event: Event) -> str:
    """Return an event as the text that is published and stored."""
    return _dump(event).decode()


def parse(payload: bytes | str, job_id: str | None = None) -> Event:
    """Return the event in a payload; EventRefused says what is wrong with the payload.

    With `job_id`, the event must belong to that job. `parse` does not check the signature: `judge` does.
    """
    text = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
    if len(text) > LARGEST:
        raise EventRefused("it is larger than 64 KB")
    try:
        event = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except EventRefused:
        raise
    except (ValueError, RecursionError):
        raise EventRefused("it is not JSON") from None
    if not isinstance(event, dict):
        raise EventRefused("it is not an event")
    if event.get("schema_version") != SCHEMA or type(event["schema_version"]) is not int:
        raise EventRefused("its schema_version is not 1")
    if set(event) != _FIELDS:
        raise EventRefused("its fields are not those of an event")
    _check_fields(event)
    if job_id is not None and event["job_id"] != job_id:
        raise EventRefused("it is an event of another job")
    return event


def check_data(data: dict[str, Any]) -> None:
    """Raise EventRefused for data that other machines would refuse, before it is recorded here."""
    if _depth(data) >= DEEPEST:
        raise EventRefused("its data is nested too deeply")
    try:
        size = len(_dump(data))
    except ValueError:
        raise EventRefused("its data is not JSON") from None
    if size > LARGEST - _ENVELOPE:
        raise EventRefused("its data is too large", hint="put it into a file and name the file")


def attempt_of(event: Event) -> int:
    """Return the attempt of an event; an event without one belongs to the first, and 0 is none."""
    attempt = event["data"].get("attempt", 1)
    return attempt if type(attempt) is int and 0 < attempt <= LAST_SEQ else 0


def incarnation_of(event: Event) -> str | None:
    """Return the incarnation of the database that recorded an event; of two, the greater one is later.

    None for an event that a program signed elsewhere, or an older mam: its numbers count as they are.
    """
    incarnation = event["data"].get("incarnation")
    return incarnation if isinstance(incarnation, str) else None


def judge(
    event: Event,
    *,
    token: str,
    incarnation: str | None,
    attempt: int,
    recorded: Event | None,
    ended_seq: int | None,
    has_completed: bool,
) -> str:
    """Return whether a parsed event is APPLIED, LATE or a DUPLICATE; raise EventRefused otherwise.

    `incarnation` is that of this database. An event of another one was published before a restore: what it
    says of this job may not be true any more. `recorded` is the recorded event of the same attempt and
    number. `ended_seq` is the number of the job's
    terminal event, if there is one. `has_completed` means that mam is checking the agent's `completed`.
    A late event belongs into the ledger, but changes nothing. The signature is checked first, so that
    a sender without the token learns nothing about the job.
    """
    if not is_signed(event, token):
        raise EventRefused("the job's token did not sign it")
    is_recorded = recorded is not None and recorded["data"].get("hmac_sig") == event["data"]["hmac_sig"]
    if not is_recorded and incarnation_of(event) not in (None, incarnation):
        raise EventRefused("it was published before the database was restored")
    _check_attempt(event, attempt)
    if is_recorded:
        return DUPLICATE
    if event["event"] in TERMINAL:
        if ended_seq is not None:
            raise _after_the_end(event)
        if has_completed:
            raise EventRefused(
                "somebody has reported completed already, and mam checks the result",
                hint=f"mam job wait {event['job_id']} waits for the end",
            )
        return APPLIED
    if recorded is not None:
        raise EventRefused(f"its number {event['seq']} was used by another event")
    if ended_seq is None:
        return APPLIED
    if event["seq"] > ended_seq:
        raise _after_the_end(event)
    return LATE


def _check_attempt(event: Event, attempt: int) -> None:
    event_attempt = attempt_of(event)
    if event_attempt != attempt:
        age = "an older" if event_attempt < attempt else "an unknown"
        raise EventRefused(f"it belongs to {age} attempt ({event_attempt}, the current one is {attempt})")


def _after_the_end(event: Event) -> EventRefused:
    return EventRefused("the job has ended already", hint=f"mam job logs {event['job_id']} shows its events")


def _check_fields(event: Event) -> None:
    if not is_job_id(event["job_id"]):
        raise EventRefused("its job_id is not the id of a job")
    if type(event["seq"]) is not int or not 0 < event["seq"] <= LAST_SEQ:
        raise EventRefused("its seq is not a whole number from 1")
    _check_one_of(event["event"], ON_THE_WIRE)
    if not isinstance(event["timestamp"], str) or not _TIME.match(event["timestamp"]):
        raise EventRefused("its timestamp is not a time")
    if not isinstance(event["detail"], str) or len(event["detail"]) > LONGEST_DETAIL:
        raise EventRefused(f"its detail is not a text of at most {LONGEST_DETAIL} characters")
    if not isinstance(event["data"], dict):
        raise EventRefused("its data is not an object")
    if _depth(event["data"]) >= DEEPEST:
        raise EventRefused("its data is nested too deeply")


def _check_one_of(name: object, names: Collection[str]) -> None:
    if not isinstance(name, str) or name not in names:
        raise EventRefused(f"its event is none of {', '.join(names)}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse two values under one key: one might be signed and the other one used."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise EventRefused("it has a key twice")
    return mapping


def _no_constant(_name: str) -> None:
    raise EventRefused("it is not JSON")


def _finite(text: str) -> float:
    """Refuse a number such as 1e999: Python reads it as infinity, and no JSON can have that."""
    number = float(text)
    if isinf(number):
        raise EventRefused("it has a number that is too large")
    return number


def _without(token: str, value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(token, "[token]")
    if isinstance(value, dict):
        return {_without(token, key): _without(token, inner) for key, inner in value.items()}
    return [_without(token, item) for item in value] if isinstance(value, list) else value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [
        inner
        for outer in level
        if isinstance(outer, (dict, list))
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
    return depth


def _dump(value: Any) -> bytes:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()
