"""The client with a real tmux server."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import sys
import time

import pytest
from tests.effort import count_calls

from mam.adapters.tmux.client import Tmux, clean_environment
from mam.adapters.tmux.error_translation import NoAnswer, PaneChanged, PaneInMode, from_stderr
from mam.core.errors import (
    DeliveryUnconfirmed,
    IllegalTransition,
    InvalidPath,
    NameTaken,
    PaneGone,
    TerminalsDown,
)
from mam.core.terminal_cells import Style, columns, parse_cells, plain_text

MARK = "s_00000001"
OTHER = "s_00000002"


@pytest.fixture
def frozen(private, tmux):
    """A server that runs and does not answer."""
    pane = private.start()
    tmux.timeout = 0.3
    os.kill(pane.server_pid, signal.SIGSTOP)
    yield pane
    with contextlib.suppress(ProcessLookupError):
        os.kill(pane.server_pid, signal.SIGCONT)
    tmux.timeout = 10


class TestPanes:
    def test_what_was_started_is_listed(self, private, tmux):
        pane = private.start("sh", "-c", "echo hello; exec cat", name="demo", root="/r")
        listing = tmux.panes()
        (listed,) = listing.panes
        assert listing.confirmed and listing.error is None and listing.server_pid == tmux.server_pid()
        assert (listed.id, listed.session_id, listed.window_id) == (pane.id, pane.session_id, pane.window_id)
        assert (listed.session_name, listed.mark, listed.root) == ("demo", MARK, "/r")
        assert (listed.dead, listed.dead_status, listed.dead_signal, listed.in_mode) == (
            False,
            None,
            None,
            False,
        )
        assert listed.tty.startswith("/dev/") and listed.attached == 0 and listed.pid == pane.pid

    def test_full_rows_have_the_rest(self, private, tmux):
        private.start("sleep", "100")

        def shown():
            (pane,) = tmux.panes(full=True).panes
            return pane.width, pane.height, pane.path, pane.command

        # tmux asks the kernel for the directory, and during an exec the kernel has none.
        private.until(lambda: shown() == (200, 50, str(private.directory), "sleep"))

    def test_panes_that_are_not_ours_have_no_mark(self, private, tmux):
        private.start()
        private.raw("new-session", "-d", "-s", "theirs", "cat")
        private.raw("split-window", "-t", "=theirs:", "cat")
        marks = sorted((pane.session_name, pane.mark, pane.root) for pane in tmux.panes().panes)
        assert marks == [("one", MARK, "/"), ("theirs", "", ""), ("theirs", "", "")]

    def test_a_window_in_two_sessions_is_listed_once(self, private, tmux):
        pane = private.start(name="a")
        private.raw("new-session", "-d", "-t", "=a", "-s", "b")
        assert [listed.id for listed in tmux.panes().panes] == [pane.id]

    def test_a_server_without_sessions_has_no_panes(self, private, tmux):
        """So is each server for a moment after its last session, until it has ended."""
        pane = private.start()
        private.raw("set-option", "-s", "exit-empty", "off")
        private.raw("kill-session", "-t", pane.session_id)
        listing = tmux.panes()
        assert (listing.confirmed, listing.panes, listing.error) == (True, [], None)
        assert tmux.ask_briefly()().confirmed
        private.raw("kill-server")

    def test_a_server_that_does_not_answer_is_unknown(self, frozen, tmux):
        listing = tmux.panes()
        assert not listing.confirmed and listing.panes == []
        assert "does not answer" in listing.error
        assert tmux.server_pid() == frozen.server_pid

    def test_a_thousand_panes_are_parsed_with_little_work_each(self, private, tmux):
        private.start()
        nonce = "00112233"
        from mam.adapters.tmux import argv, parse

        (row,) = tmux._call(argv.list_panes(nonce)).splitlines(keepends=True)
        answer = b"".join(row.replace(b"%0", b"%%%d" % number) for number in range(1000))
        listing, calls = count_calls(lambda: parse.listing(answer, nonce))
        assert len(listing.panes) == 1000
        assert calls < 50_000, calls


class TestServerThatEnds:
    """It takes no commands any more, and a moment later it certainly has no panes."""

    @pytest.fixture(autouse=True)
    def _ending(self, private, tmux, monkeypatch):
        private.start(name="a")
        real, calls = Tmux._judge, []

        def judge(self, finished, command, **more):
            calls.append(command)
            if len(calls) <= 3:
                raise from_stderr("server exited unexpectedly", command[0], "x")
            return real(self, finished, command, **more)

        tmux.kill_server()
        monkeypatch.setattr(Tmux, "_judge", judge)

    def test_a_listing(self, tmux):
        listing = tmux.panes()
        assert (listing.confirmed, listing.panes) == (True, [])

    def test_a_brief_listing(self, tmux):
        listing = tmux.ask_briefly()()
        assert (listing.confirmed, listing.panes) == (True, [])

    def test_a_look(self, tmux):
        with pytest.raises(PaneGone):
            tmux.look("%0")


class TestStart:
    def test_a_name_that_is_alive_is_taken(self, private):
        private.start(name="a")
        with pytest.raises(NameTaken):
            private.start(name="a", mark=OTHER)

    def test_a_refused_start_changes_nothing(self, private, tmux):
        first = private.start(name="a", root="/first")
        with pytest.raises(NameTaken):
            private.start(name="a", mark=OTHER, root="/second")
        (pane,) = tmux.panes().panes
        assert (pane.id, pane.mark, pane.root) == (first.id, MARK, "/first")

    def test_a_server_that_ends_with_its_last_pane_is_started_anew(self, private, tmux, monkeypatch):
        real, calls = Tmux._call, []

        def ending(self, command, **more):
            calls.append(command[0])
            if calls.count("start-server") == 1:
                raise from_stderr("server exited unexpectedly", command[0], "x")
            return real(self, command, **more)

        monkeypatch.setattr(Tmux, "_call", ending)
        pane = private.start(name="a")
        assert [listed.id for listed in tmux.panes().panes] == [pane.id]
        assert calls.count("start-server") == 2

    def test_a_directory_that_is_not_there(self, private, tmux):
        with pytest.raises(InvalidPath):
            private.start(cwd="/nonexistent")
        assert tmux.panes().panes == []

    def test_a_program_that_ends_at_once_leaves_its_pane(self, private, tmux):
        pane = private.start("true", "x")
        private.until(lambda: tmux.pane(pane.id).dead)

    @pytest.mark.parametrize(
        "conf",
        [
            "set -g destroy-unattached on",
            "set -g base-index 1\nset -g pane-base-index 1\nset -g remain-on-exit off",
            "nosuch-command\nset -g nosuch-option 1",
            "set -g default-command 'echo no'\nset -g default-shell /bin/false\nset -g default-size 10x10",
            "new-session -d -s theirs cat",
        ],
    )
    def test_any_tmux_conf_of_the_user(self, private, tmux, tmp_path, conf):
        (tmp_path / "home" / ".tmux.conf").write_text(conf + "\n", encoding="utf-8")
        pane = private.start("sh", "-c", "echo up; read line; exit 3")
        private.until(lambda: "up" in tmux.look(pane.id).screen)
        tmux.keys(pane.id, ["Enter"], mark=MARK)
        dead = tmux.dead_status(pane.id, pane.server_pid, time.monotonic() + 5)
        assert (dead.dead, dead.dead_status, dead.width, dead.mark) == (True, 3, 200, MARK)

    def test_size(self, private, tmux):
        tmux.start("a", ["cat", "-"], cwd="/", session_id=MARK, root="/", width=91, height=33)
        (pane,) = tmux.panes(full=True).panes
        assert (pane.width, pane.height) == (91, 33)

    def test_the_server_does_not_answer(self, frozen, private):
        with pytest.raises(TerminalsDown):
            private.start(name="b")


class TestRespawn:
    def test_a_dead_pane_lives_again(self, private, tmux):
        pane = private.start("true", "x")
        private.until(lambda: tmux.pane(pane.id).dead)
        again = tmux.respawn(pane.id, ["cat", "it's;"], session_id=MARK, root="/new")
        assert again.id == pane.id and again.pid != pane.pid and not again.dead
        assert (again.mark, again.root, again.dead_status) == (MARK, "/new", None)

    def test_a_live_pane_is_left_alone(self, private, tmux):
        pane = private.start()
        with pytest.raises(IllegalTransition):
            tmux.respawn(pane.id, ["cat", "-"], session_id=MARK, root="/")
        assert tmux.pane(pane.id).pid == pane.pid

    def test_the_pane_of_another_is_left_alone(self, private, tmux):
        pane = private.start("true", "x")
        private.until(lambda: tmux.pane(pane.id).dead)
        with pytest.raises(PaneGone):
            tmux.respawn(pane.id, ["cat", "-"], session_id=OTHER, root="/")
        assert tmux.pane(pane.id).dead and tmux.pane(pane.id).mark == MARK

    def test_a_pane_that_is_gone(self, private, tmux):
        private.start()
        with pytest.raises(PaneGone):
            tmux.respawn("%99", ["cat", "-"], session_id=MARK, root="/")


class TestCapture:
    def test_many_at_once_and_the_missing_one_loses_nothing(self, private, tmux):
        panes = [
            private.start("sh", "-c", f"echo text-{number}; exec cat", name=f"n{number}")
            for number in range(5)
        ]
        ids = [pane.id for pane in panes]
        private.until(lambda: all(f"text-{n}\n" in (tmux.capture(ids)[i] or "") for n, i in enumerate(ids)))
        screens = tmux.capture([ids[0], "%99", *ids[1:], ids[0]])
        assert list(screens) == [ids[0], "%99", *ids[1:]]
        assert screens["%99"] is None
        assert all(screens[pane_id].startswith(f"text-{number}\n") for number, pane_id in enumerate(ids))

    def test_a_screen_cannot_forge_a_boundary(self, private, tmux, monkeypatch):
        spy = private.start("sh", "-c", "echo 0011223344556677; echo 00112233445566771; exec cat")
        other = private.start("sh", "-c", "echo other; exec cat", name="b")
        private.until(lambda: "other" in (tmux.capture([other.id])[other.id]))
        nonces = {tmux_nonce() for _ in range(100)}
        assert len(nonces) == 100
        screens = tmux.capture([spy.id, other.id])
        assert screens[spy.id].startswith("0011223344556677\n00112233445566771\n")
        assert screens[other.id].startswith("other\n")

    def test_scrollback(self, private, tmux):
        pane = private.start("sh", "-c", "seq 1 300; exec cat")
        private.until(lambda: "300" in tmux.look(pane.id).screen)
        assert "\n100\n" not in tmux.capture([pane.id])[pane.id]
        assert "\n100\n" in tmux.capture([pane.id], scrollback=1000)[pane.id]

    def test_more_than_tmux_takes_as_arguments(self, private, tmux):
        pane = private.start()
        ids = [pane.id, *(f"%{number}" for number in range(1000, 3000))]
        assert tmux.capture(ids)[pane.id] is not None

    def test_nothing_asked_nothing_done(self, tmux):
        assert tmux.capture([]) == {}

    def test_unknown_is_not_absent(self, frozen, tmux):
        with pytest.raises(TerminalsDown):
            tmux.capture([frozen.id])

    def test_a_look_has_pane_and_screen_of_one_moment(self, private, tmux):
        pane = private.start("sh", "-c", "printf 'one\\n  two'; exec cat")
        private.until(lambda: "two" in tmux.look(pane.id).screen)
        look = tmux.look(pane.id)
        assert look.screen.startswith("one\n  two\n") and look.screen.count("\n") == 50
        assert (look.cursor_x, look.cursor_y) == (5, 1)
        assert look.pane.id == pane.id and look.pane.mark == MARK
        assert tmux.capture([pane.id])[pane.id] == look.screen

    # Colours, a link, line drawing, coloured spaces at the end, wide and joined signs, a style across lines.
    DRAWN = (
        "\x1b[1;31mred\x1b[0m plain \x1b[2mdim\x1b[22;7mreverse\x1b[27m\n"
        "\x1b[38;5;208mpalette\x1b[48;2;1;2;3mtrue\x1b[0m   \x1b[41m   \n"
        "\x1b[0m\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(0lqk\x1b(B a\x1b[4munder\n"
        "line\x1b[0m 漢字 e\u0301 👍 end\x1b[3;90m"
    )

    def test_a_styled_screen_is_the_plain_one_with_its_styles(self, private, tmux, tmp_path):
        (tmp_path / "drawn").write_text(self.DRAWN, encoding="utf-8")
        pane = private.start("sh", "-c", f"cat {tmp_path / 'drawn'}; exec cat")
        private.until(lambda: "end" in tmux.look(pane.id).screen)
        look, plain = tmux.look(pane.id), tmux.capture([pane.id])[pane.id]
        styled = tmux.screens([pane.id, "%99"], styled=True)
        assert styled["%99"] is None
        capture = styled[pane.id]
        assert capture.captured == look.captured
        assert plain_text(capture.captured) == plain == look.screen
        assert tmux.screens([pane.id])[pane.id].captured == plain
        assert (capture.cursor_x, capture.cursor_y) == (look.cursor_x, look.cursor_y)
        assert 0 <= time.time() - capture.written_at < 600, "when something was drawn last"
        rows = parse_cells(capture.captured)
        # tmux and mam give each sign the same width.
        assert capture.cursor_x == columns(plain.split("\n")[3]) == rows[3][-1].column + 1
        assert rows[0][0].style == Style(frozenset({"bold"}), foreground=1)
        assert rows[0][10].style == Style(frozenset({"dim"}))
        assert rows[0][13].style == Style(frozenset({"reverse"}))
        assert rows[1][0].style.foreground == 208
        assert rows[1][7].style.background == "#010203"
        assert rows[3][0].style == Style(frozenset({"underline"}))


def tmux_nonce():
    from mam.adapters.tmux.client import new_nonce

    return new_nonce()


class TestPaste:
    def test_text_and_enter_in_one_call(self, private, tmux):
        pane, log = private.record()
        tmux.paste(pane.id, "héllo 😀\nline", mark=MARK, enter=True)
        expected = b"\x1b[200~" + "héllo 😀\nline".encode() + b"\x1b[201~\r"
        private.until(lambda: log.read_bytes() == expected)
        assert private.raw("list-buffers") == ""

    def test_enter_after_a_pause(self, private, tmux):
        pane, log = private.record()
        tmux.paste(pane.id, "x", mark=MARK, enter=True, pause=0.05)
        private.until(lambda: log.read_bytes() == b"\x1b[200~x\x1b[201~\r")

    def test_no_text_is_only_enter(self, private, tmux):
        pane, log = private.record()
        tmux.paste(pane.id, "\x1b", mark=MARK, enter=True)
        private.until(lambda: log.read_bytes() == b"\r")
        tmux.paste(pane.id, "", mark=MARK, enter=False)
        tmux.keys(pane.id, [], mark=MARK)

    @pytest.mark.slow
    def test_a_megabyte(self, private, tmux):
        pane, log = private.record()
        text = "".join(f"line {number} é\n" for number in range(70_000))
        tmux.paste(pane.id, text, mark=MARK, enter=False)
        expected = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        private.until(lambda: len(log.read_bytes()) >= len(expected))
        assert log.read_bytes() == expected

    @pytest.mark.parametrize("verb", ["paste", "keys"])
    def test_a_pane_with_another_mark_gets_nothing(self, private, tmux, verb):
        pane, log = private.record()
        with pytest.raises(PaneGone, match="not the pane of"):
            self.type(tmux, verb, pane.id, OTHER)
        self.assert_untouched(private, tmux, pane, log)

    @pytest.mark.parametrize("verb", ["paste", "keys"])
    def test_a_pane_in_a_mode_gets_nothing(self, private, tmux, verb):
        pane, log = private.record()
        private.raw("copy-mode", "-t", pane.id)
        assert tmux.panes().panes[0].in_mode
        with pytest.raises(PaneInMode):
            self.type(tmux, verb, pane.id, MARK)
        private.raw("send-keys", "-t", pane.id, "-X", "cancel")
        self.assert_untouched(private, tmux, pane, log)

    def test_a_pane_whose_cursor_has_moved_gets_nothing(self, private, tmux):
        pane, log = private.record()
        look = tmux.look(pane.id)
        for moved in ((look.cursor_x + 1, look.cursor_y), (look.cursor_x, look.cursor_y + 1)):
            with pytest.raises(PaneChanged):
                tmux.paste(pane.id, "words", mark=MARK, enter=True, at=moved)
            with pytest.raises(PaneChanged):
                tmux.keys(pane.id, ["y"], mark=MARK, at=moved)
        self.assert_untouched(private, tmux, pane, log)

    @pytest.mark.parametrize("verb", ["paste", "keys"])
    def test_a_dead_pane_gets_nothing(self, private, tmux, verb):
        pane = private.start("true", "x")
        private.until(lambda: tmux.pane(pane.id).dead)
        with pytest.raises(PaneGone, match="has ended"):
            self.type(tmux, verb, pane.id, MARK)

    @pytest.mark.parametrize("verb", ["paste", "keys"])
    def test_a_pane_that_is_gone(self, private, tmux, verb):
        private.start()
        with pytest.raises(PaneGone, match="does not exist"):
            self.type(tmux, verb, "%99", MARK)
        assert private.raw("list-buffers") == ""

    @pytest.mark.parametrize("verb", ["paste", "keys"])
    def test_a_server_that_does_not_answer_leaves_it_open(self, frozen, tmux, verb):
        with pytest.raises(NoAnswer):
            self.type(tmux, verb, frozen.id, MARK)

    def test_enter_that_cannot_follow_is_told_apart(self, private, tmux, monkeypatch):
        pane, log = private.record()
        monkeypatch.setattr(
            "mam.adapters.tmux.client.sleep", lambda _: private.raw("copy-mode", "-t", pane.id)
        )
        with pytest.raises(DeliveryUnconfirmed):
            tmux.paste(pane.id, "x", mark=MARK, enter=True, pause=0.01)
        assert log.read_bytes() == b"\x1b[200~x\x1b[201~"

    @staticmethod
    def type(tmux, verb, pane_id, mark):
        if verb == "paste":
            tmux.paste(pane_id, "text", mark=mark, enter=True)
        else:
            tmux.keys(pane_id, ["Enter"], mark=mark)

    @staticmethod
    def assert_untouched(private, tmux, pane, log):
        tmux.keys(pane.id, ["y"], mark=MARK)
        private.until(log.read_bytes)
        assert log.read_bytes() == b"y"
        assert private.raw("list-buffers") == ""


class TestKillPane:
    def test_only_the_pane_meant(self, private, tmux):
        first, second = private.start(name="a"), private.start(name="b", mark=OTHER)
        assert not tmux.kill_pane(first.id, mark=OTHER)
        assert tmux.kill_pane(first.id, mark=MARK)
        assert not tmux.kill_pane(first.id, mark=MARK)
        assert [pane.id for pane in tmux.panes().panes] == [second.id]

    def test_the_last_pane_ends_the_server_and_kill_pane_still_returns_true(self, private, tmux):
        pane = private.start()
        assert tmux.kill_pane(pane.id, mark=MARK)
        private.until(lambda: tmux.server_pid() is None)

    def test_a_session_ends_only_with_its_last_pane(self, private, tmux):
        pane = private.start()
        private.raw("split-window", "-t", pane.id, "cat")
        assert tmux.kill_pane(pane.id, mark=MARK)
        assert [listed.session_name for listed in tmux.panes().panes] == ["one"]

    def test_without_a_mark_whatever_is_there(self, private, tmux):
        private.raw("new-session", "-d", "-s", "theirs", "cat")
        assert tmux.kill_pane(tmux.panes().panes[0].id, mark=None)

    def test_unknown_is_not_done(self, frozen, tmux):
        with pytest.raises(TerminalsDown):
            tmux.kill_pane(frozen.id, mark=MARK)


class TestSessions:
    def test_a_pane_is_adopted_and_keeps_its_ways(self, private, tmux):
        private.raw("new-session", "-d", "-s", "theirs", "cat")
        (pane,) = tmux.panes().panes
        tmux.mark(pane.id, MARK, "/root;")
        (pane,) = tmux.panes().panes
        assert (pane.mark, pane.root) == (MARK, "/root;")
        assert private.raw("show-options", "-p", "-t", pane.id, "remain-on-exit") == ""

    def test_rename(self, private, tmux):
        pane = private.start(name="a")
        private.start(name="b", mark=OTHER)
        tmux.rename_session(pane.session_id, "c")
        assert {listed.session_name for listed in tmux.panes().panes} == {"c", "b"}
        with pytest.raises(NameTaken):
            tmux.rename_session(pane.session_id, "b")
        with pytest.raises(PaneGone):
            tmux.rename_session("$99", "d")

    def test_attach_names_server_and_session(self, private, tmux):
        pane = private.start()
        argv = tmux.attach_argv(pane.session_id)
        assert argv[0].endswith("/tmux")
        assert argv[1:] == ["-u", "-L", private.name, "attach-session", "-t", pane.session_id]

    def test_a_client_inside_is_switched(self, private, tmux):
        first, second = private.start(name="a"), private.start(name="b", mark=OTHER)
        with attached_client(private, first.session_id):
            tmux.switch_client(second.session_id, {"TMUX": f"{private.name},1,0", "TMUX_PANE": first.id})
            private.until(
                lambda: {p.id: p.attached for p in tmux.panes().panes} == {first.id: 0, second.id: 1}
            )

    def test_who_may_have_typed_into_a_pane(self, private, tmux):
        """Only a person at a terminal, and only since then; keys that a program sends are not dated."""
        pane = private.start()
        tmux.keys(pane.id, ["Enter"], mark=MARK)
        assert not tmux.may_have_got_keys(pane.id, 0.0), "no client was ever attached"
        assert tmux.may_have_got_keys("%999", 0.0), "nobody can tell"
        with attached_client(private, pane.session_id) as screen:
            later = time.time() + 1
            private.until(lambda: time.time() >= later + 1)
            assert not tmux.may_have_got_keys(pane.id, later)
            os.write(screen, b"k")
            private.until(lambda: tmux.may_have_got_keys(pane.id, later))

    @pytest.mark.parametrize("number", ["-", "9" * 5000, "²"])
    def test_a_time_that_is_none_says_nothing_of_who_typed(self, tmux, monkeypatch, number):
        def answer(_tmux, command):
            return f"{command[-1].split()[0]} %1 {number} 5\n".encode()

        monkeypatch.setattr(type(tmux), "_call_with_retry", answer)
        assert tmux.may_have_got_keys("%1", 0.0)


@contextlib.contextmanager
def attached_client(private, session_id):
    """Attach a client in a terminal of its own; give the end of the terminal at which a person types."""
    pid, screen = pty.fork()
    if pid == 0:
        argv = private.tmux.attach_argv(session_id)
        os.execve(argv[0], argv, {**clean_environment(os.environ), "TERM": "xterm"})
    try:
        private.until(lambda: any(pane.attached for pane in private.tmux.panes().panes))
        yield screen
    finally:
        os.close(screen)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class TestEndings:
    def test_forty_statuses_of_forty(self, private, tmux):
        anchor = private.start("cat", "-", name="anchor")
        endings = []
        for number in range(40):
            # After a short life the terminal closes before the exit, which Debian's tmux then misses.
            pane = private.start("sh", "-c", f"sleep 0.03; exit {number + 1}", name=f"n{number}")
            dead = tmux.dead_status(pane.id, pane.server_pid, time.monotonic() + 2)
            endings.append((dead.dead, dead.dead_status))
        assert endings == [(True, number + 1) for number in range(40)]
        assert not tmux.pane(anchor.id).dead

    def test_a_signal_is_told_too(self, private, tmux):
        pane = private.start("sh", "-c", "kill -9 $$")
        dead = tmux.dead_status(pane.id, pane.server_pid, time.monotonic() + 5)
        assert dead.dead and dead.dead_signal == 9

    def test_a_live_pane_is_returned_as_it_is_at_the_deadline(self, private, tmux):
        pane = private.start()
        assert not tmux.dead_status(pane.id, pane.server_pid, time.monotonic() + 0.1).dead

    def test_a_pane_that_is_gone(self, private, tmux):
        pane = private.start()
        with pytest.raises(PaneGone):
            tmux.dead_status("%99", pane.server_pid, time.monotonic() + 5)

    def test_nudging_nobody_is_no_error(self, tmux):
        tmux.nudge(2**22 - 3)


class TestKillServer:
    def test_it_is_gone_with_all_its_panes(self, private, tmux):
        pane = private.start()
        tmux.kill_server()
        assert tmux.server_pid() is None
        private.until(lambda: not private.is_running(pane.pid))

    def test_one_that_does_not_answer_too(self, frozen, tmux):
        tmux.kill_server()
        assert tmux.server_pid() is None

    def test_none_is_no_error(self, tmux):
        tmux.kill_server()


def test_a_server_by_socket_path(private):
    tmux = Tmux(os.environ["TMUX_TMPDIR"] + "/sock")
    try:
        pane = tmux.start("a", ["cat", "-"], cwd="/", session_id=MARK, root="/")
        assert tmux.panes().panes[0].id == pane.id
        assert tmux.server_pid() == pane.server_pid
    finally:
        tmux.kill_server()


def test_the_environment_of_tmux_names_no_session():
    environ = {
        "MAM_ROOT": "x",
        "TMUX": "x",
        "TMUX_PANE": "x",
        "TMUX_SERVER_NAME": "x",
        "TMUX_TMPDIR": "/t",
        "HOME": "/h",
    }
    assert clean_environment(environ) == {"TMUX_TMPDIR": "/t", "HOME": "/h"}


def test_the_start_up_path_imports_nothing_slow(private):
    import subprocess

    code = (
        "import sys; before = set(sys.modules); import mam.adapters.tmux.client, mam.adapters.system.process;"
        "print(*sorted(set(sys.modules) - before))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout
    slow = {
        "dataclasses",
        "typing",
        "enum",
        "inspect",
        "asyncio",
        "pathlib",
        "shutil",
        "subprocess",
        "re",
        "signal",
    }
    assert not slow & set(out.split()), out


def test_a_brief_listing_says_what_the_long_one_says(private, tmux):
    pane = private.start()
    tmux.mark(pane.id, "s_0000abcd", "/r")
    listing = tmux.ask_briefly()
    (brief,) = listing().panes
    (long,) = tmux.panes().panes
    assert (brief.id, brief.pid, brief.dead, brief.mark) == (long.id, long.pid, long.dead, long.mark)
    assert listing() is listing()
