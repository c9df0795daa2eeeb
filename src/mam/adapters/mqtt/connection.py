"""A connection to a broker, driven by the calls of one thread.

paho implements the protocol. This file and its caller decide when to connect, how long to wait and what to
send again. After a lost connection mam connects again as the same client, so that the broker still has its
subscriptions and the messages that arrived meanwhile. The caller acknowledges each message after its work.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import ssl
import time

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from mam.adapters.mqtt import error_translation
from mam.core.errors import BrokerDown, InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from paho.mqtt.reasoncodes import ReasonCode

    from mam.core.broker_address import Broker
    from mam.core.errors import Unavailable

_PROTOCOLS = {"5": MQTTProtocolVersion.MQTTv5, "3.1.1": MQTTProtocolVersion.MQTTv311}
# How long a broker keeps messages for a client that is away, and a status that nobody renews.
_SESSION_SECONDS, _STATUS_SECONDS = 3600, 7 * 86_400
_LARGEST_PACKET = 256 * 1024
_QOS = 1
# paho checks its keepalive only inside its loop functions, so they must run this often.
_STEP = 1.0
_CLOSE_SECONDS = 1.0
# So many packets are read before their messages are handled.
_MOST_PACKETS = 200


class ReceivedMessage:
    """A message that arrived."""

    __slots__ = ("is_retained", "mid", "payload", "topic")

    def __init__(self, topic: str, payload: bytes, is_retained: bool, mid: int) -> None:
        self.topic = topic
        self.payload = payload
        self.is_retained = is_retained
        self.mid = mid


class Connection:
    """One client of one broker. Only one thread may use it."""

    def __init__(
        self, broker: Broker, password: str | None = None, *, role: str = "client", listens: bool = False
    ) -> None:
        """Send nothing yet. With `listens` the broker keeps a session while this client is away."""
        self.broker = broker
        self.client_id = f"mam-{role}-{os.getpid()}-{secrets.token_hex(4)}"
        self.received: list[ReceivedMessage] = []
        self.acknowledged: set[int] = set()
        # Whether the broker still had the session of this client when it connected.
        self.had_session = False
        self._listens = listens
        self._password = password
        self._is_accepted = False
        self._answer: ReasonCode | None = None
        self._end: Unavailable | None = None
        self._granted: dict[int, list[ReasonCode]] = {}
        self._is_first = True
        self._tls = _tls_context(broker) if broker.is_tls else None
        self._client = self._make()

    def _make(self) -> paho.Client:
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=self.client_id,
            clean_session=None if self._is_v5 else not self._listens,
            protocol=_PROTOCOLS[self.broker.protocol],
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if self.broker.username is not None:
            client.username_pw_set(self.broker.username, self._password)
        if self._tls is not None:
            client.tls_set_context(self._tls)
        client.on_socket_open = _send_at_once
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.on_message = self._on_message
        return client

    @property
    def is_open(self) -> bool:
        """Whether the broker has accepted this client and the connection has not ended since."""
        return self._is_accepted and self._end is None

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when data arrives; -1 while the connection is closed."""
        wire = self._client.socket()
        return -1 if wire is None else wire.fileno()

    def open(self, seconds: float) -> None:
        """Connect and wait until the broker accepts; raise BrokerDown, BrokerRefused or BrokerUntrusted."""
        deadline = time.monotonic() + seconds
        self._disconnect()
        self.received, self.acknowledged = [], set()
        self._answer, self._end, self._granted = None, None, {}
        self._client = self._make()
        self._client.connect_timeout = max(0.1, seconds)
        try:
            self._connect()
        except OSError as error:
            self._disconnect()
            raise error_translation.from_os(error, self.broker) from error
        try:
            while self._answer is None:
                self._exchange(deadline - time.monotonic())
                if self._answer is None and time.monotonic() >= deadline:
                    raise error_translation.silent(self.broker, seconds)
            if self._answer.is_failure:
                raise error_translation.from_reason(self._answer, self.broker)
        except BrokerDown:
            self._disconnect()
            if self._answer is not None and self._answer.is_failure:
                raise error_translation.from_reason(self._answer, self.broker) from None
            raise
        except BaseException:
            self._disconnect()
            raise
        self._is_accepted, self._is_first = True, False

    def _connect(self) -> None:
        options: dict[str, Any] = {}
        if self._is_v5:
            options["clean_start"] = self._is_first
            options["properties"] = _properties(
                PacketTypes.CONNECT,
                SessionExpiryInterval=_SESSION_SECONDS if self._listens else 0,
                MaximumPacketSize=_LARGEST_PACKET,
            )
        self._client.connect(self.broker.host, self.broker.port, keepalive=self.broker.keepalive, **options)

    def subscribe(self, topics: Iterable[str], seconds: float) -> None:
        """Subscribe to topics and wait for the broker. MQTT 5 leaves out this client's own messages."""
        subscriptions = [
            (topic, SubscribeOptions(qos=_QOS, noLocal=True) if self._is_v5 else _QOS) for topic in topics
        ]
        result, mid = self._client.subscribe(subscriptions)  # type: ignore[arg-type]
        self._check(result)
        deadline = time.monotonic() + seconds
        while mid is not None and mid not in self._granted:
            self.step(deadline - time.monotonic())
            if mid not in self._granted and time.monotonic() >= deadline:
                raise self._fail(error_translation.silent(self.broker, seconds))
        for code in self._granted.pop(mid or 0, []):
            if code.is_failure:
                raise error_translation.from_reason(code, self.broker)

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> int:
        """Send a message; its number is in `acknowledged` as soon as the broker has it."""
        properties = None
        if retain and self._is_v5:
            properties = _properties(PacketTypes.PUBLISH, MessageExpiryInterval=_STATUS_SECONDS)
        result = self._client.publish(topic, payload.encode(), _QOS, retain, properties)
        self._check(result.rc)
        return result.mid

    def finish(self, numbers: Iterable[int], seconds: float) -> None:
        """Wait until the broker has all these messages; a broker that is silent for so long is lost."""
        missing = set(numbers) - self.acknowledged
        deadline = time.monotonic() + seconds
        while missing:
            self.step(deadline - time.monotonic())
            if missing & self.acknowledged:
                missing -= self.acknowledged
                deadline = time.monotonic() + seconds
            elif time.monotonic() >= deadline:
                raise self._fail(error_translation.silent(self.broker, seconds))

    def step(self, seconds: float, *descriptors: int) -> Collection[int]:
        """Send and receive for at most `seconds`; return which of the `descriptors` are readable.

        Returns as soon as anything happened. Raises BrokerDown or BrokerRefused if the connection has ended.
        """
        if self._end is not None:
            raise self._fail(self._end)
        return self._exchange(seconds, *descriptors)

    def take(self) -> list[ReceivedMessage]:
        """Return the messages that arrived since the last call."""
        messages, self.received = self.received, []
        return messages

    def acknowledge(self, message: ReceivedMessage) -> None:
        """Acknowledge a message, so that the broker does not send it again."""
        if message.mid and self._end is None:
            self._client.ack(message.mid, _QOS)

    def close(self) -> None:
        """Disconnect and leave no session on the broker. Never fails."""
        if self._is_accepted:
            try:
                self._end_session()
            except (BrokerDown, OSError, ValueError):
                # The broker deletes the session of an absent client after a time.
                self._is_accepted = False
        self._disconnect()

    def _end_session(self) -> None:
        if self._is_v5:
            forget = _properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0)
            self._client.disconnect(properties=forget)
        else:
            self._client.disconnect()
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._client.want_write() and time.monotonic() < deadline:
            self._exchange(deadline - time.monotonic())
        if self._listens and not self._is_v5:
            # In MQTT 3.1.1 only a new connection with a clean session ends the old session.
            self._listens = False
            self.open(_CLOSE_SECONDS)
            self._client.disconnect()

    @property
    def _is_v5(self) -> bool:
        return self.broker.protocol == "5"

    def _exchange(self, seconds: float, *descriptors: int) -> Collection[int]:
        wire = self._client.socket()
        if wire is None or wire.fileno() < 0:
            raise self._fail(error_translation.lost(self.broker, "it was closed"))
        is_waiting = bool(getattr(wire, "pending", int)())
        poll = select.poll()
        poll.register(wire.fileno(), select.POLLIN | (select.POLLOUT if self._client.want_write() else 0))
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        wait = 0.0 if is_waiting else min(max(seconds, 0.0), _STEP)
        ready = dict(poll.poll(wait * 1000))
        events = ready.pop(wire.fileno(), 0)
        result = MQTTErrorCode.MQTT_ERR_SUCCESS
        if is_waiting or events & ~select.POLLOUT:
            result = self._read(wire)
            _acknowledge_at_once(wire)
        if not result and self._client.want_write():
            result = self._client.loop_write()
        result = result or self._client.loop_misc()
        if result or self._end is not None:
            raise self._fail(self._end or error_translation.lost(self.broker, paho.error_string(result)))
        return ready.keys()

    def _read(self, wire: Any) -> MQTTErrorCode:
        """Read the packets that have arrived; paho reads one at a time."""
        poll = select.poll()
        poll.register(wire.fileno(), select.POLLIN)
        for _ in range(_MOST_PACKETS):
            result = self._client.loop_read()
            if result or self._end is not None or wire.fileno() < 0:
                return result
            if not (getattr(wire, "pending", int)() or poll.poll(0)):
                break
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _check(self, result: MQTTErrorCode) -> None:
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._fail(self._end or error_translation.lost(self.broker, paho.error_string(result)))

    def _fail(self, error: Unavailable) -> Unavailable:
        self._end = error
        self._disconnect()
        return error

    def _disconnect(self) -> None:
        """Close the connection; the caller sends unacknowledged messages again."""
        self._is_accepted = False
        wire = self._client.socket()
        if wire is not None:
            wire.close()
        if self._tls is not None and self._tls.wrapped is not None:
            self._tls.wrapped.close()

    def _on_connect(
        self, _client: paho.Client, _data: Any, flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        self._answer = reason
        self.had_session = bool(flags.session_present)

    def _on_disconnect(
        self, _client: paho.Client, _data: Any, flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        if self._end is not None:
            return
        if flags.is_disconnect_packet_from_server:
            self._end = error_translation.from_reason(reason, self.broker)
        else:
            self._end = error_translation.lost(self.broker, reason.getName())

    def _on_subscribe(
        self, _client: paho.Client, _data: Any, mid: int, codes: list[ReasonCode], _properties: Any
    ) -> None:
        self._granted[mid] = codes

    def _on_publish(
        self, _client: paho.Client, _data: Any, mid: int, reason: ReasonCode, _properties: Any
    ) -> None:
        if reason.is_failure:
            self._end = error_translation.from_reason(reason, self.broker)
        else:
            self.acknowledged.add(mid)

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        mid = message.mid if message.qos else 0
        self.received.append(ReceivedMessage(topic, bytes(message.payload), message.retain, mid))


def _send_at_once(_client: paho.Client, _data: Any, wire: Any) -> None:
    """Send small packets at once; otherwise the second of two would wait 40 ms."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _acknowledge_at_once(wire: Any) -> None:
    """Acknowledge TCP packets at once, so that a broker without TCP_NODELAY can send the next one.

    Linux resets this option with each packet.
    """
    if hasattr(socket, "TCP_QUICKACK") and wire.fileno() >= 0:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _properties(packet: int, **values: int) -> Properties:
    properties = Properties(packet)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


class _TlsContext(ssl.SSLContext):
    """TLS with checked certificates. It stores its socket, because paho does not close it if TLS fails."""

    wrapped: ssl.SSLSocket | None = None

    def wrap_socket(self, *args: Any, **more: Any) -> ssl.SSLSocket:
        """Wrap a socket and store the result."""
        self.wrapped = super().wrap_socket(*args, **more)
        return self.wrapped


def _tls_context(broker: Broker) -> _TlsContext:
    context = _TlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if broker.ca_file is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(broker.ca_file)
    except OSError as error:
        raise InvalidSettings(
            f"mam cannot use the CA file {broker.ca_file}: {error.strerror or error}",
            hint="it must hold certificates in PEM form",
        ) from error
    return context
