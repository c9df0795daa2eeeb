"""Seven quirks of tmux that have caused errors, T1 to T7, with one test class for each."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import pytest

from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.launch_file import launcher_command, write_launch
from mam.adapters.tmux.parse import Garbled, rows
from mam.core.errors import InvalidName, PaneGone, Usage

MARK = "s_00000001"
OTHER = "s_00000002"


def wait_for_format_shells(private):
    """List panes until a shell command in a format of this test has run; any other would have run too."""
    control = private.directory / "control"
    job = f"#(touch {shlex.quote(str(control))})"

    def look():
        private.tmux.panes(full=True)
        private.raw("list-panes", "-a", "-F", job)
        return control.exists()

    private.until(look)


class TestT1TargetsMatchByPrefix:
    @pytest.mark.promise("P16")
    def test_a_prefix_of_a_live_name_is_a_name_of_its_own(self, private, tmux):
        long = private.start(name="billing", mark=MARK)
        short = private.start(name="bill", mark=OTHER)
        marks = {pane.session_name: pane.mark for pane in tmux.panes().panes}
        assert marks == {"billing": MARK, "bill": OTHER}
        assert tmux.kill_pane(short.id, mark=OTHER)
        assert [pane.id for pane in tmux.panes().panes] == [long.id]

    def test_tmux_itself_would_take_the_prefix(self, private, tmux):
        private.start(name="billing")
        private.raw("kill-session", "-t", "bill")
        assert tmux.panes().panes == []

    @pytest.mark.parametrize(
        "target", ["bill", "=bill", "bil*", "billing", "", "%", "%1x", "%1;", "$1", "@1", "{last}"]
    )
    def test_a_pane_is_named_by_its_id_only(self, private, tmux, target):
        pane = private.start(name="billing")
        for verb in (
            lambda: tmux.look(target),
            lambda: tmux.keys(target, ["Enter"], mark=MARK),
            lambda: tmux.paste(target, "x", mark=MARK, enter=True),
            lambda: tmux.mark(target, OTHER, "/"),
            lambda: tmux.respawn(target, ["true", "x"], session_id=MARK, root="/"),
            lambda: tmux.capture([target]),
        ):
            with pytest.raises(PaneGone):
                verb()
        assert not tmux.kill_pane(target, mark=None)
        assert tmux.pane(target) is None
        assert tmux.pane(pane.id).mark == MARK

    @pytest.mark.parametrize("target", ["bill", "=bill", "$", "%0", "$0;"])
    def test_a_session_is_named_by_its_id_only(self, private, tmux, target):
        private.start(name="billing")
        with pytest.raises(PaneGone):
            tmux.rename_session(target, "other")
        with pytest.raises(PaneGone):
            tmux.attach_argv(target)


class TestT2FormatsRunShells:
    @pytest.mark.parametrize(
        "name", ["#(touch x)", "a#{pane_id}", "", "-d", "a:b", "a.b", "a\n", "ä", "a" * 101]
    )
    def test_names_come_from_an_allow_list(self, tmux, private, name):
        with pytest.raises(InvalidName):
            private.start(name=name)
        pane = private.start(name="fine")
        with pytest.raises(InvalidName):
            tmux.rename_session(pane.session_id, name)

    @pytest.mark.parametrize(
        "text", ["x#(touch pwned)", "x#{pane_id}", "new\nline", "ends;", "a'b\"c$d`e", "%H#S#[fg=red]"]
    )
    def test_directories_and_roots_arrive_as_they_are(self, private, tmux, text):
        place = private.directory / text
        place.mkdir()
        private.start(cwd=place, root=str(place))
        # A pane has no directory until its process has its terminal.
        private.until(lambda: tmux.panes(full=True).panes[0].path)
        listed = tmux.panes(full=True).panes[0]
        assert listed.root == str(place)
        assert listed.path == str(place)
        assert private.raw("display-message", "-p", "-t", listed.id, "#{session_path}").removesuffix(
            "\n"
        ) == str(place)
        wait_for_format_shells(private)
        assert not list(private.directory.rglob("pwned"))
        assert not (private.directory / "home" / "pwned").exists()

    def test_a_launched_program_is_in_such_a_directory(self, private, tmux):
        place = private.directory / "x#(touch pwned)\n;"
        place.mkdir()
        path = write_launch(
            str(private.directory), "l1", argv=["/bin/cat", "#(touch pwned)", "-"], env={}, cwd=str(place)
        )
        pane = private.start(*launcher_command(path), cwd=place)
        private.until(lambda: tmux.pane(pane.id).command == "cat")
        assert private.until(lambda: tmux.pane(pane.id).path) == str(place)
        wait_for_format_shells(private)
        assert not list(private.directory.rglob("pwned"))

    def test_a_mark_is_a_session_id_or_nothing(self, private, tmux):
        pane = private.start()
        for bad in ("#(touch pwned)", "s_0000000g", "s_000000011", "", "s_00000001,1"):
            with pytest.raises(Usage):
                tmux.keys(pane.id, ["Enter"], mark=bad)
            with pytest.raises(Usage):
                tmux.mark(pane.id, bad, "/")


class TestT3PasteEndsItsBracket:
    @pytest.mark.promise("P32")
    def test_an_escape_in_the_text_executes_nothing(self, private, tmux):
        pane = private.start("bash", "--norc", "-i")
        private.until(lambda: "bash-" in tmux.look(pane.id).screen)
        tmux.paste(pane.id, "a\x1b[201~\rtouch pwned\r\x9b201~\rtouch pwned\r", mark=MARK, enter=False)
        private.until(lambda: "touch pwned" in tmux.look(pane.id).screen)
        tmux.keys(pane.id, ["C-c"], mark=MARK)
        private.until(lambda: tmux.look(pane.id).screen.count("bash-") > 1)
        tmux.paste(pane.id, "touch control", mark=MARK, enter=True)
        private.until((private.directory / "control").exists)
        assert not (private.directory / "pwned").exists()

    def test_only_the_two_marks_of_tmux_reach_the_program(self, private, tmux):
        pane, log = private.record()
        tmux.paste(pane.id, "a\x1b[201~b\x07\x00\x7f\x9b201~c\r\nd\te", mark=MARK, enter=False)
        private.until(lambda: log.read_bytes().endswith(b"\x1b[201~"))
        assert log.read_bytes() == b"\x1b[200~a[201~b201~c\nd\te\x1b[201~"


class TestT4TextAndKeys:
    @pytest.mark.promise("P32")
    @pytest.mark.parametrize("text", ["Enter", "C-c", "-R", "--", "one\ntwo", "-l x", "Escape\nEnter"])
    def test_text_is_never_a_key(self, private, tmux, text):
        pane, log = private.record()
        tmux.paste(pane.id, text, mark=MARK, enter=True)
        expected = b"\x1b[200~" + text.encode() + b"\x1b[201~\r"
        private.until(lambda: len(log.read_bytes()) >= len(expected))
        assert log.read_bytes() == expected

    @pytest.mark.parametrize("word", ["x", "rm -rf", "-R", "Enter;", "C-c C-c", "enter", "M-x", "", "é"])
    def test_what_is_not_in_the_list_is_not_a_key(self, private, tmux, word):
        pane, log = private.record()
        with pytest.raises(Usage):
            tmux.keys(pane.id, ["y", word], mark=MARK)
        tmux.keys(pane.id, ["n"], mark=MARK)
        private.until(log.read_bytes)
        assert log.read_bytes() == b"n"

    def test_every_key_of_the_list_is_one_that_tmux_knows(self, private, tmux):
        from mam.adapters.tmux.key_names import KEYS

        pane, log = private.record()
        tmux.keys(pane.id, [*KEYS, "Enter"], mark=MARK)
        private.until(lambda: log.read_bytes().endswith(b"\r"))
        sent = log.read_bytes()
        assert sent.startswith(b"\r\x1b\t\x1b[Z\x1b[A\x1b[B\x1b[D\x1b[C")
        # A word that tmux does not know would be typed letter by letter.
        assert not any(word.encode() in sent for word in KEYS if len(word) > 3 or word.startswith("C-"))


class TestT5FinalSemicolonEndsTheCommand:
    @pytest.mark.parametrize("text", ["echo hi;", ";", "a;;", "a\\;", "x ; kill-server ;", "#{pane_id};"])
    def test_text_arrives_whole(self, private, tmux, text):
        pane, log = private.record()
        tmux.paste(pane.id, text, mark=MARK, enter=False)
        expected = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        private.until(lambda: len(log.read_bytes()) >= len(expected))
        assert log.read_bytes() == expected

    def test_a_root_that_ends_so_is_kept(self, private, tmux):
        pane = private.start(root="/tmp/a;")
        assert pane.root == "/tmp/a;"
        tmux.mark(pane.id, OTHER, "/tmp/b ;")
        listed = tmux.panes().panes[0]
        assert (listed.mark, listed.root) == (OTHER, "/tmp/b ;")


FORGERIES = [
    "evil|%99",
    ",starts like a row",
    "x,%99,$9,@9,1,0,,,0,1,1,0",
    "0000000000000000,%99",
    "line\n0000000000000000,%99,$9,@9,1,0",
    "é€😀 wide",
    "back\\slash \\n \\033 $HOME",
    "#{pane_id}#(touch pwned)",
    "tab\there",
]


class TestT6ForgedFields:
    @pytest.mark.parametrize("text", FORGERIES)
    def test_titles(self, private, tmux, text):
        script = f"printf '\\033]2;%s\\033\\\\READY' {shlex.quote(text)}; exec cat"
        pane = private.start("sh", "-c", script)
        private.until(lambda: "READY" in tmux.look(pane.id).screen)
        self.assert_only(tmux, pane)
        if "\n" not in text and "\t" not in text:
            assert tmux.panes(full=True).panes[0].title == text

    @pytest.mark.parametrize("text", FORGERIES)
    def test_directories(self, private, tmux, text):
        place = private.directory / text
        place.mkdir()
        pane = private.start(cwd=place)
        self.assert_only(tmux, pane)
        assert private.until(lambda: tmux.panes(full=True).panes[0].path) == str(place)

    def test_a_directory_that_is_not_utf8(self, private, tmux):
        place = os.fsencode(private.directory) + b"/\xff\xfe,\n"
        Path(os.fsdecode(place)).mkdir()
        pane = private.start(cwd=os.fsdecode(place), root=os.fsdecode(place))
        self.assert_only(tmux, pane)
        private.until(lambda: tmux.panes(full=True).panes[0].path)
        listed = tmux.panes(full=True).panes[0]
        assert (os.fsencode(listed.path), os.fsencode(listed.root)) == (place, place)

    @pytest.mark.parametrize("text", FORGERIES)
    def test_names_of_sessions_and_windows(self, private, tmux, text):
        pane = private.start()
        private.raw("rename-session", "-t", pane.session_id, text.replace("#", "##"), check=False)
        private.raw("rename-window", "-t", pane.window_id, text.replace("#", "##"), check=False)
        self.assert_only(tmux, pane)

    @pytest.mark.parametrize("text", [*(text.encode() for text in FORGERIES), b"\xff\xfe,%99", b"\x01\x02"])
    def test_marks_of_others(self, private, tmux, text):
        pane = private.start()
        for option in ("@mam_session", "@mam_root"):
            private.raw("set-option", "-p", "-t", pane.id, option, text)
        self.assert_only(tmux, pane)
        listed = tmux.panes().panes[0]
        assert listed.mark == text.decode("utf-8", "replace")
        assert listed.root == text.decode("utf-8", "replace")

    def test_a_program_named_like_a_row(self, private, tmux):
        program = private.directory / "a,%99,0\n"
        program.write_text("#!/bin/sh\ncat\n", encoding="utf-8")
        program.chmod(0o755)
        pane = private.start(str(program), "-")
        self.assert_only(tmux, pane)

    def test_even_who_knew_the_nonce_forges_nothing(self):
        nonce = "00112233aabbccdd"
        answer = b"%N%1,$1,@1,5,0,,,0,9,1,0,0,3,0%Na%N%N%Ntty%N%N\n".replace(b"%N", nonce.encode())
        assert [pane.id for pane in rows(answer, nonce)] == ["%1"]
        forged = answer.replace(b"tty", nonce.encode() + b",%9")
        with pytest.raises(Garbled):
            list(rows(forged, nonce))

    @staticmethod
    def assert_only(tmux, pane):
        for full in (False, True):
            listing = tmux.panes(full)
            assert listing.confirmed, listing.error
            assert [(listed.id, listed.pid, listed.tty) for listed in listing.panes] == [
                (pane.id, pane.pid, pane.tty)
            ]
        assert tmux.pane(pane.id).pid == pane.pid
        assert tmux.look(pane.id).pane.pid == pane.pid


class TestT7WhatAPaneCanReach:
    OSC = (
        "\\033]52;c;cHduZWQ=\\007\\033]0;title\\007"
        "\\033]8;;http://x\\007link\\033]8;;\\007\\033[31mred\\033[0m DONE"
    )

    def test_a_capture_holds_no_escape_sequence(self, private, tmux):
        pane = private.start("sh", "-c", f"printf '{self.OSC}'; exec cat")
        private.until(lambda: "DONE" in tmux.look(pane.id).screen)
        for screen in (tmux.capture([pane.id])[pane.id], tmux.look(pane.id).screen):
            assert screen.startswith("linkred DONE\n")
            assert "\x1b" not in screen and "\x07" not in screen

    def test_a_server_of_ours_is_closed_whatever_the_users_file_says(self, private, tmux, tmp_path):
        conf = "set -s set-clipboard on\nset -g allow-rename on\nset -g allow-passthrough on\n"
        (tmp_path / "home" / ".tmux.conf").write_text(conf, encoding="utf-8")
        private.start()
        options = tmux.server_options()
        assert options["set-clipboard"] == "external"
        assert options["allow-passthrough"] == options["allow-rename"] == "off"
        assert options["@mam_server"] == "1"
        assert options["version"]

    def test_a_server_of_somebody_else_keeps_its_options_but_not_for_our_pane(self, private, tmux):
        private.raw("-f", "/dev/null", "new-session", "-d", "-s", "theirs", "cat")
        private.raw("set-option", "-g", "allow-rename", "on")
        private.raw("set-option", "-s", "set-clipboard", "on")
        pane = private.start()
        options = tmux.server_options()
        assert (options["allow-rename"], options["set-clipboard"]) == ("on", "on")
        assert "@mam_server" not in options
        assert private.raw("show-options", "-p", "-v", "-t", pane.id, "allow-rename").strip() == "off"
        assert private.raw("show-options", "-p", "-v", "-t", pane.id, "allow-passthrough").strip() == "off"

    def test_the_window_keeps_its_name(self, private, tmux):
        pane = private.start("sh", "-c", "printf '\\033kforged\\033\\\\READY'; exec cat")
        private.until(lambda: "READY" in tmux.look(pane.id).screen)
        assert "forged" not in private.raw("list-windows", "-a", "-F", "#{window_name}")

    def test_the_socket_is_in_a_directory_of_its_owner(self, private, tmux):
        private.start()
        directory = Path(os.environ["TMUX_TMPDIR"], f"tmux-{os.getuid()}")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_server_inherits_nothing_that_names_a_session(private, tmux):
    private.start()
    shown = private.raw("show-environment", "-g")
    assert "MAM_SESSION" not in shown and "/nowhere/default" not in shown
    assert "TMUX_TMPDIR" in shown


@pytest.mark.starts
def test_a_hook_of_the_user_that_splits_new_sessions(home, tmp_path):
    (home / ".tmux.conf").write_text('set-hook -g after-new-session "split-window"\n', encoding="utf-8")
    server = Tmux(f"mam-test-{os.getpid()}-hook")
    path = write_launch(
        str(tmp_path), "s_1-a", argv=["/bin/sleep", "1000"], env={"A": "b"}, cwd=str(tmp_path)
    )
    try:
        pane = server.start(
            "split", launcher_command(path), cwd=str(tmp_path), session_id="s_0000abcd", root="/r"
        )
        panes = server.panes().panes
        assert [listed.id for listed in panes if listed.mark] == [pane.id]
        assert (len(panes), min(listed.id for listed in panes)) == (2, pane.id)
    finally:
        server.kill_server()
