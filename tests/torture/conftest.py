"""The machine of the crash sweep, for the torture as well."""

from tests.faults.conftest import machine, shim

__all__ = ["machine", "shim"]
