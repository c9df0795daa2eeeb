"""Messages of a broker with any topic and payload: only what a job's token signed counts, and that once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.app.brokers.test_relay_both_ways import relaying
from tests.app.over_broker import SECONDS, log_of, publish, submit
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.bad_input import (
    DEPTH,
    TEXTS,
    as_json,
    damaged,
    examples,
    json_texts,
    strange_documents,
    texts,
)
from tests.fuzz.command import run
from tests.mosquitto import PASSWORDS

import mam
from mam.adapters.mqtt.connection import Connection, ReceivedMessage
from mam.adapters.store.tables import set_aside
from mam.app.brokers import config as brokers
from mam.app.brokers import wait_remote
from mam.app.brokers.relay_both_ways import CONNECTED, Relay
from mam.app.jobs.find import token_of
from mam.core import job_event as events
from mam.core import republish_request
from mam.core.broker_address import Broker
from mam.core.errors import EventRefused

BROKER = "mqtt://127.0.0.1:1"
OTHER_TOKEN, SIGNED_BY_NOBODY = "0" * 64, "ab" * 32
JOB = "1f00ab42"


def event_of(job_id: str, name: str = events.PROGRESS, seq: int = 1, **data: Any) -> dict[str, Any]:
    return events.make(
        job_id, name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", detail="über", data=data
    )


KNOWN = [
    event_of(JOB),
    event_of(JOB, events.COMPLETED, 3, reason="because", by="user"),
    event_of(JOB, events.ERROR, 4, incarnation="0197a1b2c3d4-1f", checking=True),
    event_of(JOB, events.STARTED, 2, nested={"a": [1, 2.5, None, "x"]}),
    event_of(JOB, events.PERMISSION, 5, hmac_sig=SIGNED_BY_NOBODY),
]
SIGNATURES = ("of the job", "of another job", "of nobody", "as it is")


def is_event(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("data"), dict)


def signed_as(document: Any, way: str, token: str) -> Any:
    """Return a document, which may be no event, with a signature if it can have one."""
    if way == "as it is" or not is_event(document):
        return document
    if way == "of nobody":
        return {**document, "data": {**document["data"], "hmac_sig": SIGNED_BY_NOBODY}}
    try:
        return events.sign(document, token if way == "of the job" else OTHER_TOKEN)
    except (AttributeError, RecursionError, TypeError, ValueError):
        return {**document, "data": {**document["data"], "hmac_sig": SIGNED_BY_NOBODY}}


class Root:
    """A root with jobs of a broker, and a relay that has no connection."""

    def __init__(self, place: Path) -> None:
        self.fleet = mam.open(str(place))
        self.fleet.init()
        self.context = self.fleet._access.context
        self.broker = Broker(BROKER)

    def new_job(self) -> str:
        return submit(self.fleet)

    def relay(self) -> Relay:
        self.said: list[dict[str, Any]] = []
        return Relay(self.context, self.fleet.caller, self.broker, self.said.append)

    def receive(
        self, topic: str, payload: bytes, *, relay: Relay | None = None, retained: bool = False
    ) -> None:
        message = ReceivedMessage(topic, payload, retained, 1)
        with oracle.bounded():
            (relay or self.relay())._handle_or_set_aside(message)
        nothing: list[set_aside.SetAside] = []
        flaws = self.context.registry.peek(set_aside.listed, nothing)
        assert [item.reason for item in flaws] == [], "mam failed on a message"
        json.dumps(self.said, allow_nan=False).encode()

    def entries(self, job_id: str) -> list[str]:
        """Return the events of a job that count."""
        return [name for name, _ in log_of(self.fleet, job_id) if name != events.DROPPED]

    def status(self, job_id: str) -> str:
        return str(self.fleet.jobs.status(job_id)["status"])


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Iterator[Root]:
    with pytest.MonkeyPatch.context() as patch:
        settle_in(tmp_path_factory.mktemp("home"), patch)
        patch.setenv("MAM_BROKER", BROKER)
        made = Root(tmp_path_factory.mktemp("root"))
        yield made
        made.fleet.close()


def for_job(document: Any, job_id: str) -> Any:
    """Return a document that names this job where it named the one of the examples."""
    return json.loads(json.dumps(document).replace(JOB, job_id))


WAYS = some.sampled_from(SIGNATURES)
DOCUMENTS = strange_documents(KNOWN) | some.sampled_from(KNOWN)


# A number that JSON has, and that no JSON of a signature can have.
ENDLESS = as_json({**KNOWN[4], "data": {**KNOWN[4]["data"], "n": "HUGE"}}).replace(b'"HUGE"', b"1e999")


@pytest.mark.promise("P46")
@examples(60)
@given(
    payload=json_texts(KNOWN) | damaged([as_json(document) for document in KNOWN]), retained=some.booleans()
)
@example(payload=ENDLESS, retained=False)
@example(payload=b"[" * DEPTH, retained=False)
@example(payload=b'{"a":' * DEPTH, retained=False)
@example(payload=b"", retained=True)
@example(payload=b"\0" * 100, retained=False)
@example(payload=b"x" * 16 * 1024 * 1024, retained=False)
def test_a_payload_that_nobody_signed_counts_nothing(root, payload, retained):
    job_id = root.new_job()
    before = root.entries(job_id), root.status(job_id)
    for leaf in (events.EVENTS, events.STATUS, republish_request.ASK):
        root.receive(
            root.broker.topic(job_id, leaf), payload.replace(JOB.encode(), job_id.encode()), retained=retained
        )
    assert (root.entries(job_id), root.status(job_id)) == before


@pytest.mark.promise("P34")
@examples(60)
@given(document=DOCUMENTS, way=WAYS, retained=some.booleans(), is_status=some.booleans())
@example(
    # No column of the database holds such a number.
    document={**KNOWN[0], "data": {**KNOWN[0]["data"], "attempt": 10**30}},
    way="of the job",
    retained=False,
    is_status=False,
)
def test_an_event_counts_once_and_only_with_the_token_of_its_job(root, document, way, retained, is_status):
    job_id = root.new_job()
    event = signed_as(for_job(document, job_id), way, token_of(root.context, job_id))
    before = root.entries(job_id)
    topic = root.broker.topic(job_id, events.STATUS if is_status else events.EVENTS)
    for _ in range(2):
        root.receive(topic, as_json(event), retained=retained)
    after = root.entries(job_id)
    if after != before:
        assert way == "of the job"
        assert is_status or not retained
        assert after == [*before, event["event"]], "an event counts once"
    for verb in ("status", "logs"):
        # The event itself is kept as it was signed.
        code, out, err = run(["--workspace", root.fleet.root, "job", verb, job_id])
        assert (code, err) == (0, "") and oracle.is_printable_screen(out)
    json.dumps(root.fleet.jobs.status(job_id), allow_nan=False)


# Three events on the way and two ends of one job.
STEPS = (
    (1, events.STARTED),
    (2, events.PROGRESS),
    (3, events.PERMISSION),
    (4, events.COMPLETED),
    (5, events.ERROR),
    (0, "forged"),
    (0, "retained"),
)


@pytest.mark.promise("P33")
@pytest.mark.promise("P34")
@examples(40)
@given(order=some.lists(some.sampled_from(STEPS), min_size=1, max_size=12))
def test_in_any_order_each_event_counts_once_and_the_first_end_is_the_only_one(root, order):
    job_id = root.new_job()
    token = token_of(root.context, job_id)
    relay = root.relay()
    topic = root.broker.topic(job_id, events.EVENTS)
    for seq, name in order:
        genuine = events.sign(event_of(job_id, name if seq else events.COMPLETED, seq or 9), token)
        event = genuine if name != "forged" else {**genuine, "detail": "changed on the way"}
        root.receive(topic, events.write(event).encode(), relay=relay, retained=name == "retained")
    counted = [name for name in root.entries(job_id) if name in events.ON_THE_WIRE]
    assert len(counted) == len(set(counted))
    ends = [name for seq, name in order if seq and name in events.TERMINAL]
    assert [name for name in counted if name in events.TERMINAL] == ends[:1]
    assert root.status(job_id) == (ends[0] if ends else "running" if counted else "pending")


TOPICS = texts.flatmap(
    lambda text: some.sampled_from(
        [
            text,
            f"{events.PREFIX}/{text}/events",
            f"{events.PREFIX}/JOB/{text}",
            f"{text}/JOB/events",
            f"{events.PREFIX}/JOB/events/{text}",
            f"{events.PREFIX}//JOB/events",
            f"/{events.PREFIX}/JOB/events",
            f"{events.PREFIX}/JOB{text}/status",
            f"{events.PREFIX}/+/events",
            f"{events.PREFIX}/#",
            "$SYS/broker/uptime",
        ]
    )
)


@examples(50)
@given(topic=TOPICS)
def test_a_topic_of_any_name_is_of_one_job_or_of_none(root, topic):
    job_id = root.new_job()
    event = events.sign(event_of(job_id, events.COMPLETED), token_of(root.context, job_id))
    named = topic.replace("JOB", job_id)
    root.receive(named, events.write(event).encode())
    is_its_own = named in (root.broker.topic(job_id, leaf) for leaf in (events.EVENTS, events.STATUS))
    assert root.status(job_id) == ("completed" if is_its_own else "pending")


@examples(80)
@example(payloads=[(KNOWN[0], "of the job")], rest=ENDLESS)
@given(payloads=some.lists(some.tuples(DOCUMENTS, WAYS), min_size=1, max_size=4), rest=json_texts(KNOWN))
def test_a_machine_that_waits_takes_or_refuses_each_payload(payloads, rest):
    """It has the token of the job and no registry."""
    token = "1" * 64
    job = wait_remote._Job(JOB, token)
    for document, way in payloads:
        event = oracle.read(job.take_event, as_json(signed_as(document, way, token)))
        if event is not None and not isinstance(event, EventRefused):
            assert way == "of the job"
            json.dumps(event, allow_nan=False)
    oracle.read(job.take_event, rest)
    assert oracle.read(job.is_over) in (True, False)
    if job.end is not None:
        json.dumps(oracle.read(job.as_json), allow_nan=False)


REQUEST = json.loads(republish_request.write(JOB, "1" * 64, "2026-11-15T08:00:00Z", "ab"))


@examples(80)
@given(payload=json_texts([REQUEST]))
def test_a_request_that_nobody_signed_is_none(payload):
    is_genuine = oracle.read(republish_request.is_genuine, payload, JOB, "1" * 64)
    assert is_genuine == (_is_as(payload, REQUEST) and len(payload) <= 4096), (
        "a request is signed as a whole, whatever its form"
    )


def _is_as(payload: bytes, document: object) -> bool:
    try:
        return json.dumps(json.loads(payload), sort_keys=True) == json.dumps(document, sort_keys=True)
    except (ValueError, RecursionError):
        return False


def _properties() -> Properties:
    """Return whatever MQTT 5.0 lets a sender attach to a message."""
    properties = Properties(PacketTypes.PUBLISH)
    properties.PayloadFormatIndicator = 1
    properties.MessageExpiryInterval = 3600
    properties.ContentType = "application/x-sh"
    properties.ResponseTopic = "python/mqtt/jobs/1f00ab42/events"
    properties.CorrelationData = b"\0" * 1000
    properties.UserProperty = [("a\u202e", "b" * 1000), ("a\u202e", "\U0001f600"), ("", "")]
    return properties


@pytest.mark.slow
def test_strange_messages_through_a_real_broker_hold_up_no_genuine_one(home, workspace, mosquitto, until):
    """The relay goes on behind each of them: what came after them counts."""
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        job_id = submit(fleet)
        context = fleet._access.context
        sender = Connection(brokers.find(context), PASSWORDS["mam"], role="test")
        sender.open(SECONDS)
        payloads = [b"", b"\xff" * 100, b"[" * DEPTH, b"x" * 100_000, ENDLESS, as_json(KNOWN[4])]
        payloads += [text.encode("utf-8", "surrogatepass") for text in TEXTS]
        topics = [f"{events.PREFIX}/{job_id}/{leaf}" for leaf in ("events", "status", "ask")]
        topics += [f"{events.PREFIX}/\u202e{job_id}/events", f"{events.PREFIX}/00000000/events"]
        news: list[dict[str, Any]] = []
        with relaying(fleet, news):
            until(lambda: any(item.get("broker", {}).get("state") == CONNECTED for item in list(news)))
            for number, payload in enumerate(payloads):
                sent = [
                    sender._client.publish(
                        topic,
                        payload.replace(JOB.encode(), job_id.encode()),
                        qos=1,
                        retain=number % 7 == 0,
                        properties=_properties(),
                    ).mid
                    for topic in topics
                ]
                sender.finish(sent, SECONDS)
            event = events.write(events.sign(event_of(job_id, events.COMPLETED), token_of(context, job_id)))
            publish(sender, topics[0], event)
            until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
        sender.close()
        nothing: list[set_aside.SetAside] = []
        assert [item.reason for item in context.registry.peek(set_aside.listed, nothing)] == []
        entries = [name for name, _ in log_of(fleet, job_id)]
        assert events.DROPPED in entries, "the relay saw none of them"
        assert [name for name in entries if name != events.DROPPED] == [events.REGISTERED, events.COMPLETED]
