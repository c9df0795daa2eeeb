"""The machine of the crash sweep and the desks of the conformance tests, for the torture as well."""

from tests.conformance.conftest import shared, shared_desk
from tests.faults.conftest import machine, shim, whole_app

__all__ = ["machine", "shared", "shared_desk", "shim", "whole_app"]
