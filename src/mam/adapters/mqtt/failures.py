"""What a broker, its certificate and the way to it can fail with, as our errors."""

from __future__ import annotations

import socket
import ssl

from mam.core.errors import BrokerDown, BrokerRefused, BrokerUntrusted
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paho.mqtt.reasoncodes import ReasonCode

    from mam.core.broker import Broker
    from mam.core.errors import Unavailable

# Reason codes of MQTT 5; paho says those of 3.1.1 in the same numbers.
_VERSION, _IDENTIFIER, _PASSWORD, _NOT_AUTHORIZED, _BANNED, _METHOD = 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


def from_os(error: OSError, broker: Broker) -> Unavailable:
    """Return what it means that no connection came about."""
    where = broker.address
    if isinstance(error, ssl.SSLCertVerificationError):
        said = one_line(error.verify_message, 200)
        hint = "name the CA file that signed it (ca_file)"
        if error.verify_code == _EXPIRED:
            hint = "the broker, or its CA, needs a certificate that is still valid"
        return BrokerUntrusted(f"the certificate of {where} is not to be trusted: {said}", hint=hint)
    if isinstance(error, ssl.SSLError):
        said = one_line(getattr(error, "reason", None) or str(error), 200)
        return BrokerUntrusted(f"no TLS with {where}: {said}", hint="is it the port for mqtts?")
    if isinstance(error, socket.gaierror):
        return BrokerDown(f"{where}: that host is not known", hint="look at its name")
    if isinstance(error, TimeoutError):
        return BrokerDown(f"{where} does not answer")
    if isinstance(error, ConnectionRefusedError):
        return BrokerDown(f"no broker listens at {where}")
    return BrokerDown(f"{where} cannot be reached: {one_line(error.strerror or str(error), 200)}")


def from_reason(code: ReasonCode, broker: Broker) -> Unavailable:
    """Return what it means that the broker said no."""
    where, said = broker.address, one_line(code.getName(), 100)
    if code.value in (_PASSWORD, _NOT_AUTHORIZED, _METHOD, _BANNED):
        hint = "look at the user of the address, its password, and the broker's list of rights"
        return BrokerRefused(f"{where} refuses: {said}", hint=hint)
    if code.value == _VERSION:
        return BrokerRefused(f"{where} refuses: {said}", hint='protocol = "3.1.1" asks for the older one')
    if code.value == _IDENTIFIER:
        return BrokerRefused(f"{where} refuses: {said}", hint="it accepts only certain client ids")
    return BrokerDown(f"{where} refuses for now: {said}")


def lost(broker: Broker, why: str) -> BrokerDown:
    """Return what it means that a connection is no more."""
    return BrokerDown(f"the connection to {broker.address} is lost: {why}")


def silent(broker: Broker, seconds: float) -> BrokerDown:
    """Return what it means that the broker takes what is sent and says nothing."""
    return BrokerDown(f"{broker.address} does not answer ({seconds:.2g} s)")
