"""Running a program: mam gets all of its output, and waits no longer than the timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import is_running
from tests.waiting import wait_until

from mam.adapters.system import child_process


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def sh(script: str, timeout: float = 10, **more):
    return child_process.run(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, timeout=timeout, **more)


@pytest.mark.parametrize("cwd", [None, "/"])
class TestBothWays:
    def test_the_answer_is_whole(self, cwd):
        answer = sh("cat; echo oops >&2; exit 3", data=b"x" * 3_000_000, cwd=cwd)
        assert (answer.status, len(answer.out), answer.err) == (3, 3_000_000, b"oops\n")

    def test_a_process_that_does_not_read_is_no_error(self, cwd):
        assert sh("exec 0<&-; echo done", data=b"x" * 1_000_000, cwd=cwd).out == b"done\n"

    def test_one_that_does_not_end_is_killed(self, cwd, tmp_path):
        before = descriptors()
        with pytest.raises(child_process.OutOfTime):
            sh(f"echo $$ > {tmp_path}/pid; exec sleep 600", timeout=0.3, cwd=cwd)
        assert descriptors() == before
        pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
        assert not Path(f"/proc/{pid}").exists()

    def test_signals_are_not_inherited_as_ignored(self, cwd):
        before = {
            number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGPIPE, signal.SIGTERM)
        }
        try:
            ignored = sh("grep SigIgn /proc/self/status", cwd=cwd).out
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        mask = int(ignored.split()[1], 16)
        assert not mask & (1 << (signal.SIGPIPE - 1))

    def test_no_descriptor_leaks(self, cwd):
        before = descriptors()
        for _ in range(5):
            sh("echo x", data=b"y", cwd=cwd)
        assert descriptors() == before

    def test_it_has_a_process_group_of_its_own(self, cwd):
        assert int(sh("ps -o pgid= -p $$", cwd=cwd).out) != os.getpgrp()


def test_one_that_closes_its_outputs_and_stays_is_killed():
    with pytest.raises(child_process.OutOfTime):
        sh("exec >&- 2>&-; sleep 60", timeout=0.3)


def test_a_process_without_standard_descriptors():
    code = (
        "import os, sys; kept = os.dup(1); [os.close(number) for number in (0, 1, 2)];"
        "from mam.adapters.system import child_process;"
        "answer = child_process.run(['/bin/sh', '-c', 'cat; echo err >&2'], {}, timeout=5, data=b'in');"
        "links = [os.readlink(f'/proc/self/fd/{number}') for number in (0, 1, 2)];"
        "os.write(kept, answer.out + b' ' + answer.err + str(links).encode())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, check=True)
    assert result.stdout == b"in err\n['/dev/null', '/dev/null', '/dev/null']"


def test_a_program_that_is_not_there_is_an_os_error():
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        child_process.run(["/nonexistent"], {}, timeout=1)
    assert descriptors() == before


def test_an_interrupt_leaves_no_process(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            sh(f"echo $$ > {tmp_path}/pid; exec sleep 60", timeout=30)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not Path(f"/proc/{int((tmp_path / 'pid').read_text(encoding='utf-8'))}").exists()


def begin(script: str, **more):
    return child_process.start(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, **more)


def number_in(path: Path) -> int:
    wait_until(lambda: path.exists() and path.read_text(encoding="utf-8").endswith("\n"))
    return int(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("more", [{}, {"session": True}], ids=["group", "session"])
class TestStart:
    def test_outputs_come_in_one_where_that_is_asked_for(self, more):
        answer = begin("echo one; echo two >&2; echo three", err=child_process.MERGED, **more).finish(10)
        assert (answer.out, answer.err) == (b"one\ntwo\nthree\n", b"")

    def test_outputs_go_to_files(self, tmp_path, more):
        with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
            child = begin("echo one; echo two >&2", out=out.fileno(), err=err.fileno(), **more)
            answer = child.finish(10)
        assert (answer.status, answer.out, answer.err) == (0, b"", b"")
        assert [(tmp_path / name).read_bytes() for name in ("out", "err")] == [b"one\n", b"two\n"]

    def test_unfed_it_reads_nothing_and_does_not_wait(self, more):
        child = begin("cat; echo over", **more)
        assert child.wait(10) == 0
        assert child.finish(10).out == b"over\n"

    def test_more_output_than_it_may_have_ends_it(self, more):
        before = descriptors()
        child = begin("head -c 200000 /dev/zero; exec sleep 600", **more)
        with pytest.raises(child_process.TooMuchOutput) as caught:
            child.finish(3600, most=100_000)
        assert set(caught.value.out) == {0}
        assert len(caught.value.out) > 100_000
        assert not is_running(child.pid)
        assert descriptors() == before

    def test_as_much_output_as_it_may_have(self, more):
        assert begin("head -c 1000 /dev/zero", **more).finish(10, most=1000).out == bytes(1000)

    @pytest.mark.parametrize("is_closed", [True, False])
    def test_a_descriptor_that_can_be_read_cancels_it(self, is_closed, more):
        before = descriptors()
        child = begin("exec sleep 600", **more)
        cancel, end = os.pipe()
        if is_closed:
            os.close(end)
        else:
            os.write(end, b"!")
        with pytest.raises(child_process.OutOfTime):
            child.finish(3600, cancel=cancel)
        assert not is_running(child.pid)
        for handle in [cancel] if is_closed else [cancel, end]:
            os.close(handle)
        assert descriptors() == before

    def test_a_descriptor_that_is_quiet_does_not(self, more):
        cancel, end = os.pipe()
        assert begin("echo over", **more).finish(10, cancel=cancel).out == b"over\n"
        os.close(cancel)
        os.close(end)

    def test_only_its_own_variables(self, more):
        answer = child_process.start(["/usr/bin/env"], {"A": "b"}, **more).finish(10)
        assert answer.out == b"A=b\n"


@pytest.mark.parametrize("more", [{}, {"session": True}], ids=["group", "session"])
def test_a_directory_of_its_own(tmp_path, more):
    assert begin("pwd", cwd=str(tmp_path), **more).finish(10).out == f"{tmp_path}\n".encode()
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        begin("pwd", cwd=str(tmp_path / "gone"), **more)
    assert descriptors() == before


class TestWait:
    def test_the_status_can_be_asked_for_again(self):
        child = begin("exit 7")
        assert [child.wait(10), child.wait(0)] == [7, 7]
        assert child.finish(10).status == 7

    def test_a_signal_is_a_negative_status(self):
        assert begin("kill -9 $$").wait(10) == -9

    def test_one_that_goes_on_is_left_alone(self):
        child = begin("exec sleep 600")
        with pytest.raises(child_process.OutOfTime):
            child.wait(0.05)
        assert is_running(child.pid)
        child.end()
        assert not is_running(child.pid)
        child.finish(10)

    def test_without_a_handle_of_the_process(self, monkeypatch):
        def refused(_pid):
            raise OSError

        monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
        assert begin("exec >/dev/null 2>&1; sleep 0.1; exit 3").finish(10).status == 3

    def test_last_seconds_are_for_one_that_has_closed_its_outputs(self):
        script = "exec >/dev/null 2>&1; sleep 0.5; exit 3"
        assert begin(script).finish(0.2, last_seconds=30).status == 3

    def test_a_status_that_the_system_throws_away_is_unknown(self):
        code = (
            "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
            "from mam.adapters.system import child_process;"
            "answer = child_process.run(['/bin/sh', '-c', 'echo x; exit 3'], {}, timeout=5);"
            "print(answer.status, answer.out)"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout == "None b'x\\n'\n"


class TestEnd:
    def test_a_leader_ends_with_what_it_started(self, tmp_path):
        child = begin(f"sleep 600 & echo $! > {tmp_path}/pid; wait", session=True)
        other = number_in(tmp_path / "pid")
        child.end()
        assert not is_running(child.pid)
        wait_until(lambda: not is_running(other), "the end of what it started")
        child.finish(10)

    def test_another_one_ends_alone(self, tmp_path):
        child = begin(f"sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; wait")
        other = number_in(tmp_path / "pid")
        child.end()
        assert not is_running(child.pid)
        assert is_running(other)
        os.kill(other, signal.SIGKILL)
        child.finish(10)

    def test_with_a_grace_sigterm_comes_first(self, tmp_path):
        trap = f"trap 'touch {tmp_path}/asked; exit 1' TERM"
        script = f"{trap}; echo $$ > {tmp_path}/pid; while :; do sleep 0.01; done"
        child = begin(script, session=True)
        number_in(tmp_path / "pid")
        child.end(30)
        assert (tmp_path / "asked").exists()
        assert child.wait(0) == 1
        child.finish(10)

    def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(self, tmp_path):
        script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 600; done"
        child = begin(script, session=True)
        number_in(tmp_path / "pid")
        child.end(0.1)
        assert child.wait(0) == -9
        child.finish(10)

    def test_one_that_has_ended_is_not_signalled(self, monkeypatch):
        child = begin("exit 0")
        child.wait(10)
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("another process may have the pid"))
        child.end()
        child.finish(10)


def test_one_that_is_cancelled_leaves_neither_process_nor_descriptor():
    before = descriptors()
    child = child_process.start(["/bin/sh", "-c", "sleep 600"], {"PATH": "/bin:/usr/bin"}, session=True)
    child.cancel()
    assert descriptors() == before
    assert not is_running(child.pid)


def test_a_deleted_child_leaves_no_descriptor():
    before = descriptors()
    child = child_process.start(["/bin/sh", "-c", "true"], {"PATH": "/bin:/usr/bin"}, session=True)
    child.wait(10)
    del child
    assert descriptors() == before


def test_what_ignores_the_request_ends_with_its_leader(tmp_path):
    script = f"(trap '' TERM; echo $$ > {tmp_path}/ready; exec sleep 600) & wait"
    child = child_process.start(["/bin/sh", "-c", script], {"PATH": "/bin:/usr/bin"}, session=True)
    wait_until((tmp_path / "ready").exists)
    child.end(grace=5)

    def members() -> list[str]:
        return [path.name for path in Path("/proc").glob("[0-9]*") if _group(path) == child.pid]

    # The kernel takes a moment to end a process that was killed.
    wait_until(lambda: not members(), members)
    child.cancel()


def _group(folder: Path) -> int | None:
    try:
        fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[2]) if fields[0] != "Z" else None


def test_a_caller_that_is_killed_does_not_cut_the_input(tmp_path, until):
    """A part of a text, followed by Enter, would be another text."""
    script = "echo > started; while [ ! -e go ]; do sleep 0.01; done; cat > part; mv part whole"
    code = (
        "from mam.adapters.system import child_process\n"
        f"argv = ['/bin/sh', '-c', {script!r}]\n"
        f"child_process.run(argv, {{'PATH': '/usr/bin:/bin'}}, timeout=60, data=b'x' * 1_000_000)\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    until((tmp_path / "started").exists)
    caller.kill()
    caller.wait(10)
    (tmp_path / "go").touch()
    until((tmp_path / "whole").exists)
    assert (tmp_path / "whole").stat().st_size == 1_000_000
