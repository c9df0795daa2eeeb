"""A connection to a broker, driven by one thread that asks it to go on.

paho knows the protocol; when to connect, for how long to wait and what to send again is decided here and
by the caller. A link that was lost is opened again as the same client, so that the broker still has its
subscriptions and what arrived meanwhile. What was heard is acknowledged when the caller is done with it.
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

from mam.adapters.mqtt import failures
from mam.core.errors import BrokerDown, InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from paho.mqtt.reasoncodes import ReasonCode

    from mam.core.broker import Broker
    from mam.core.errors import Unavailable

_PROTOCOLS = {"5": MQTTProtocolVersion.MQTTv5, "3.1.1": MQTTProtocolVersion.MQTTv311}
# How long a broker keeps what arrived for a client that is away, and a status that nobody renews.
_SESSION_SECONDS, _STATUS_SECONDS = 3600, 7 * 86_400
_LARGEST_PACKET = 256 * 1024
_QOS = 1
# paho looks at its keepalive only when it is asked to go on.
_STEP = 1.0
_GOODBYE_SECONDS = 1.0


class ReceivedMessage:
    """A message that arrived."""

    __slots__ = ("is_retained", "mid", "payload", "topic")

    def __init__(self, topic: str, payload: bytes, is_retained: bool, mid: int) -> None:
        self.topic = topic
        self.payload = payload
        self.is_retained = is_retained
        self.mid = mid


class Connection:
    """One client of one broker. Nothing of it may be used by two threads."""

    def __init__(
        self, broker: Broker, password: str | None = None, *, role: str = "client", listens: bool = False
    ) -> None:
        """Nothing is sent yet. One that `listens` leaves a session on the broker while it is away."""
        self.broker = broker
        self.client_id = f"mam-{role}-{os.getpid()}-{secrets.token_hex(4)}"
        self.heard: list[ReceivedMessage] = []
        self.acknowledged: set[int] = set()
        # Whether the broker still knew this client when it was opened.
        self.was_known = False
        self._listens = listens
        self._password = password
        self._is_up = False
        self._answer: ReasonCode | None = None
        self._end: Unavailable | None = None
        self._granted: dict[int, list[ReasonCode]] = {}
        self._is_first = True
        self._trust = _trust(broker) if broker.is_tls else None
        self._client = self._make()

    def _make(self) -> paho.Client:
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=self.client_id,
            clean_session=None if self._is_newer else not self._listens,
            protocol=_PROTOCOLS[self.broker.protocol],
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if self.broker.username is not None:
            client.username_pw_set(self.broker.username, self._password)
        if self._trust is not None:
            client.tls_set_context(self._trust)
        client.on_socket_open = _send_at_once
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.on_message = self._on_message
        return client

    @property
    def is_open(self) -> bool:
        """Whether the broker has said yes, and nothing since then says that it is gone."""
        return self._is_up and self._end is None

    def fileno(self) -> int:
        """Return what becomes readable when something arrives; -1 while it is not open."""
        wire = self._client.socket()
        return -1 if wire is None else wire.fileno()

    def open(self, seconds: float) -> None:
        """Connect and wait for the broker's yes; raises BrokerDown, BrokerRefused or BrokerUntrusted."""
        deadline = time.monotonic() + seconds
        self._drop()
        self.heard, self.acknowledged = [], set()
        self._answer, self._end, self._granted = None, None, {}
        self._client = self._make()
        self._client.connect_timeout = max(0.1, seconds)
        try:
            self._connect()
        except OSError as error:
            self._drop()
            raise failures.from_os(error, self.broker) from error
        try:
            while self._answer is None:
                self._go_on(deadline - time.monotonic())
                if self._answer is None and time.monotonic() >= deadline:
                    raise failures.silent(self.broker, seconds)
            if self._answer.is_failure:
                raise failures.from_reason(self._answer, self.broker)
        except BrokerDown:
            self._drop()
            if self._answer is not None and self._answer.is_failure:
                raise failures.from_reason(self._answer, self.broker) from None
            raise
        except BaseException:
            self._drop()
            raise
        self._is_up, self._is_first = True, False

    def _connect(self) -> None:
        more: dict[str, Any] = {}
        if self._is_newer:
            more["clean_start"] = self._is_first
            more["properties"] = _properties(
                PacketTypes.CONNECT,
                SessionExpiryInterval=_SESSION_SECONDS if self._listens else 0,
                MaximumPacketSize=_LARGEST_PACKET,
            )
        self._client.connect(self.broker.host, self.broker.port, keepalive=self.broker.keepalive, **more)

    def subscribe(self, topics: Iterable[str], seconds: float) -> None:
        """Listen to topics, and return once the broker granted them. MQTT 5 spares us our own words."""
        wanted = [
            (topic, SubscribeOptions(qos=_QOS, noLocal=True) if self._is_newer else _QOS) for topic in topics
        ]
        result, mid = self._client.subscribe(wanted)  # type: ignore[arg-type]
        self._check(result)
        deadline = time.monotonic() + seconds
        while mid is not None and mid not in self._granted:
            self.step(deadline - time.monotonic())
            if mid not in self._granted and time.monotonic() >= deadline:
                raise self._fail(failures.silent(self.broker, seconds))
        for code in self._granted.pop(mid or 0, []):
            if code.is_failure:
                raise failures.from_reason(code, self.broker)

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> int:
        """Hand over a message; its number is in `acknowledged` once the broker has it."""
        properties = None
        if retain and self._is_newer:
            properties = _properties(PacketTypes.PUBLISH, MessageExpiryInterval=_STATUS_SECONDS)
        done = self._client.publish(topic, payload.encode(), _QOS, retain, properties)
        self._check(done.rc)
        return done.mid

    def finish(self, numbers: Iterable[int], seconds: float) -> None:
        """Wait until the broker has all these messages; one that keeps silent so long counts as lost."""
        missing = set(numbers) - self.acknowledged
        deadline = time.monotonic() + seconds
        while missing:
            self.step(deadline - time.monotonic())
            if missing & self.acknowledged:
                missing -= self.acknowledged
                deadline = time.monotonic() + seconds
            elif time.monotonic() >= deadline:
                raise self._fail(failures.silent(self.broker, seconds))

    def step(self, seconds: float, *others: int) -> Collection[int]:
        """Send and hear for at most so long; return which of the `others` can be read.

        Ends as soon as anything happened. Raises BrokerDown, BrokerRefused when the connection is no more.
        """
        if self._end is not None:
            raise self._fail(self._end)
        return self._go_on(seconds, *others)

    def take(self) -> list[ReceivedMessage]:
        """Return what was heard since the last time."""
        found, self.heard = self.heard, []
        return found

    def done_with(self, heard: ReceivedMessage) -> None:
        """Let the broker forget a message."""
        if heard.mid and self._end is None:
            self._client.ack(heard.mid, _QOS)

    def close(self) -> None:
        """Say goodbye, and leave no session behind. Never fails."""
        if self._is_up:
            try:
                self._say_goodbye()
            except (BrokerDown, OSError, ValueError):
                # The broker forgets a client that is away by itself.
                self._is_up = False
        self._drop()

    def _say_goodbye(self) -> None:
        if self._is_newer:
            forget = _properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0)
            self._client.disconnect(properties=forget)
        else:
            self._client.disconnect()
        deadline = time.monotonic() + _GOODBYE_SECONDS
        while self._client.want_write() and time.monotonic() < deadline:
            self._go_on(deadline - time.monotonic())
        if self._listens and not self._is_newer:
            # 3.1.1 ends a session only by a connection that wants none.
            self._listens = False
            self.open(_GOODBYE_SECONDS)
            self._client.disconnect()

    @property
    def _is_newer(self) -> bool:
        return self.broker.protocol == "5"

    def _go_on(self, seconds: float, *others: int) -> Collection[int]:
        wire = self._client.socket()
        if wire is None or wire.fileno() < 0:
            raise self._fail(failures.lost(self.broker, "it was closed"))
        is_waiting = bool(getattr(wire, "pending", int)())
        poll = select.poll()
        poll.register(wire.fileno(), select.POLLIN | (select.POLLOUT if self._client.want_write() else 0))
        for other in others:
            poll.register(other, select.POLLIN)
        wait = 0.0 if is_waiting else min(max(seconds, 0.0), _STEP)
        ready = dict(poll.poll(wait * 1000))
        found = ready.pop(wire.fileno(), 0)
        result = MQTTErrorCode.MQTT_ERR_SUCCESS
        if is_waiting or found & ~select.POLLOUT:
            result = self._client.loop_read()
            _acknowledge_at_once(wire)
        if not result and self._client.want_write():
            result = self._client.loop_write()
        result = result or self._client.loop_misc()
        if result or self._end is not None:
            raise self._fail(self._end or failures.lost(self.broker, paho.error_string(result)))
        return ready.keys()

    def _check(self, result: MQTTErrorCode) -> None:
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._fail(self._end or failures.lost(self.broker, paho.error_string(result)))

    def _fail(self, error: Unavailable) -> Unavailable:
        self._end = error
        self._drop()
        return error

    def _drop(self) -> None:
        """Let go of the connection; what the broker did not acknowledge is the caller's to send again."""
        self._is_up = False
        wire = self._client.socket()
        if wire is not None:
            wire.close()
        if self._trust is not None and self._trust.made is not None:
            self._trust.made.close()

    def _on_connect(
        self, _client: paho.Client, _data: Any, flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        self._answer = reason
        self.was_known = bool(flags.session_present)

    def _on_disconnect(
        self, _client: paho.Client, _data: Any, flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        if self._end is not None:
            return
        if flags.is_disconnect_packet_from_server:
            self._end = failures.from_reason(reason, self.broker)
        else:
            self._end = failures.lost(self.broker, reason.getName())

    def _on_subscribe(
        self, _client: paho.Client, _data: Any, mid: int, codes: list[ReasonCode], _properties: Any
    ) -> None:
        self._granted[mid] = codes

    def _on_publish(
        self, _client: paho.Client, _data: Any, mid: int, reason: ReasonCode, _properties: Any
    ) -> None:
        if reason.is_failure:
            self._end = failures.from_reason(reason, self.broker)
        else:
            self.acknowledged.add(mid)

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        mid = message.mid if message.qos else 0
        self.heard.append(ReceivedMessage(topic, bytes(message.payload), message.retain, mid))


def _send_at_once(_client: paho.Client, _data: Any, wire: Any) -> None:
    """Have small packets sent when they are written: the second of two would else wait 40 ms."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _acknowledge_at_once(wire: Any) -> None:
    """Let a broker that does not send at once send the next packet; Linux forgets this with each packet."""
    if hasattr(socket, "TCP_QUICKACK") and wire.fileno() >= 0:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _properties(packet: int, **values: int) -> Properties:
    made = Properties(packet)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(made, name, value)
    return made


class _Trust(ssl.SSLContext):
    """TLS with checked certificates. It remembers its socket: paho leaves one open whose handshake failed."""

    made: ssl.SSLSocket | None = None

    def wrap_socket(self, *args: Any, **more: Any) -> ssl.SSLSocket:
        """Wrap, and remember."""
        self.made = super().wrap_socket(*args, **more)
        return self.made


def _trust(broker: Broker) -> _Trust:
    context = _Trust(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if broker.ca_file is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(broker.ca_file)
    except OSError as error:
        raise InvalidSettings(
            f"the CA file {broker.ca_file} cannot be used: {error.strerror or error}",
            hint="it holds certificates in PEM form",
        ) from error
    return context
