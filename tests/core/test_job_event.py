"""Events: they are signed in one form, invalid ones are refused, and their order does not matter."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core import job_event as events
from mam.core import job_rules as rules
from mam.core.errors import EventRefused

TOKEN = "0123456789abcdef" * 4
JOB = "1f00ab42"


def made(name="progress", seq=1, attempt=1, token=TOKEN, detail="d", **data):
    event = events.make(
        JOB, name, seq=seq, attempt=attempt, timestamp="2026-11-15T08:00:00Z", detail=detail, data=data
    )
    return events.sign(event, token)


def judge(event, **facts):
    arguments = {
        "token": TOKEN,
        "incarnation": "b" * 28,
        "attempt": 1,
        "recorded": None,
        "ended_seq": None,
        "has_completed": False,
    }
    return events.judge(event, **{**arguments, **facts})


def test_the_signature_is_the_one_that_the_protocol_names():
    event = made(detail="é", more=[1, {"b": None, "a": 1.5}])
    rest = {**event, "data": {key: value for key, value in event["data"].items() if key != "hmac_sig"}}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    signature = hmac.new(TOKEN.encode(), text.encode("ascii"), hashlib.sha256).hexdigest()
    assert event["data"]["hmac_sig"] == signature


@given(
    st.text(max_size=80),
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    ),
)
def test_what_is_written_reads_the_same_and_stays_genuine(detail, data):
    event = made(detail=detail, more=data)
    assert events.parse(events.write(event), JOB) == event
    assert events.is_signed(events.parse(events.write(event)), TOKEN)


@given(st.sampled_from(["seq", "event", "timestamp", "detail", "job_id"]), st.booleans())
def test_any_change_breaks_the_signature(field, in_data):
    event = made(note="x")
    changed = {
        "seq": 2,
        "event": "completed",
        "timestamp": "2026-11-15T08:00:01Z",
        "detail": "D",
        "job_id": "00000000",
    }
    forged = {**event, field: changed[field]}
    if in_data:
        forged = {**event, "data": {**event["data"], "attempt": 2}}
    assert not events.is_signed(forged, TOKEN)


def test_the_token_never_leaves_with_an_event():
    event = made(detail=f"it is {TOKEN}", nested={"x": [TOKEN]})
    assert TOKEN not in events.write(event)
    assert events.is_signed(event, TOKEN)


def test_a_detail_is_one_line_of_500():
    event = made(detail="a\nb\x1b[2J" + "x" * 1000)
    assert "\n" not in event["detail"]
    assert "\x1b" not in event["detail"]
    assert len(event["detail"]) == 500


def raw(**changes):
    event = made()
    return {**event, **changes}


REFUSED_FORMS = {
    "not JSON": b"{",
    "not UTF-8": b'{"a": "\xff"}',
    "a number": b"1",
    "a list": b"[]",
    "nothing": b"",
    "too large": b" " * (64 * 1024 + 1),
    "too deep to read": b"[" * 50000,
    "NaN": json.dumps(raw(data={"x": float("nan")})).encode(),
    "a key twice": events.write(made()).replace('"seq":1', '"seq":1,"seq":9').encode(),
    "another schema": json.dumps(raw(schema_version=2)).encode(),
    "the schema as text": json.dumps(raw(schema_version="1")).encode(),
    "the schema as a switch": json.dumps(raw(schema_version=True)).encode(),
    "a field too many": json.dumps(raw(hmac_sig="x")).encode(),
    "a field too few": json.dumps({key: value for key, value in raw().items() if key != "detail"}).encode(),
    "a seq of 0": json.dumps(raw(seq=0)).encode(),
    "a seq as a switch": json.dumps(raw(seq=True)).encode(),
    "a seq as a fraction": json.dumps(raw(seq=1.0)).encode(),
    "a seq without end": json.dumps(raw(seq=2**60)).encode(),
    "an event of the log": json.dumps(raw(event="cancelled")).encode(),
    "an event as a list": json.dumps(raw(event=["completed"])).encode(),
    "a job that is a path": json.dumps(raw(job_id="../../etc")).encode(),
    "another job": json.dumps(raw(job_id="00000000")).encode(),
    "no time": json.dumps(raw(timestamp="yesterday")).encode(),
    "a long detail": json.dumps(raw(detail="x" * 501)).encode(),
    "a detail as an object": json.dumps(raw(detail={})).encode(),
    "data as text": json.dumps(raw(data="x")).encode(),
    "deep data": json.dumps(raw(data={"x": json.loads("[" * 20 + "]" * 20)})).encode(),
}


@pytest.mark.parametrize("payload", list(REFUSED_FORMS.values()), ids=list(REFUSED_FORMS))
def test_payloads_that_are_not_events(payload):
    with pytest.raises(EventRefused):
        events.parse(payload, JOB)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_python_reads_as_infinity_is_refused(number):
    """No JSON can have infinity, so the signature of such an event could not even be compared."""
    payload = events.write(made(n="NUMBER")).replace('"NUMBER"', number)
    with pytest.raises(EventRefused, match="too large"):
        events.parse(payload)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_bytes_are_an_event_or_refused(payload):
    try:
        events.parse(payload, JOB)
    except EventRefused as error:
        assert error.message


def unsigned(**changes):
    event = made()
    return {**event, "data": {**event["data"], **changes}}


REFUSED_EVENTS = {
    "another token": (made(token="f" * 64), {}),
    "no signature": ({**made(), "data": {"attempt": 1}}, {}),
    "an empty signature": (unsigned(hmac_sig=""), {}),
    "a signature of another form": (unsigned(hmac_sig=made()["data"]["hmac_sig"].upper()), {}),
    "a signature as a list": (unsigned(hmac_sig=["x"]), {}),
    "no token at all": (made(token=""), {"token": ""}),
    "an older attempt": (made(attempt=1), {"attempt": 2}),
    "an attempt to come": (made(attempt=3), {"attempt": 2}),
    "an attempt as text": (made(attempt="1"), {}),
    "a number that another event has": (made(seq=3), {"recorded": made("started", seq=3)}),
    "a second end": (made("completed", seq=9), {"ended_seq": 4}),
    "an error after the end": (made("error", seq=2), {"ended_seq": 4}),
    "a second completed": (made("completed", seq=9), {"has_completed": True}),
    "an event after the end": (made(seq=5), {"ended_seq": 4}),
    "from before a restore": (made(seq=8, incarnation="a" * 28), {}),
    "an incarnation where the database has none": (made(incarnation="a" * 28), {"incarnation": None}),
}


@pytest.mark.parametrize(("event", "facts"), list(REFUSED_EVENTS.values()), ids=list(REFUSED_EVENTS))
def test_refused_events(event, facts):
    with pytest.raises(EventRefused):
        judge(event, **facts)


@pytest.mark.parametrize("event", [made("completed", seq=9), made(seq=5)], ids=["an end", "progress"])
def test_a_refusal_after_the_end_has_a_hint(event):
    with pytest.raises(EventRefused, match="the job has ended already") as refused:
        judge(event, ended_seq=4)
    assert refused.value.hint == f"mam job logs {event['job_id']} shows its events"


def test_a_sender_without_the_token_learns_nothing_about_the_job():
    messages = set()
    for facts in ({}, {"ended_seq": 1}, {"attempt": 7}, {"recorded": made()}):
        with pytest.raises(EventRefused) as refused:
            judge(made(token="f" * 64), **facts)
        messages.add(refused.value.message)
    assert len(messages) == 1


def test_the_same_event_again_is_a_duplicate():
    assert judge(made(), recorded=made()) == events.DUPLICATE
    assert judge(made("completed", seq=4), recorded=made("completed", seq=4), ended_seq=4) == events.DUPLICATE


def test_numbers_count_within_an_incarnation():
    """A copy holds events that were published before it was restored."""
    assert judge(made(incarnation="b" * 28)) == events.APPLIED
    assert judge(made()) == events.APPLIED, "an older mam, or a program elsewhere"
    former = made("completed", seq=4, incarnation="a" * 28)
    assert judge(former, recorded=former, ended_seq=4) == events.DUPLICATE


def test_an_event_that_says_no_attempt_is_of_the_first():
    event = made()
    bare = {**event, "data": {}}
    assert judge(events.sign(bare, TOKEN)) == events.APPLIED


def test_a_late_event_is_kept_and_a_terminal_event_may_have_any_number():
    assert judge(made(seq=2), ended_seq=4) == events.LATE
    assert judge(made("error", seq=1), recorded=made("started", seq=1)) == events.APPLIED


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_four_events_in_any_order_lead_to_the_same_end(order):
    four = [made("started", 1), made("progress", 2), made("permission_required", 3), made("completed", 4)]
    status, ended_seq, recorded = rules.JobStatus.PENDING, None, {}
    for index in [*order, *order]:
        event = four[index]
        verdict = judge(event, recorded=recorded.get(event["seq"]), ended_seq=ended_seq)
        if event["seq"] in recorded:
            assert verdict == events.DUPLICATE
            continue
        recorded[event["seq"]] = event
        if verdict == events.APPLIED:
            status = rules.status_after(status, event["event"], event["data"])
            ended_seq = event["seq"] if event["event"] in events.TERMINAL else ended_seq
    assert (status, len(recorded)) == (rules.JobStatus.COMPLETED, 4)
