"""Each error line that tmux prints becomes the right error of mam."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.error_translation import (
    NoAnswer,
    NoServer,
    PaneInMode,
    ServerEnded,
    from_stderr,
    no_answer,
)
from mam.core.errors import MamError, NameTaken, PaneGone, TerminalsDown, TmuxMissing

LINES = [
    ("no server running on /tmp/tmux-0/x", NoServer),
    ("error connecting to /tmp/tmux-0/x (No such file or directory)", NoServer),
    ("error connecting to /tmp/tmux-0/x (Connection refused)", NoServer),
    ("error connecting to /tmp/tmux-0/x (Permission denied)", TerminalsDown),
    ("error connecting to /tmp/tmux-0/x (Resource temporarily unavailable)", TerminalsDown),
    ("error connecting to /tmp/tmux-0/x (File name too long)", TerminalsDown),
    ("no current target", NoServer),
    ("can't find pane: %99", PaneGone),
    ("can't find session: $9", PaneGone),
    ("can't find window: @77", PaneGone),
    ("no such pane: %1", PaneGone),
    ("duplicate session: demo", NameTaken),
    ("lost server", ServerEnded),
    ("[lost server]", ServerEnded),
    ("server exited unexpectedly", ServerEnded),
    ("server exited", ServerEnded),
    ("protocol version mismatch (client 8, server 7)", TerminalsDown),
    ("access not allowed", TerminalsDown),
    ("unknown command: nosuch", TerminalsDown),
    ("command too long", TerminalsDown),
    ("respawn pane failed: pane b:0.0 still active", TerminalsDown),
    ("couldn't create socket", TerminalsDown),
    ("create window failed: fork failed: Resource temporarily unavailable", TerminalsDown),
    ("", TerminalsDown),
    ("can't find pane: %9\nno server running", PaneGone),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_line_of_tmux_is_an_error_of_ours(line, expected):
    error = from_stderr(line, "list-panes", "srv")
    assert type(error) is expected


def test_an_unknown_failure_names_command_server_and_reason_on_one_clean_line():
    error = from_stderr("strange \x1b[31mthing\x07\nsecond", "paste-buffer", "srv")
    assert str(error) == "tmux paste-buffer on server srv failed: strange [31mthing"


def test_a_server_that_belongs_to_another_version_has_a_way_out():
    assert "PATH" in from_stderr("protocol version mismatch (client 8, server 7)", "x", "srv").hint


def test_what_is_certain_and_what_is_not_are_told_apart():
    assert issubclass(NoServer, PaneGone) and not issubclass(NoServer, TerminalsDown)
    assert issubclass(NoAnswer, TerminalsDown) and issubclass(PaneInMode, PaneGone)
    error = no_answer("srv", "list-panes", 10.0)
    assert "srv does not answer" in str(error) and error.hint


class TestRealFailures:
    def test_no_server(self, tmux):
        assert tmux.panes().confirmed and tmux.panes().panes == []
        assert tmux.panes().server_pid is None
        with pytest.raises(NoServer):
            tmux.look("%0")
        assert tmux.capture(["%0"]) == {"%0": None}
        assert tmux.pane("%0") is None
        assert not tmux.kill_pane("%0", mark=None)

    def test_a_socket_without_a_listener_is_no_server(self, private):
        path = private.directory / "s"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
        assert Tmux(str(path)).panes().confirmed

    @pytest.mark.skipif(os.getuid() == 0, reason="root may connect everywhere")
    def test_a_socket_of_somebody_else_is_unknown(self, private, tmux):
        private.start()
        path = Path(os.environ["TMUX_TMPDIR"], f"tmux-{os.getuid()}", private.name)
        path.chmod(0)
        try:
            listing = tmux.panes()
        finally:
            path.chmod(0o660)
        assert not listing.confirmed and "belongs to another user" in listing.error

    def test_no_tmux_on_path_is_unknown(self, private):
        tmux = Tmux("x", environ={"PATH": str(private.directory)})
        listing = tmux.panes()
        assert not listing.confirmed and "PATH" in listing.error
        with pytest.raises(TmuxMissing):
            tmux.start("a", ["cat", "-"], cwd="/", session_id="s_00000001", root="/")

    @pytest.mark.parametrize(
        ("version", "is_fine"),
        [
            ("tmux 3.1c", False),
            ("tmux 2.9", False),
            ("tmux 3.2", True),
            ("tmux next-3.6", True),
            ("tmux master", True),
        ],
    )
    def test_an_old_tmux_starts_nothing(self, private, version, is_fine):
        fake = private.directory / "tmux"
        fake.write_text(
            f'#!/bin/sh\n[ "$1" = -V ] && echo "{version}" && exit 0\necho ran >&2; exit 1\n',
            encoding="utf-8",
        )
        fake.chmod(0o755)
        tmux = Tmux("x", environ={"PATH": f"{private.directory}:/usr/bin:/bin"})
        with pytest.raises(MamError) as caught:
            tmux.start("a", ["cat", "-"], cwd="/", session_id="s_00000001", root="/")
        assert (type(caught.value) is TerminalsDown) is is_fine
        assert (type(caught.value) is TmuxMissing) is not is_fine

    def test_a_tmux_that_cannot_be_run_is_unknown(self, private):
        (private.directory / "tmux").write_text("#!/nonexistent/shell\n", encoding="utf-8")
        (private.directory / "tmux").chmod(0o755)
        listing = Tmux("x", environ={"PATH": str(private.directory)}).panes()
        assert not listing.confirmed and "cannot be started" in listing.error
