"""Who comes in while there is no room left."""

import os
import resource
from pathlib import Path

import pytest

from mam.app.agent_tools.mcp_socket import Listener, connect


@pytest.fixture
def full():
    """No descriptor is free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    handles: list[int] = []

    def fill() -> None:
        highest = max(int(handle.name) for handle in Path("/dev/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                handles.append(os.open(os.devnull, os.O_RDONLY))

    def free() -> None:
        for handle in handles:
            os.close(handle)
        handles.clear()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    yield fill, free
    free()


def test_a_visitor_without_a_descriptor_is_turned_away_and_the_next_one_let_in(fleet, full) -> None:
    fill, free = full
    fleet.init()
    door = Listener(fleet._access.context)
    try:
        line = connect(fleet._access.context)
        assert line is not None
        fill()
        assert door.accept() is None
        free()
        with line:
            assert line.recv(1) == b"", "it hears at once that nobody serves it"
        assert door.accept() is None, "nobody stands there any more"
        with connect(fleet._access.context) or pytest.fail("nobody listens"):
            visitor = door.accept()
            assert visitor is not None
            visitor.close()
    finally:
        door.close()
