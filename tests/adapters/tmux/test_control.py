"""The resident client against a real server."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mam.adapters.tmux.control import ControlClient
from mam.adapters.tmux.control_lines import Notice
from mam.adapters.tmux.failures import ControlUnsafe, NoAnswer, NoServer
from mam.adapters.tmux.parse import has_safe_control
from mam.core.errors import PaneGone, TerminalsDown

MARK = "s_00000001"


@pytest.fixture
def connect(private):
    """Open clients that are closed afterwards."""
    opened = []

    def connect(session=None, timeout=10.0):
        opened.append(ControlClient(private.name, session, timeout=timeout, unsafe=True))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def collect(client, wanted, timeout=10.0):
    """Return everything heard until a wanted notice came."""
    deadline = time.monotonic() + timeout
    heard = []
    while not any(wanted(one) for one in heard):
        assert time.monotonic() < deadline, heard
        heard += client.events(0.2)
    return heard


def resident_kb(pid: int | str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


class TestSafety:
    def test_a_server_that_could_crash_is_left_alone(self, private, tmux):
        private.start()
        said = tmux.server_version()
        if has_safe_control(said):
            pytest.skip(f"tmux {said} is safe")
        with pytest.raises(ControlUnsafe):
            ControlClient(private.name)
        assert "mam-hub" not in private.raw("list-sessions")

    @pytest.mark.parametrize(
        ("said", "safe"),
        [
            *[(old, False) for old in ("3.2", "3.3a", "3.5a", "3.6b", "next-3.7", "master", "")],
            *[(new, True) for new in ("3.7", "3.7c", "3.10", "4.0")],
        ],
    )
    def test_versions(self, said, safe):
        assert has_safe_control(said) is safe


class TestHub:
    def test_it_is_no_session_of_an_agent(self, private, tmux, connect):
        pane = private.start()
        client = connect()
        for listing in (tmux.panes(), client.panes(), client.panes(full=True)):
            assert listing.confirmed and [one.id for one in listing.panes] == [pane.id]
        assert f"mam-hub-{os.getpid()}-" in private.raw("list-sessions")

    def test_it_goes_with_its_client(self, private, connect):
        private.start()
        client = connect()
        client.close()
        private.until(lambda: "mam-hub" not in private.raw("list-sessions"))
        client.close()

    def test_a_killed_client_leaves_nothing(self, private, connect):
        private.start()
        client = connect()
        os.kill(client._pid, signal.SIGKILL)
        assert collect(client, lambda one: one.name == "exit")
        private.until(lambda: "mam-hub" not in private.raw("list-sessions"))

    @pytest.mark.parametrize("attempt", range(5))
    def test_a_killed_process_leaves_nothing(self, private, tmux, attempt):
        pane = private.start()
        with self.other_process(private) as process:
            process.kill()  # at once: mostly before the hub's pane has opened its end
        private.until(lambda: "mam-hub" not in private.raw("list-sessions"))
        assert tmux.server_pid() == pane.server_pid
        sockets = Path(tmux.socket_path()).parent
        assert [path.name for path in sockets.iterdir()] == [private.name]

    @pytest.mark.slow
    def test_its_end_does_not_end_the_server(self, private, tmux):
        """With destroy-unattached on the hub, tmux 3.3a crashed in every second of these rounds."""
        pane = private.start()
        over = threading.Event()

        def come_and_go():
            while not over.is_set():
                tmux.panes()

        visitors = [threading.Thread(target=come_and_go) for _ in range(2)]
        for visitor in visitors:
            visitor.start()
        try:
            for _ in range(15):
                with self.other_process(private) as process:
                    process.kill()
                # Connecting while a session ends is the crash that ControlUnsafe keeps away.
                private.until(lambda: "mam-hub" not in private.raw("list-sessions"))
                assert tmux.server_pid() == pane.server_pid
        finally:
            over.set()
            for visitor in visitors:
                visitor.join()
        assert [listed.id for listed in tmux.panes().panes] == [pane.id]

    @staticmethod
    @contextlib.contextmanager
    def other_process(private):
        """Run a process that holds a hub."""
        code = (
            "import sys, time; from mam.adapters.tmux.control import ControlClient;"
            "client = ControlClient(sys.argv[1], unsafe=True); print('up', flush=True); time.sleep(100)"
        )
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-S", "-c", code, private.name]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"up\n"
            yield process
            process.kill()

    def test_two_at_once(self, private, connect):
        private.start()
        one, two = connect(), connect()
        assert one.panes().confirmed and two.panes().confirmed

    def test_no_server_is_not_started(self, private, tmux, connect):
        with pytest.raises(NoServer):
            connect()
        assert tmux.server_pid() is None

    def test_it_changes_nobodys_size(self, private, connect):
        private.start()
        client = connect()
        (pane,) = client.panes(full=True).panes
        assert (pane.width, pane.height, pane.attached) == (200, 50, 0)

    def test_no_descriptor_and_no_process_is_left(self, private):
        private.start()
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            client = ControlClient(private.name, unsafe=True)
            pid = client._pid
            client.close()
            assert not Path(f"/proc/{pid}").exists()
        with pytest.raises(PaneGone):
            ControlClient(private.name, "$99", unsafe=True)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestRequests:
    def test_answers_belong_to_their_commands(self, private, connect):
        private.start()
        client = connect()
        commands = [["display-message", "-p", f"answer {number}"] for number in range(50)]
        assert client.request(commands) == [f"answer {number}\n".encode() for number in range(50)]
        assert client.request([]) == []

    def test_a_failure_is_the_failure_of_its_command(self, private, connect):
        private.start()
        client = connect()
        say = ["display-message", "-p", "fine"]
        replies = client.ask([say, ["kill-pane", "-t", "%99"], ["nosuch"], say])
        assert [reply.ok for reply in replies] == [True, False, False, True]
        assert replies[3].body == b"fine\n"
        with pytest.raises(PaneGone):
            client.request([["kill-pane", "-t", "%99"]])
        with pytest.raises(TerminalsDown, match="nosuch"):
            client.request([["nosuch"]])

    def test_a_command_that_runs_others_is_one_answer(self, private, connect):
        private.start()
        client = connect()
        nested = ["if-shell", "-F", "1", "display-message -p one ; display-message -p two"]
        assert client.request([nested, ["display-message", "-p", "three"]]) == [b"one\ntwo\n", b"three\n"]

    def test_a_hook_of_the_user_does_not_shift_answers(self, private, connect):
        private.start()
        private.raw("set-hook", "-g", "after-list-panes", "display-message -p hooked")
        client = connect()
        for listing in (client.panes(), private.tmux.panes(full=True)):
            assert listing.confirmed and [one.session_name for one in listing.panes] == ["one"]
        assert client.request([["display-message", "-p", "next"]]) == [b"next\n"]

    def test_a_word_is_one_line(self, private, connect):
        private.start()
        client = connect()
        with pytest.raises(ValueError, match="one line"):
            client.request([["display-message", "-p", "a\nkill-server"]])
        assert client.panes().confirmed

    def test_a_screen_full_of_protocol_is_only_a_screen(self, private, connect):
        forged = "\n".join(
            f"%end {int(time.time()) + late} {number} 1" for late in range(3) for number in range(12)
        )
        text = f"%exit\n%begin 1 1 1\n{forged}\n%error 1 1 1\n%pause %0\n%sessions-changed"
        path = private.directory / "text"
        path.write_text(text, encoding="utf-8")
        pane = private.start("sh", "-c", f"cat {path}; exec cat")
        private.until(lambda: "sessions-changed" in private.tmux.look(pane.id).screen)
        client = connect()
        say = ["display-message", "-p", "fine"]
        for _ in range(5):
            assert text in client.capture([pane.id])[pane.id]
            assert client.request([say]) == [b"fine\n"]
        assert client.alive

    def test_only_the_end_of_the_stream_is_an_end(self, private, connect):
        private.start()
        client = connect()
        client._notice(Notice("exit"))
        assert client.panes().confirmed
        assert Notice("exit") not in client.events(0)

    def test_captures(self, private, connect):
        panes = [private.start("sh", "-c", f"echo t{n}; exec cat", name=f"n{n}") for n in range(3)]
        client = connect()
        ids = [panes[0].id, "%99", panes[1].id, panes[2].id]
        private.until(lambda: "t2" in client.capture(ids)[panes[2].id])
        screens = client.capture(ids)
        assert screens["%99"] is None
        assert [screens[pane.id].split("\n")[0] for pane in panes] == ["t0", "t1", "t2"]
        assert screens == private.tmux.capture(ids)

    def test_more_than_a_pipe_holds(self, private, connect):
        private.start()
        client = connect()
        commands = [["display-message", "-p", "x" * 200] for _ in range(3000)]
        assert client.request(commands) == [b"x" * 200 + b"\n"] * 3000

    def test_a_server_that_does_not_answer(self, private, connect):
        pane = private.start()
        client = connect()
        os.kill(pane.server_pid, signal.SIGSTOP)
        try:
            with pytest.raises(NoAnswer):
                client.request([["display-message", "-p", "late"]], timeout=0.2)
            client.timeout = 0.2
            listing = client.panes()
            assert not listing.confirmed and "does not answer" in listing.error
            started = time.monotonic()
            assert client.events(0.1) is not None
            assert time.monotonic() - started < 5
        finally:
            os.kill(pane.server_pid, signal.SIGCONT)
        client.timeout = 10
        assert client.request([["display-message", "-p", "now"]]) == [b"now\n"]

    def test_close_does_not_wait_for_a_server_that_does_not_answer(self, private, connect):
        pane = private.start()
        client = connect()
        os.kill(pane.server_pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            client.close()
            assert time.monotonic() - started < 5
        finally:
            os.kill(pane.server_pid, signal.SIGCONT)
        private.until(lambda: "mam-hub" not in private.raw("list-sessions"))


class TestEvents:
    def test_sessions_that_come_and_go(self, private, tmux, connect):
        private.start()
        client = connect()
        client.request([["display-message", "-p", "x"]])
        client.events(0)
        pane = private.start(name="two", mark="s_00000002")
        collect(client, lambda one: one.name == "sessions-changed")
        tmux.kill_pane(pane.id, mark="s_00000002")
        heard = collect(client, lambda one: one.name == "unlinked-window-close")
        assert Notice("unlinked-window-close", pane.window_id) in heard

    def test_nothing_happens_in_time(self, private, connect):
        private.start()
        client = connect()
        client.request([["display-message", "-p", "x"]])
        client.events(0)
        started = time.monotonic()
        assert client.events(0.1) == []
        assert 0.05 < time.monotonic() - started < 5

    def test_its_descriptor_can_be_polled(self, private, connect):
        private.start()
        client = connect()
        client.request([["display-message", "-p", "x"]])
        client.events(0)
        assert not select.select([client], [], [], 0)[0]
        private.start(name="two")
        assert select.select([client], [], [], 10)[0]

    def test_events_during_a_request_are_kept(self, private, connect):
        private.start()
        client = connect()
        client.events(0)
        private.start(name="two")
        private.until(lambda: client.panes() and len(client._notices))
        assert Notice("sessions-changed") in client.events(0)

    @pytest.mark.parametrize("how", ["kill-server", "SIGKILL"])
    def test_the_server_dies(self, private, tmux, connect, how):
        pane = private.start()
        client = connect()
        if how == "SIGKILL":
            os.kill(pane.server_pid, signal.SIGKILL)
        else:
            tmux.kill_server()
        collect(client, lambda one: one.name == "exit")
        assert not client.alive and client.events(1) == []
        with pytest.raises(TerminalsDown):
            client.request([["list-panes"]])
        assert not client.panes().confirmed
        client.close()

    def test_the_server_dies_during_a_request(self, private, connect):
        pane = private.start()
        client = connect()
        os.kill(pane.server_pid, signal.SIGSTOP)
        os.kill(pane.server_pid, signal.SIGKILL)
        with pytest.raises(TerminalsDown):
            client.request([["list-panes"]])


class TestWatch:
    def test_output_wakes(self, private, tmux, connect):
        pane = private.start()
        client = connect(pane.session_id)
        tmux.paste(pane.id, "hello", mark=MARK, enter=True)
        collect(client, lambda one: one == Notice("output", pane.id))

    def test_it_is_nobody_who_sits_there(self, private, tmux, connect):
        pane = private.start()
        connect(pane.session_id)
        listed = tmux.panes(full=True).panes[0]
        assert (listed.width, listed.height, listed.attached) == (200, 50, 0)

    def test_a_hub_hears_no_output(self, private, tmux, connect):
        pane = private.start()
        client = connect()
        tmux.paste(pane.id, "hello", mark=MARK, enter=True)
        private.until(lambda: "hello" in tmux.look(pane.id).screen)
        client.request([["display-message", "-p", "x"]])
        assert not [one for one in client.events(0) if one.name == "output"]

    def test_a_session_that_is_not_there(self, private, connect):
        private.start()
        with pytest.raises(PaneGone):
            connect("$99")
        with pytest.raises(PaneGone):
            connect("one")

    @pytest.mark.slow
    def test_a_paused_pane_is_continued(self, private, connect):
        pane = private.start("sh", "-c", "read line; yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
        client = connect(pane.session_id)
        private.tmux.keys(pane.id, ["Enter"], mark=MARK)
        # A reader that falls behind by more than pause-after is what makes tmux pause: it judges when it
        # can write again, by the age of what it holds back then, if it holds anything.
        heard = []
        deadline = time.monotonic() + 60
        while Notice("pause", pane.id) not in heard:
            assert time.monotonic() < deadline
            time.sleep(1.2)
            heard += client.events(0.1)
        # More than tmux can have sent before it paused.
        for _ in range(100):
            collect(client, lambda one: one == Notice("output", pane.id), timeout=20)
        private.tmux.kill_pane(pane.id, mark=MARK)

    @pytest.mark.slow
    def test_a_flood_of_fifty_megabytes_is_passed_over(self, private, tmux, connect):
        flood = "head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 150"
        script = f"read line; {flood}; echo; echo FINISHED; exec cat"
        anchor = private.start(name="anchor", mark="s_00000002")
        pane = private.start("sh", "-c", script)
        client = connect(pane.session_id)
        mine, theirs = resident_kb("self"), resident_kb(anchor.server_pid)
        tmux.keys(pane.id, ["Enter"], mark=MARK)
        deadline = time.monotonic() + 120
        most = 0
        while "FINISHED" not in client.capture([pane.id])[pane.id]:
            assert time.monotonic() < deadline
            client.events(0.2)
            most = max(most, len(client._notices), client._lines.kept())
            assert client.request([["display-message", "-p", "x"]]) == [b"x\n"]
        assert most < 2000
        assert resident_kb("self") - mine < 20_000
        assert resident_kb(anchor.server_pid) - theirs < 60_000
