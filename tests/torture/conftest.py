"""The machine of the crash sweep and the desks of the conformance tests, for the torture as well."""

from tests.conformance.conftest import shared
from tests.faults.conftest import machine, shim

__all__ = ["machine", "shared", "shim"]
