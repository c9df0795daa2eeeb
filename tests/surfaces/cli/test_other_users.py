"""Roots and tmux servers of other users, and honest roots that only look like them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from tests.adapters.tmux.recording_server import RecordingServer
from tests.other_user import STRANGER, give, needs_root

from mam.adapters.system import mounts
from mam.adapters.tmux import server_socket

SECRET = "hunter2-of-the-environment"
READING = (("ls",), ("ls", "--json"), ("status", "one"), ("explain", "one"), ("log",), ("job", "list"))
CHANGING = (
    ("create", "--agent", "human"),
    ("stop", "one"),
    ("send", "one", "words"),
    ("resume", "one"),
    ("init",),
    ("job", "submit", "--agent", "practice", "--prompt", "work"),
)


@pytest.fixture
def sockets(monkeypatch):
    """A short path for sockets; what this process knows of sockets is of this test alone."""
    monkeypatch.setattr(server_socket, "_own", set())
    folder = Path(tempfile.mkdtemp(prefix="mam-t-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def listener(sockets):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(sockets / "s"))
        opened.listen()
        opened.setblocking(False)
        yield opened


@pytest.fixture
def registry_naming(run, workspace, tmux_server, tmp_path):
    """Return a function that makes a root of a registry file alone, whose session is on a server."""

    def make(server: object) -> Path:
        assert run("create", "--agent", "human", "--session", "one").code == 0
        text = (workspace / ".hermes" / "agent-sessions.yaml").read_text(encoding="utf-8")
        assert tmux_server in text
        root = tmp_path / "theirs"
        (root / ".hermes").mkdir(parents=True)
        file = root / ".hermes" / "agent-sessions.yaml"
        file.write_text(text.replace(tmux_server, str(server)), encoding="utf-8")
        return root

    return make


def was_asked(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@needs_root
def test_d4_a_registry_in_a_folder_of_another_user(run, registry_naming, listener, monkeypatch):
    """No verb reads it, opens the socket that it names, or writes anything there."""
    root = registry_naming(listener.getsockname())
    (root / "mam.toml").write_text(f'tmux_server = "{listener.getsockname()}"\n', encoding="utf-8")
    give(root)
    before = sorted(root.rglob("*"))
    monkeypatch.chdir(root)
    for arguments in (*READING, *CHANGING):
        answer = run(*arguments)
        assert answer.code == 1, (arguments, answer)
        said = answer.out + answer.err
        assert f"{root}/.hermes/agent-sessions.yaml belongs to user {STRANGER}" in said, (arguments, answer)
        assert "safe_roots" in said
    assert run("ls", "--json").error["code"] == "root_unsafe"
    assert sorted(root.rglob("*")) == before
    assert not was_asked(listener)


@needs_root
def test_d4_the_doctor_says_it_too(run, registry_naming, listener, monkeypatch):
    root = registry_naming(listener.getsockname())
    give(root)
    monkeypatch.chdir(root)
    assert run("doctor").out.startswith(f"problem  owner  {root}/.hermes/agent-sessions.yaml belongs to")
    assert not was_asked(listener)


@pytest.mark.promise("P40")
@needs_root
def test_d4_a_socket_of_another_user_that_the_registry_names(run, registry_naming, sockets, listener):
    root = registry_naming(listener.getsockname())
    os.chown(sockets / "s", STRANGER, STRANGER)
    listing = json.loads(run("--workspace", str(root), "ls", "--json").out)
    assert listing["sessions"][0]["tmux_alive"] is None
    assert f"{sockets / 's'} belongs to user {STRANGER}" in listing["warnings"][0]
    assert f"{sockets / 's'} belongs to user {STRANGER}" in run("--workspace", str(root), "ls").err
    explained = run("--workspace", str(root), "explain", "one")
    assert f"{sockets / 's'} belongs to user {STRANGER}" in explained.out
    assert f"{sockets / 's'} belongs to user {STRANGER}" in run("--workspace", str(root), "doctor").out
    assert not was_asked(listener)


def test_d4_a_listing_sends_no_environment(run, registry_naming, sockets, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    root = registry_naming(sockets / "s")
    with RecordingServer(sockets / "s") as server:
        assert run("--workspace", str(root), "ls").code == 0
    assert b"list-panes" in server.received
    assert SECRET.encode() not in server.received and b"MY_KEY" not in server.received


@needs_root
def test_a_root_that_another_user_made_above_does_not_stop_a_root_of_ones_own(run, tmp_path, monkeypatch):
    """Anybody can make /tmp/.mam."""
    above = tmp_path / "sticky"
    mine = above / "mine"
    mine.mkdir(parents=True)
    above.chmod(0o1777)
    (above / ".mam").mkdir()
    give(above / ".mam")
    monkeypatch.chdir(mine)
    refused = run("create", "--agent", "human")
    assert refused.code == 1 and "mam init" in refused.err
    # The shell of a person who uses tmux has this variable, for which mam would look into the rows.
    monkeypatch.setenv("TMUX_PANE", "%0")
    assert run("init").code == 0
    assert run("create", "--agent", "human").code == 0


@needs_root
def test_safe_roots_takes_a_root_of_another_user(run, home, workspace):
    assert run("create", "--agent", "human", "--session", "one").code == 0
    give(workspace)
    assert run("ls").code == 1
    config = home / ".config" / "mam" / "config.toml"
    config.write_text(f'resident = "off"\nsafe_roots = ["{workspace.parent}/*"]\n', encoding="utf-8")
    assert run("ls", "--json").json["sessions"][0]["tmux_alive"] is True
    assert run("stop", "one").code == 0


def test_safe_roots_of_a_repository_is_refused(run, workspace):
    (workspace / "mam.toml").write_text(f'safe_roots = ["{workspace}"]\n', encoding="utf-8")
    assert "foreign repository" in run("create", "--agent", "human").err


def test_on_a_network_mam_reads_and_changes_nothing(run, home, workspace, monkeypatch):
    assert run("create", "--agent", "human", "--session", "one").code == 0
    monkeypatch.setattr(mounts, "_linux_mounts", lambda: [("/", "ext4"), (str(workspace), "nfs4")])
    listing = json.loads(run("ls", "--json").out)
    assert listing["sessions"][0]["tmux_alive"] is True
    assert "network file system (nfs4)" in listing["warnings"][0]
    for arguments in (("stop", "one"), ("create", "--agent", "human")):
        refused = run("--json", *arguments)
        assert (refused.code, refused.error["code"]) == (1, "root_network")
        assert "nfs4" in refused.error["message"] and "safe_roots" in refused.error["hint"]
    config = home / ".config" / "mam" / "config.toml"
    config.write_text(f'resident = "off"\nsafe_roots = ["{workspace}"]\n', encoding="utf-8")
    assert run("stop", "one").code == 0


def test_on_a_network_nothing_is_made(run, workspace, monkeypatch):
    monkeypatch.setattr(mounts, "_linux_mounts", lambda: [("/", "ext4"), (str(workspace), "nfs4")])
    assert run("create", "--agent", "human").code == 1
    assert run("init").code == 1
    assert list(workspace.iterdir()) == []


def test_honest_umask_002(run, workspace):
    """Many systems give each user a group of their own, and files that this group may write."""
    before = os.umask(0o002)
    try:
        project = workspace / "project"
        project.mkdir()
        (project / "mam.toml").write_text("ready_timeout = 50\n", encoding="utf-8")
        assert project.stat().st_mode & 0o020
        for arguments in (("init",), ("create", "--agent", "human", "--session", "one"), ("ls",)):
            answer = run("--workspace", str(project), *arguments)
            assert answer.code == 0, answer
        for path in (project / ".hermes", project / ".hermes" / "agent-sessions.yaml"):
            path.chmod(path.stat().st_mode | 0o020)
        assert run("--workspace", str(project), "stop", "one").code == 0
    finally:
        os.umask(before)


@needs_root
def test_umask_002_in_a_group_with_others(run, workspace):
    """Debian has this group with several users."""
    os.chown(workspace, 0, 65534)
    workspace.chmod(0o775)
    refused = run("create", "--agent", "human")
    assert refused.code == 1
    assert f"can write to {workspace}: " in refused.err and f"chmod g-w {workspace}" in refused.err


def test_honest_a_checkout_below_a_sticky_folder(run, tmp_path):
    """As below /tmp: everybody may write there, and nobody can replace what belongs to another."""
    sticky = tmp_path / "sticky"
    (sticky / "checkout").mkdir(parents=True)
    sticky.chmod(0o1777)
    for arguments in (("create", "--agent", "human", "--session", "one"), ("ls",), ("stop", "one")):
        answer = run("--workspace", str(sticky / "checkout"), *arguments)
        assert answer.code == 0, answer
    sticky.chmod(0o777)
    refused = run("--workspace", str(sticky / "checkout"), "ls")
    assert refused.code == 1 and f"every user can write to {sticky}" in refused.err


@needs_root
def test_honest_sudo(run, home, workspace, monkeypatch):
    """`sudo mam` in one's own root would make files there that belong to root."""
    assert run("create", "--agent", "human", "--session", "one").code == 0
    assert run("stop", "one").code == 0
    give(workspace)
    monkeypatch.setenv("SUDO_USER", "alice")
    for arguments in (("ls",), ("create", "--agent", "human")):
        answer = run(*arguments)
        assert answer.code == 1
        assert f"{workspace}/.mam belongs to user {STRANGER}, and mam runs as root" in answer.err
        assert "run mam without sudo" in answer.err and "safe_roots" in answer.err


@needs_root
def test_honest_sudo_that_keeps_the_home(run, home, workspace, monkeypatch):
    """Then even in a root of root the settings are those of the user, and could name programs to run."""
    give(home / ".config")
    monkeypatch.setenv("SUDO_USER", "alice")
    refused = run("create", "--agent", "human")
    assert refused.code == 64
    assert (
        "config.toml belongs to" in refused.err and "without sudo" in refused.err and "sudo -H" in refused.err
    )
