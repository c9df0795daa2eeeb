"""Running a client: all of its output, never longer than asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mam.adapters.tmux import run_client


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def sh(script: str, timeout: float = 10, **more):
    return run_client.run(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, timeout=timeout, **more)


@pytest.mark.parametrize("cwd", [None, "/"])
class TestBothWays:
    def test_the_answer_is_whole(self, cwd):
        answer = sh("cat; echo oops >&2; exit 3", data=b"x" * 3_000_000, cwd=cwd)
        assert (answer.status, len(answer.out), answer.err) == (3, 3_000_000, b"oops\n")

    def test_a_process_that_does_not_read_is_no_error(self, cwd):
        assert sh("exec 0<&-; echo done", data=b"x" * 1_000_000, cwd=cwd).out == b"done\n"

    def test_one_that_does_not_end_is_killed(self, cwd, tmp_path):
        before = descriptors()
        with pytest.raises(run_client.OutOfTime):
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
    with pytest.raises(run_client.OutOfTime):
        sh("exec >&- 2>&-; sleep 60", timeout=0.3)


def test_a_process_without_standard_descriptors():
    code = (
        "import os, sys; kept = os.dup(1); [os.close(number) for number in (0, 1, 2)];"
        "from mam.adapters.tmux import run_client;"
        "answer = run_client.run(['/bin/sh', '-c', 'cat; echo err >&2'], {}, timeout=5, data=b'in');"
        "os.write(kept, answer.out + b' ' + answer.err)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout == b"in err\n"


def test_a_program_that_is_not_there_is_an_os_error():
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        run_client.run(["/nonexistent"], {}, timeout=1)
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
