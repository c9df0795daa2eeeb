"""A private socket: short wherever the root lies, of this user alone, and known peers."""

import os
import socket
from pathlib import Path

import pytest

from mam.adapters.system import sockets
from mam.core.errors import NotAllowed, Unavailable


@pytest.fixture
def folder(tmp_path):
    """A folder far down, and a socket that is taken away."""
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    yield deep
    Path(sockets.address(str(deep))).unlink(missing_ok=True)


def test_the_path_is_short_and_of_this_folder_alone(folder, tmp_path) -> None:
    path = sockets.address(str(folder))
    assert len(path) < 100
    assert path == sockets.address(str(folder))
    assert path != sockets.address(str(tmp_path))
    with pytest.raises(Unavailable):
        sockets.address(str(folder / "gone"))


def test_both_ends_know_each_other(folder) -> None:
    path = sockets.address(str(folder))
    assert sockets.connect(path) is None
    with sockets.listen(path) as door, sockets.connect(path) as line:
        there, _ = door.accept()
        with there:
            assert sockets.peer(there) == (os.getpid(), os.geteuid())
            assert sockets.peer(line) == (os.getpid(), os.geteuid())
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    assert sockets.connect(path) is None


def test_what_a_dead_process_left_is_replaced(folder) -> None:
    path = sockets.address(str(folder))
    sockets.listen(path).close()
    assert Path(path).exists()
    with sockets.listen(path), sockets.connect(path) as line:
        assert isinstance(line, socket.socket)


def test_what_killed_processes_left_goes_with_the_next_start(tmp_path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    dead, fresh, live = (str(folder / name) for name in ("dead.sock", "fresh.sock", "live.sock"))
    with sockets.listen(live):
        for path in (dead, fresh):
            sockets.listen(path).close()
        for path in (dead, live):
            os.utime(path, (0, 0))
        with sockets.listen(str(folder / "next.sock")):
            assert sorted(path.name for path in folder.iterdir()) == ["fresh.sock", "live.sock", "next.sock"]


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o755), lambda path: path.chmod(0o770)])
def test_a_folder_that_others_can_enter_is_refused(tmp_path, spoil) -> None:
    place = tmp_path / "open"
    place.mkdir(mode=0o700)
    spoil(place)
    for verb in (sockets.listen, sockets.connect):
        with pytest.raises(NotAllowed):
            verb(str(place / "x.sock"))


def test_a_link_is_refused(tmp_path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    with pytest.raises(NotAllowed):
        sockets.listen(str(tmp_path / "link" / "x.sock"))
