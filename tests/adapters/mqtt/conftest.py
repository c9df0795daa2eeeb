"""Brokers to talk to."""

import pytest
from tests.mosquitto import PASSWORDS, Mosquitto

from mam.adapters.mqtt.connection import Connection
from mam.core.broker import Broker


@pytest.fixture
def link():
    """Make links that are closed at the end."""
    made = []

    def make(
        mosquitto: Mosquitto, user="mam", *, password=None, tls=False, role="test", listens=False, **more
    ):
        if tls:
            more.setdefault("ca_file", str(mosquitto.certificates / "ca.crt"))
        broker = Broker(mosquitto.url(user, tls=tls), **more)
        one = Connection(broker, password or PASSWORDS.get(user), role=role, listens=listens)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()
