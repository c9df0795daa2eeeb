"""Connections to a real mosquitto: both protocols, TLS, refusals, silence and lost connections."""

import array
import contextlib
import fcntl
import signal
import socket
import subprocess
import termios
import threading

import pytest
from tests.app.over_broker import SECONDS, receive, steps
from tests.mosquitto import Mosquitto, free_port, make_certificates

from mam.adapters.mqtt.connection import Connection
from mam.core.broker_address import Broker
from mam.core.errors import BrokerDown, BrokerRefused, BrokerUntrusted, InvalidSettings

pytestmark = pytest.mark.starts

TOPIC = "python/mqtt/jobs/0badcafe/events"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory, certificates):
    """A broker that nobody kills."""
    broker = Mosquitto(tmp_path_factory.mktemp("shared"), certificates=certificates).start()
    yield broker
    broker.stop()


@pytest.fixture
def mosquitto(tmp_path):
    """A broker that may be killed."""
    broker = Mosquitto(tmp_path / "broker").start()
    yield broker
    broker.stop()


def wait_for_message(link) -> None:
    running = steps(link)
    while not link.received:
        next(running)


def arrived(link) -> int:
    """Return how many bytes wait in the socket."""
    waiting = array.array("i", [0])
    fcntl.ioctl(link.fileno(), termios.FIONREAD, waiting)
    return waiting[0]


def test_one_step_reads_all_that_has_arrived(shared, link, until) -> None:
    sender, receiver = (link(shared, listens=listens) for listens in (False, True))
    for one in (receiver, sender):
        one.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    sender.finish([sender.publish(TOPIC, "x" * 100) for _ in range(15)], SECONDS)
    until(lambda: arrived(receiver) >= 15 * 100)
    receiver.step(SECONDS)
    assert len(receiver.take()) == 15


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_message_arrives_and_is_acknowledged(shared, link, protocol, tls) -> None:
    sender, receiver = (
        link(shared, protocol=protocol, tls=tls, listens=listens) for listens in (False, True)
    )
    receiver.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    sender.open(SECONDS)
    sender.finish([sender.publish(TOPIC, "über"), sender.publish(TOPIC, "two")], SECONDS)
    assert [
        (message.topic, message.payload.decode(), message.is_retained) for message in receive(receiver, 2)
    ] == [
        (TOPIC, "über", False),
        (TOPIC, "two", False),
    ]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_late_subscriber_gets_the_retained_message(shared, link, protocol) -> None:
    topic = f"python/mqtt/jobs/{protocol}/status"
    sender, receiver = link(shared, protocol=protocol), link(shared, protocol=protocol)
    sender.open(SECONDS)
    sender.finish(
        [sender.publish(topic, "old", retain=True), sender.publish(topic, "new", retain=True)], SECONDS
    )
    receiver.open(SECONDS)
    receiver.subscribe([topic], SECONDS)
    (message,) = receive(receiver)
    assert (message.payload, message.is_retained) == (b"new", True)


def test_no_two_clients_have_the_same_id(shared, link) -> None:
    assert len({link(shared).client_id for _ in range(50)}) == 50


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_wrong_password_is_refused(shared, link, protocol) -> None:
    for connection in (
        link(shared, password="guess", protocol=protocol),
        link(shared, None, protocol=protocol),
    ):
        with pytest.raises(BrokerRefused, match="refuses") as caught:
            connection.open(SECONDS)
        assert not caught.value.retryable
        assert "guess" not in str(caught.value) + str(caught.value.hint)
        assert not connection.is_open


def test_the_same_link_is_opened_after_a_refusal(shared, link) -> None:
    connection = link(shared, password="guess")
    with pytest.raises(BrokerRefused):
        connection.open(SECONDS)
    connection._password = "correct horse"
    connection.open(SECONDS)
    assert connection.is_open


def test_a_worker_may_publish_for_its_own_job_only(shared, link) -> None:
    worker = link(shared, "0badcafe")
    worker.open(SECONDS)
    worker.finish([worker.publish(TOPIC, "mine")], SECONDS)
    with pytest.raises(BrokerRefused):
        worker.finish([worker.publish("python/mqtt/jobs/11111111/events", "not mine")], SECONDS)


def test_a_worker_receives_nothing_of_other_jobs(shared, link) -> None:
    worker, other = link(shared, "0badcafe"), link(shared)
    worker.open(SECONDS)
    with contextlib.suppress(BrokerRefused):
        # mosquitto 2.0 grants the subscription, and delivers nothing.
        worker.subscribe(["#", "python/mqtt/jobs/#"], SECONDS)
    other.open(SECONDS)
    other.finish([other.publish("python/mqtt/jobs/11111111/events", "not yours")], SECONDS)
    worker.finish([worker.publish(TOPIC, "mine")], SECONDS)
    assert worker.received == []


def test_a_watcher_writes_no_events(shared, link) -> None:
    watcher, other = link(shared, "watcher"), link(shared)
    other.open(SECONDS)
    other.subscribe(["python/mqtt/jobs/+/events", "python/mqtt/jobs/+/ask"], SECONDS)
    watcher.open(SECONDS)
    watcher.finish([watcher.publish("python/mqtt/jobs/22222222/ask", "may")], SECONDS)
    with pytest.raises(BrokerRefused):
        watcher.finish([watcher.publish("python/mqtt/jobs/22222222/events", "may not")], SECONDS)
    assert [message.payload for message in receive(other)] == [b"may"]


def test_a_ca_that_did_not_sign_is_not_trusted(shared, link, tmp_path) -> None:
    strange = make_certificates(tmp_path / "strange")
    with pytest.raises(BrokerUntrusted, match="is not trusted"):
        link(shared, tls=True, ca_file=str(strange / "ca.crt")).open(SECONDS)
    with pytest.raises(BrokerUntrusted):
        Connection(Broker(shared.url(tls=True))).open(SECONDS)


def test_an_expired_ca_is_not_trusted(shared, link, tmp_path) -> None:
    # The same CA with a validity that ended yesterday.
    certificates, expired = shared.certificates, tmp_path / "expired.crt"
    renew = [
        "openssl",
        "x509",
        "-in",
        certificates / "ca.crt",
        "-signkey",
        certificates / "ca.key",
        "-days",
        "-1",
    ]
    subprocess.run([*renew, "-out", expired], capture_output=True, check=True)
    with pytest.raises(BrokerUntrusted, match="expired") as caught:
        link(shared, tls=True, ca_file=str(expired)).open(SECONDS)
    assert not caught.value.retryable
    assert "still valid" in caught.value.hint


def test_a_ca_file_that_is_none_is_named(tmp_path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InvalidSettings, match=str(path)):
            Connection(Broker("mqtts://localhost", ca_file=str(path)))


def test_tls_where_there_is_none(shared, link) -> None:
    broker = Broker(f"mqtts://mam@localhost:{shared.port}", ca_file=str(shared.certificates / "ca.crt"))
    with pytest.raises((BrokerDown, BrokerUntrusted)):
        Connection(broker, "x").open(SECONDS)
    with pytest.raises(BrokerDown):
        Connection(Broker(f"mqtt://mam@localhost:{shared.tls_port}"), "x").open(SECONDS)


def test_nobody_listens(link) -> None:
    with pytest.raises(BrokerDown, match="no broker listens"):
        Connection(Broker(f"mqtt://127.0.0.1:{free_port()}")).open(SECONDS)


def test_a_server_that_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 5)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(BrokerDown):
            Connection(Broker(f"mqtt://127.0.0.1:{server.getsockname()[1]}")).open(SECONDS)
        thread.join()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_what_arrives_while_a_listener_is_away_is_kept_for_it(shared, link, protocol) -> None:
    sender, receiver = link(shared, protocol=protocol), link(shared, protocol=protocol, listens=True)
    receiver.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    assert not receiver.had_session
    receiver._client.socket().shutdown(socket.SHUT_RDWR)
    with pytest.raises(BrokerDown, match="lost"):
        for _ in steps(receiver):
            pass
    sender.open(SECONDS)
    sender.finish([sender.publish(TOPIC, "meanwhile")], SECONDS)
    receiver.open(SECONDS)
    assert receiver.had_session
    assert [message.payload for message in receive(receiver)] == [b"meanwhile"]


def test_an_unacknowledged_message_comes_again(shared, link) -> None:
    sender, receiver = link(shared), link(shared, listens=True)
    receiver.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    sender.open(SECONDS)
    sender.finish([sender.publish(TOPIC, "once more")], SECONDS)
    wait_for_message(receiver)
    receiver._client.socket().shutdown(socket.SHUT_RDWR)
    with pytest.raises(BrokerDown):
        for _ in steps(receiver):
            pass
    receiver.open(SECONDS)
    assert [message.payload for message in receive(receiver)] == [b"once more"]


def test_a_loss_that_shows_while_something_is_acknowledged(shared, link) -> None:
    sender, receiver = link(shared), link(shared, listens=True)
    receiver.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    sender.open(SECONDS)
    sender.finish([sender.publish(TOPIC, "once more")], SECONDS)
    wait_for_message(receiver)
    receiver._client.socket().shutdown(socket.SHUT_RDWR)
    (message,) = receiver.take()
    receiver.acknowledge(message)
    assert not receiver.is_open
    with pytest.raises(BrokerDown, match="lost"):
        receiver.step(SECONDS)


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_closed_listener_leaves_no_session(shared, link, protocol) -> None:
    receiver = link(shared, protocol=protocol, listens=True)
    receiver.open(SECONDS)
    receiver.subscribe([TOPIC], SECONDS)
    receiver.close()
    again = link(shared, protocol=protocol, listens=True)
    again.client_id, again._is_first = receiver.client_id, False
    again.open(SECONDS)
    assert not again.had_session


def test_a_killed_broker_is_noticed_and_found_again(mosquitto, link) -> None:
    connection = link(mosquitto, listens=True)
    connection.open(SECONDS)
    mosquitto.kill()
    with pytest.raises(BrokerDown, match="lost"):
        for _ in steps(connection):
            pass
    assert not connection.is_open
    with pytest.raises(BrokerDown):
        connection.step(SECONDS)
    with pytest.raises(BrokerDown, match="no broker listens"):
        connection.open(SECONDS)
    mosquitto.start()
    connection.open(SECONDS)
    assert not connection.had_session
    connection.finish([connection.publish(TOPIC, "again")], SECONDS)


def test_a_half_open_connection_is_noticed(mosquitto, link) -> None:
    connection = link(mosquitto, keepalive=1)
    connection.open(SECONDS)
    mosquitto.signal(signal.SIGSTOP)
    with pytest.raises(BrokerDown, match="lost: Keep alive timeout"):
        for _ in steps(connection):
            pass


def test_a_broker_that_does_not_answer_counts_as_lost(mosquitto, link) -> None:
    connection = link(mosquitto)
    connection.open(SECONDS)
    mosquitto.signal(signal.SIGSTOP)
    number = connection.publish(TOPIC, "never received")
    with pytest.raises(BrokerDown, match="does not answer"):
        connection.finish([number], 0.2)
    with pytest.raises(BrokerDown, match="does not answer"):
        connection.open(0.2)
