"""Addresses of brokers: which are valid, and that no message shows a password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core.broker_address import Broker, of_json, parse_prefix, pause
from mam.core.errors import InvalidSettings


def test_what_an_address_means() -> None:
    plain = Broker("mqtt://broker.test")
    assert (plain.is_tls, plain.host, plain.port, plain.username) == (False, "broker.test", 1883, None)
    whole = Broker("mqtts://a%40b@[::1]:1234/")
    assert (whole.is_tls, whole.host, whole.port, whole.username) == (True, "::1", 1234, "a@b")
    assert whole.address == "mqtts://a%40b@[::1]:1234"
    assert Broker("mqtts://x").port == 8883


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker.test",
        "http://broker.test",
        "mqtt://",
        "mqtt://:1883",
        "mqtt://a:b:c",
        "mqtt://h:99999",
        "mqtt://h/path",
        "mqtt://h?x=1",
        "mqtt://h#x",
        "mqtt://h h",
        "mqtt://h\n",
        "mqtt://[::1",
        "mqtt://h:x",
    ],
)
def test_what_is_no_address(url) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Broker(url)
    assert caught.value.hint


@pytest.mark.parametrize("url", ["mqtt://me:s3cret@host", "mqtts://:s3cret@host:1", "http://a:s3cret@b"])
def test_a_password_in_an_address_is_refused_and_not_repeated(url) -> None:
    with pytest.raises(InvalidSettings, match="must not hold a password") as caught:
        Broker(url)
    assert "s3cret" not in str(caught.value.as_json())


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        "mqtt://h",
        {"url": 3},
        {"url": "mqtt://h", "password": "x"},
        {"url": "mqtt://h", "protocol": "4"},
        {"url": "mqtt://h", "keepalive": 0},
        {"url": "mqtt://h", "keepalive": True},
        {"url": "mqtt://h", "keepalive": "5"},
        {"url": "mqtt://h", "ca_file": "x"},
        {"url": "mqtts://h", "ca_file": ""},
        {"url": "mqtt://h", "password_file": 3},
    ],
)
def test_what_is_no_broker(values) -> None:
    with pytest.raises(InvalidSettings):
        of_json(values)


def test_a_broker_survives_a_record() -> None:
    values = {"url": "mqtts://me@h:1", "ca_file": "/ca", "password_env": "SECRET", "prefix": "a/b"}
    record = of_json(values).as_json()
    assert record == {**values, "keepalive": 15, "protocol": "5"}
    assert of_json(record).as_json() == record


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a//b", "a/+", "#", "$SYS/a", "a\0b", "x" * 201])
def test_what_no_topic_begins_with(text) -> None:
    with pytest.raises(InvalidSettings):
        parse_prefix(text)


def test_topics() -> None:
    broker = Broker("mqtt://h", prefix="a/b")
    assert broker.topic("0badcafe", "events") == "a/b/0badcafe/events"
    assert broker.job_of("a/b/0badcafe/events", "events") == "0badcafe"
    for topic in (
        "a/b/0badcafe/status",
        "a/0badcafe/events",
        "x/a/b/0badcafe/events",
        "a/b//events",
        "events",
    ):
        assert broker.job_of(topic, "events") is None


def test_passwords_in_the_clear() -> None:
    assert Broker("mqtt://far.test").is_exposed
    assert not Broker("mqtts://far.test").is_exposed
    assert not Broker("mqtt://localhost").is_exposed


@given(st.integers(0, 10**6), st.floats(0, 1))
def test_a_pause_grows_and_has_an_end(failures, chance) -> None:
    assert 0.1 < pause(failures, chance) <= 30.0
    assert pause(failures, chance) <= pause(failures + 1, chance)
