"""A private socket: its path is short, only this user can use it, and each end knows the other."""

import os
import socket
from pathlib import Path

import pytest

from mam.adapters.system import private_socket
from mam.core.errors import NotAllowed, Unavailable


@pytest.fixture
def folder(tmp_path):
    """A folder with a long path; its socket is removed afterwards."""
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    yield deep
    Path(private_socket.address(str(deep))).unlink(missing_ok=True)


def test_the_path_is_short_and_of_this_folder_alone(folder, tmp_path) -> None:
    path = private_socket.address(str(folder))
    assert len(path) < 100
    assert path == private_socket.address(str(folder))
    assert path != private_socket.address(str(tmp_path))
    with pytest.raises(Unavailable):
        private_socket.address(str(folder / "gone"))


def test_both_ends_know_each_other(folder) -> None:
    path = private_socket.address(str(folder))
    assert private_socket.connect(path) is None
    with private_socket.listen(path) as listener, private_socket.connect(path) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert private_socket.peer(accepted) == (os.getpid(), os.geteuid())
            assert private_socket.peer(client) == (os.getpid(), os.geteuid())
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    assert private_socket.connect(path) is None


def test_what_a_dead_process_left_is_replaced(folder) -> None:
    path = private_socket.address(str(folder))
    private_socket.listen(path).close()
    assert Path(path).exists()
    with private_socket.listen(path), private_socket.connect(path) as client:
        assert isinstance(client, socket.socket)


def test_what_killed_processes_left_goes_with_the_next_start(tmp_path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    dead, fresh, live = (str(folder / name) for name in ("dead.sock", "fresh.sock", "live.sock"))
    with private_socket.listen(live):
        for path in (dead, fresh):
            private_socket.listen(path).close()
        for path in (dead, live):
            os.utime(path, (0, 0))
        with private_socket.listen(str(folder / "next.sock")):
            assert sorted(path.name for path in folder.iterdir()) == ["fresh.sock", "live.sock", "next.sock"]


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o755), lambda path: path.chmod(0o770)])
def test_a_folder_that_others_can_enter_is_refused(tmp_path, spoil) -> None:
    place = tmp_path / "open"
    place.mkdir(mode=0o700)
    spoil(place)
    for verb in (private_socket.listen, private_socket.connect):
        with pytest.raises(NotAllowed):
            verb(str(place / "x.sock"))


def test_a_link_is_refused(tmp_path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    with pytest.raises(NotAllowed):
        private_socket.listen(str(tmp_path / "link" / "x.sock"))
