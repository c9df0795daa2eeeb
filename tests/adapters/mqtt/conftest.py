"""Connections to test brokers."""

import pytest
from tests.mosquitto import PASSWORDS, Mosquitto

from mam.adapters.mqtt.connection import Connection
from mam.core.broker_address import Broker


@pytest.fixture
def link():
    """Make connections that are closed at the end."""
    connections = []

    def make(
        mosquitto: Mosquitto, user="mam", *, password=None, tls=False, role="test", listens=False, **more
    ):
        if tls:
            more.setdefault("ca_file", str(mosquitto.certificates / "ca.crt"))
        broker = Broker(mosquitto.url(user, tls=tls), **more)
        connection = Connection(broker, password or PASSWORDS.get(user), role=role, listens=listens)
        connections.append(connection)
        return connection

    yield make
    for connection in connections:
        connection.close()
