"""The shim of tests/faults."""

from tests.faults.conftest import shim  # noqa: F401  (a fixture)
