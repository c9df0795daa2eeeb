"""mam talks to tmux servers of this user alone, and tells them no more than they need."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from tests.adapters.tmux.recording_server import RecordingServer
from tests.other_user import STRANGER, needs_root

from mam.adapters.tmux import server_socket
from mam.adapters.tmux.client import Tmux, needed_environment
from mam.adapters.tmux.error_translation import ForeignServer

MARK = "s_00000001"


@pytest.fixture
def place(monkeypatch):
    """A short path for sockets; what this process knows of sockets is of this test alone."""
    monkeypatch.setattr(server_socket, "_own", set())
    folder = Path(tempfile.mkdtemp(prefix="mam-t-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def listener(place):
    """A socket at which somebody listens, in a folder of its own."""
    (place / "in").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(place / "in" / "s"))
        opened.listen()
        opened.setblocking(False)
        yield opened


def was_asked(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


CALLS = {
    "panes": lambda tmux: tmux.panes(),
    "brief": lambda tmux: tmux.ask_briefly()(),
    "pane": lambda tmux: tmux.pane("%0"),
    "start": lambda tmux: tmux.start("a", ["true"], cwd="/", session_id=MARK, root="/"),
    "paste": lambda tmux: tmux.paste("%0", "text", mark=MARK, enter=False),
    "attach": lambda tmux: tmux.attach_argv("$0"),
    "server_pid": lambda tmux: tmux.server_pid(),
}


def check_refused(tmux: Tmux, call: str, words: str) -> None:
    """Each call says why it did not ask, in the way in which it says that a server does not answer."""
    try:
        answer = CALLS[call](tmux)
    except ForeignServer as error:
        assert words in error.message
        assert "--tmux-server" in (error.hint or "") and not error.retryable
        return
    if call == "server_pid":
        assert answer is None
        return
    assert not answer.confirmed and words in answer.error


@pytest.mark.starts
@needs_root
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("whose", ["socket", "folder", "link"])
def test_a_server_of_another_user_is_not_asked(place, listener, call, whose):
    path = place / "in" / "s"
    if whose == "link":
        path = place / "link"
        path.symlink_to(place / "in" / "s")
    theirs = {"socket": path, "folder": path.parent, "link": path}[whose]
    os.chown(theirs, STRANGER, STRANGER, follow_symlinks=False)
    check_refused(Tmux(str(path)), call, f"{theirs} belongs to user {STRANGER}")
    assert not was_asked(listener)


@pytest.mark.starts
@needs_root
def test_a_link_to_a_socket_of_another_user_is_not_followed(place, listener):
    link = place / "link"
    link.symlink_to(place / "in" / "s")
    os.chown(place / "in" / "s", STRANGER, STRANGER)
    check_refused(Tmux(str(link)), "panes", "belongs to")
    assert not was_asked(listener)


@pytest.mark.starts
@pytest.mark.parametrize("has_socket", [True, False])
def test_a_folder_that_everybody_may_write_holds_no_server(place, listener, has_socket):
    (place / "in").chmod(0o777)
    tmux = Tmux(str(place / "in" / ("s" if has_socket else "none")))
    check_refused(tmux, "panes", f"every user can write to {place / 'in'}")
    check_refused(tmux, "start", f"every user can write to {place / 'in'}")
    assert not was_asked(listener)


@pytest.mark.starts
@needs_root
def test_a_server_by_name_in_a_folder_of_another_user(place, monkeypatch):
    """Anybody can make /tmp/tmux-UID before its user does."""
    folder = place / f"tmux-{os.getuid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, STRANGER, STRANGER)
    monkeypatch.setenv("TMUX_TMPDIR", str(place))
    check_refused(Tmux("work"), "panes", f"{folder} belongs to user {STRANGER}")


def test_one_look_is_enough_where_nobody_else_can_write(place, listener, monkeypatch):
    path = str(place / "in" / "s")
    server_socket.check_socket(path, path)
    looks: list[str] = []
    monkeypatch.setattr(server_socket.owners, "look", lambda *given: looks.append(given[0]))
    server_socket.check_socket(path, path)
    assert looks == []


@needs_root
def test_a_sticky_folder_is_looked_at_each_time(place, listener):
    """There another user can make a socket once this user's is gone."""
    path = place / "in" / "s"
    (place / "in").chmod(0o1777)
    server_socket.check_socket(str(path), "s")
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(ForeignServer):
        server_socket.check_socket(str(path), "s")


def test_without_a_socket_there_is_nothing_to_refuse(place):
    server_socket.check_socket(str(place / "none"), "none")
    server_socket.check_socket(str(place / "nowhere" / "none"), "none")


def test_the_folder_of_the_sockets_is_the_one_that_tmux_takes(place):
    usual = f"/tmp/tmux-{os.getuid()}/a"
    assert server_socket.socket_path(["-L", "a"], {}) == usual
    assert server_socket.socket_path(["-L", "a"], {"TMUX_TMPDIR": str(place / "none")}) == usual
    assert server_socket.socket_path(["-L", "a"], {"TMUX_TMPDIR": str(place)}).startswith(f"{place}/tmux-")
    assert server_socket.socket_path(["-S", "/x"], {"TMUX_TMPDIR": str(place)}) == "/x"


class TestEnvironment:
    """A tmux client sends its environment to the server."""

    CALLS = (
        (lambda tmux: tmux.panes(), b"list-panes"),
        (lambda tmux: tmux.ask_briefly()(), b"list-panes"),
        (lambda tmux: tmux.pane("%0"), b"display-message"),
        (lambda tmux: tmux.capture(["%0"]), b"source-file"),
        (lambda tmux: tmux.keys("%0", ["Enter"], mark=MARK), b"send-keys"),
        (lambda tmux: tmux.kill_pane("%0", mark=MARK), b"kill-pane"),
        (lambda tmux: tmux.switch_client("$0", {"TMUX": "/x,1,0", "MY_KEY": "hunter2"}), b"switch-client"),
    )

    @pytest.mark.starts
    @pytest.mark.parametrize("number", range(len(CALLS)))
    def test_a_call_that_starts_no_session_tells_no_secret(self, place, monkeypatch, number):
        call, word = self.CALLS[number]
        monkeypatch.setenv("MY_KEY", "hunter2")
        with RecordingServer(place / "s", word) as server:
            try:
                call(Tmux(server.path, timeout=30))
            except Exception as error:
                # The server ended without an answer.
                assert "tmux" in str(error)
        assert b"PATH=" in server.received and word in server.received
        assert b"hunter2" not in server.received and b"MY_KEY" not in server.received

    @pytest.mark.starts
    def test_a_new_session_gets_the_whole_environment(self, private, tmux, monkeypatch):
        """A person's shells in a server that mam starts have the variables that they have elsewhere."""
        monkeypatch.setenv("MY_KEY", "hunter2")
        server = Tmux(private.name)
        server.start("one", ["cat", "-"], cwd="/", session_id=MARK, root="/")
        assert "MY_KEY=hunter2" in private.raw("show-environment", "-g")

    def test_what_a_client_needs(self):
        environ = {
            "PATH": "/bin",
            "LC_ALL": "C",
            "TMUX_TMPDIR": "/t",
            "AWS_SECRET": "x",
            "SSH_AUTH_SOCK": "y",
        }
        assert needed_environment(environ) == {"PATH": "/bin", "LC_ALL": "C", "TMUX_TMPDIR": "/t"}
