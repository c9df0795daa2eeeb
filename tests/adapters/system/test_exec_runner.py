"""The runner of a command: what it copies, what it keeps, what it records, and what it waits for."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mam.adapters.store.files import exec_files
from mam.adapters.system import exec_runner
from mam.adapters.system.exec_runner import HEAD, TAIL

RUNNER = [sys.executable, "-I", "-S", exec_runner.__file__]


class Runner:
    """A runner without a pane, and its files."""

    def __init__(self, folder: Path) -> None:
        self.record = folder / "end-1.json"
        self.log = folder / "output.log"
        self.prompt = folder / "prompt-1.txt"
        self.prompt.write_text("the prompt", encoding="utf-8")

    def arguments(self, *command: str, way: str = "stdin") -> list[str]:
        program = command[0] if command[0].startswith("/") else f"/bin/{command[0]}"
        return [*RUNNER, *map(str, (self.record, self.log, self.prompt, way)), program, *command[1:]]

    def run(self, *command: str, **options) -> subprocess.CompletedProcess[bytes]:
        way = options.pop("way", "stdin")
        return subprocess.run(
            self.arguments(*command, way=way),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **options,
        )

    def end(self) -> dict:
        return json.loads(self.record.read_bytes())


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def test_output_and_status(runner):
    done = runner.run("sh", "-c", "cat; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"the prompterr\n")
    assert runner.log.read_bytes() == done.stdout
    assert runner.end() == {"exit_status": 7, "bytes": len(done.stdout), "problem": ""}
    for path in (runner.record, runner.log):
        assert path.stat().st_mode & 0o777 == 0o600


def test_empty_stdin(runner):
    assert runner.run("cat", way="empty").stdout == b""


def test_a_signal_is_recorded_as_one(runner):
    assert runner.run("sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert runner.end()["signal"] == signal.SIGTERM


def test_bytes_are_copied_as_they_are(runner):
    data = bytes(range(256)) * 3
    runner.prompt.write_bytes(data)
    assert runner.run("cat").stdout == data
    assert runner.log.read_bytes() == data


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("/no/such/program",), 127, "/no/such/program cannot be run: No such file or directory"),
        (("/etc/passwd",), 126, "/etc/passwd cannot be run: Permission denied"),
    ],
)
def test_what_cannot_be_run(runner, command, status, words):
    done = runner.run(*command)
    assert (done.returncode, done.stdout) == (status, f"mam: {words}\n".encode())
    assert runner.end() == {"failure": words, "reason": "exec"}


def test_a_prompt_that_vanished(runner):
    runner.prompt.unlink()
    for way in ("stdin", "empty"):
        assert runner.run("cat", way=way).returncode == 1
        assert runner.end()["reason"] == "prompt"


def test_processes_that_keep_the_output_open_are_not_waited_for(runner):
    done = runner.run("sh", "-c", "sleep 1000 & echo $!", timeout=60)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert runner.end()["exit_status"] == 0


def test_signals_are_passed_on(runner, until):
    script = "trap 'echo heard; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen(runner.arguments("sh", "-c", script), stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"up\n"
        running.terminate()
        assert running.stdout.read().endswith(b"heard\n")
    assert (running.returncode, runner.end()["exit_status"]) == (5, 5)


# Writes so many bytes, in blocks that count.
BLOCK = 4096
WRITE = """\
import sys, time
for number in range(int(sys.argv[1]) // 4096):
    sys.stdout.buffer.write(b"%015d\\n" % number * 256)
sys.stdout.flush()
time.sleep(float(sys.argv[2]))
"""


def block(number: int) -> bytes:
    return b"%015d\n" % number * 256


@pytest.mark.parametrize("size", [HEAD, HEAD + TAIL, HEAD + TAIL + BLOCK, 3 * TAIL])
def test_the_first_and_the_last_output_is_kept(runner, size):
    done = runner.run(sys.executable, "-c", WRITE, str(size), "0")
    assert len(done.stdout) == size
    kept = runner.log.read_bytes()
    if size <= HEAD + TAIL:
        expected = done.stdout
    else:
        gap = b"\n[mam: %d bytes are left out here]\n" % (size - HEAD - TAIL)
        expected = done.stdout[:HEAD] + gap + done.stdout[-TAIL:]
    assert len(kept) == len(expected)
    assert bool(kept == expected)
    assert bool(exec_files.read_output(str(runner.log)) == kept)
    assert sorted(path.name for path in runner.log.parent.glob("output*")) == ["output.log"]


def test_a_large_output_is_read_in_order_while_the_command_runs(runner, until):
    size = 2 * TAIL + TAIL // 2
    arguments = runner.arguments(sys.executable, "-c", WRITE, str(size), "1000")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as running:
        last = block(size // BLOCK - 1)
        until(lambda: (exec_files.read_output(str(runner.log)) or b"")[-BLOCK:] == last)
        kept = exec_files.read_output(str(runner.log))
        files = [path.stat().st_size for path in runner.log.parent.glob("output*")]
        running.terminate()
    head, _, rest = kept.partition(b"\n[mam: ")
    gap, _, tail = rest.partition(b" bytes are left out here]\n")
    assert (len(head), len(tail), int(gap)) == (HEAD, TAIL, size - HEAD - TAIL)
    assert tail[:BLOCK] == block((size - TAIL) // BLOCK)
    assert sum(files) <= HEAD + 2 * TAIL


def test_a_full_disk_keeps_the_end(runner, monkeypatch, tmp_path):
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.argv = sys.argv[1:]; "
    limit += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = "i=0; while [ $i -lt 1000 ]; do echo 0123456789; i=$((i+1)); done; exit 3"
    arguments = runner.arguments("sh", "-c", command)
    done = subprocess.run(
        [sys.executable, "-c", limit, *arguments[3:]],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 3
    assert runner.end()["exit_status"] == 3
    assert "File too large" in runner.end()["problem"]
    assert b"the output is not all in" in done.stdout
    assert runner.log.stat().st_size == 4096


def test_a_record_that_cannot_be_replaced_is_written_in_its_place(runner, monkeypatch):
    reserved = exec_runner.reserve(str(runner.record))

    def refuse(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    exec_runner.record(str(runner.record), reserved, {"exit_status": 0})
    os.close(reserved)
    assert runner.end() == {"exit_status": 0}
    assert not list(runner.record.parent.glob("*.new"))


@pytest.mark.parametrize("has_room", [True, False], ids=["room", "full disk"])
def test_a_record_whose_folder_was_made_again_is_written_there(runner, monkeypatch, tmp_path, has_room):
    exec_files.make_place(str(tmp_path), "ab12cd34", 1)
    path = exec_files.record_file(str(tmp_path), "ab12cd34", 1)
    reserved = exec_runner.reserve(path)
    shutil.rmtree(Path(path).parent)
    exec_files.make_place(str(tmp_path), "ab12cd34", 1)
    assert exec_files.read_record(str(tmp_path), "ab12cd34", 1).strip() == b"{}"

    def refuse(*_arguments):
        raise OSError(28, "No space left on device")

    if not has_room:
        monkeypatch.setattr(os, "rename", refuse)
    exec_runner.record(path, reserved, {"exit_status": 0})
    os.close(reserved)
    assert json.loads(exec_files.read_record(str(tmp_path), "ab12cd34", 1)) == {"exit_status": 0}


def test_without_a_log_the_command_runs_all_the_same(runner):
    runner.log.mkdir()
    done = runner.run("echo", "x")
    assert done.stdout.startswith(b"x\n")
    assert (runner.end()["exit_status"], runner.end()["problem"]) == (0, "Is a directory")


class TestTerminal:
    """The runner in a terminal of its own, as in a pane."""

    @pytest.fixture
    def terminal(self, runner):
        started = []

        def start(*command):
            pid, handle = pty.fork()
            if not pid:
                arguments = runner.arguments(*command)
                os.execv(arguments[0], arguments)
            started.append((pid, handle))
            return pid, handle

        yield start
        for pid, handle in started:
            os.close(handle)
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue

    def sees(self, handle, words):
        text = b""
        while words not in text:
            text += os.read(handle, 4096)
        return text

    def test_keys_reach_the_command_and_not_the_runner(self, runner, terminal):
        # A shell with a trap would wait for a sleep that it starts just after the signal.
        pid, handle = terminal("sh", "-c", "echo up; exec sleep 1000")
        self.sees(handle, b"up")
        os.write(handle, b"\x1a\x03")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGINT
        assert runner.end()["signal"] == signal.SIGINT

    def test_the_terminal_is_the_commands(self, runner, terminal):
        pid, handle = terminal("sh", "-c", "echo up; read line </dev/tty; echo got $line; test ! -t 1")
        self.sees(handle, b"up")
        os.write(handle, b"words\r")
        self.sees(handle, b"got words")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def test_a_terminal_that_is_gone_hangs_up_the_command(self, runner, terminal, until):
        pid, handle = terminal("sh", "-c", "echo up; sleep 1000")
        self.sees(handle, b"up")
        os.kill(pid, signal.SIGHUP)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
        assert runner.end()["signal"] == signal.SIGHUP

    def test_a_terminal_that_takes_nothing_holds_up_no_end(self, runner, terminal):
        pid, handle = terminal("sh", "-c", "read x </dev/tty; head -c 100000 /dev/zero; exit 4")
        # Ctrl-S stops the output of the terminal.
        os.write(handle, b"\r\x13")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
        assert runner.end()["exit_status"] == 4
