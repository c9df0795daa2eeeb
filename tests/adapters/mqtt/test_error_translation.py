"""Each failure of a broker, its certificate or the network becomes an error of mam."""

import errno
import os
import socket
import ssl

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from mam.adapters.mqtt.error_translation import from_os, from_reason
from mam.core.broker_address import Broker
from mam.core.errors import BrokerDown, BrokerRefused, BrokerUntrusted, Unavailable

BROKER = Broker("mqtts://somebody@broker.test")


@pytest.mark.parametrize("code", sorted(errno.errorcode))
def test_every_error_of_the_system(code) -> None:
    error = from_os(OSError(code, os.strerror(code)), BROKER)
    assert isinstance(error, BrokerDown)
    assert "broker.test" in str(error)


def test_the_others() -> None:
    assert "is unknown" in str(from_os(socket.gaierror(-2, "Name or service not known"), BROKER))
    assert isinstance(from_os(ssl.SSLError(1, "wrong version number"), BROKER), BrokerUntrusted)
    failed = ssl.SSLCertVerificationError(1, "failed")
    failed.verify_code, failed.verify_message = 10, "certificate has expired"
    assert "still valid" in str(from_os(failed, BROKER).hint)


@pytest.mark.parametrize(
    "packet", [PacketTypes.CONNACK, PacketTypes.PUBACK, PacketTypes.SUBACK, PacketTypes.DISCONNECT]
)
def test_every_reason(packet) -> None:
    connack = ReasonCode(PacketTypes.CONNACK)
    codes = [
        number
        for number, names in connack.names.items()
        if any(packet in packets for packets in names.values())
    ]
    assert len(codes) > 3
    for number in codes:
        error = from_reason(ReasonCode(packet, identifier=number), BROKER)
        assert isinstance(error, Unavailable)
        assert isinstance(error, BrokerRefused) == (number in (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C))
