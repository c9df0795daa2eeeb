"""Turns failures of a broker, its certificate and the network into errors of mam."""

from __future__ import annotations

import socket
import ssl

from mam.core.errors import BrokerDown, BrokerRefused, BrokerUntrusted
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paho.mqtt.reasoncodes import ReasonCode

    from mam.core.broker_address import Broker
    from mam.core.errors import Unavailable

# Reason codes of MQTT 5; paho translates those of 3.1.1 into the same numbers.
_VERSION, _IDENTIFIER, _PASSWORD, _NOT_AUTHORIZED, _BANNED, _METHOD = 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


def from_os(error: OSError, broker: Broker) -> Unavailable:
    """Return the error for a connection that could not be made."""
    where = broker.address
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = one_line(error.verify_message, 200)
        hint = "name the CA file that signed it (ca_file)"
        if error.verify_code == _EXPIRED:
            hint = "the broker, or its CA, needs a certificate that is still valid"
        return BrokerUntrusted(f"the certificate of {where} is not trusted: {reason}", hint=hint)
    if isinstance(error, ssl.SSLError):
        reason = one_line(getattr(error, "reason", None) or str(error), 200)
        return BrokerUntrusted(
            f"TLS with {where} failed: {reason}", hint="check that this is the port for mqtts"
        )
    if isinstance(error, socket.gaierror):
        return BrokerDown(f"{where}: the host is unknown", hint="check the name of the host")
    if isinstance(error, TimeoutError):
        return BrokerDown(f"{where} does not answer")
    if isinstance(error, ConnectionRefusedError):
        return BrokerDown(f"no broker listens at {where}")
    return BrokerDown(f"{where} cannot be reached: {one_line(error.strerror or str(error), 200)}")


def from_reason(code: ReasonCode, broker: Broker) -> Unavailable:
    """Return the error for a refusal of the broker."""
    where, reason = broker.address, one_line(code.getName(), 100)
    if code.value in (_PASSWORD, _NOT_AUTHORIZED, _METHOD, _BANNED):
        hint = "check the user in the address, its password, and the access list of the broker"
        return BrokerRefused(f"{where} refuses: {reason}", hint=hint)
    if code.value == _VERSION:
        return BrokerRefused(
            f"{where} refuses: {reason}", hint='set protocol = "3.1.1" for the older version'
        )
    if code.value == _IDENTIFIER:
        return BrokerRefused(f"{where} refuses: {reason}", hint="the broker accepts only certain client ids")
    return BrokerDown(f"{where} refuses the connection for now: {reason}")


def lost(broker: Broker, reason: str) -> BrokerDown:
    """Return the error for a lost connection."""
    return BrokerDown(f"the connection to {broker.address} is lost: {reason}")


def silent(broker: Broker, seconds: float) -> BrokerDown:
    """Return the error for a broker that does not answer."""
    return BrokerDown(f"{broker.address} does not answer ({seconds:.2g} s)")
