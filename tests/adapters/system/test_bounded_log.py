"""A log does not grow without bound, and what it holds is safe to print."""

import os
import subprocess
import sys
from pathlib import Path

from mam.adapters.system.bounded_log import BoundedLog


def test_e2_the_log_is_private_bounded_and_has_one_predecessor(tmp_path) -> None:
    log = BoundedLog(str(tmp_path / "logs" / "x.log"), largest=2000)
    assert log.last_line() is None
    for number in range(200):
        log.add(f"line {number}")
    path = Path(log.path)
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["x.log", "x.log.1"]
    assert all(entry.stat().st_size < 2100 for entry in path.parent.iterdir())
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"[{os.getpid()}] line 199\n" in path.read_text(encoding="utf-8")
    assert log.last_line() == "line 199"
    log.add("  a hint")
    assert log.last_line() == "line 199"


def test_control_characters_stay_out(tmp_path) -> None:
    log = BoundedLog(str(tmp_path / "x.log"))
    log.add("red \x1b[31m and\x07 bell\n\nnext\u202e")
    lines = Path(log.path).read_text(encoding="utf-8").splitlines()
    assert [line.split("] ", 1)[1] for line in lines] == ["red [31m and bell", "next"]


def test_no_link_is_followed_and_no_failure_is_raised(tmp_path) -> None:
    (tmp_path / "x.log").symlink_to(tmp_path / "precious")
    log = BoundedLog(str(tmp_path / "x.log"))
    log.add("text")
    assert not log.prepare()
    assert not (tmp_path / "precious").exists()


def test_nobody_waits_for_a_pipe(tmp_path) -> None:
    os.mkfifo(tmp_path / "x.log")
    log = BoundedLog(str(tmp_path / "x.log"))
    log.add("text")
    assert not log.prepare()
    assert log.last_line() is None


def test_what_a_process_prints_goes_through_the_log_and_follows_it(tmp_path) -> None:
    path = tmp_path / "x.log"
    program = (
        "import os, sys\n"
        "from mam.adapters.system.bounded_log import BoundedLog\n"
        f"log = BoundedLog({str(path)!r}, largest=500)\n"
        "log.take_output()\n"
        "print('to \\x1b stdout')\n"
        "print('half', end='', file=sys.stderr)\n"
        "sys.stderr.flush()\n"
        "log.add('x' * 600)\n"
        "log.add('after')\n"
        "os.write(2, b'raw\\n')\n"
    )
    with path.open("a", encoding="utf-8") as output:
        subprocess.run([sys.executable, "-c", program], stdout=output, stderr=output, check=True, timeout=60)
    former = Path(f"{path}.1").read_text(encoding="utf-8").splitlines()
    assert [line.split("] ", 1)[1][:10] for line in former] == ["to  stdout", "half", "x" * 10]
    newer = path.read_text(encoding="utf-8").splitlines()
    assert newer[0].endswith("] after")
    assert newer[1] == "raw", "what bypasses the log goes to the file of now"


def test_output_that_goes_elsewhere_stays_there(tmp_path) -> None:
    log = BoundedLog(str(tmp_path / "x.log"))
    log.add("text")
    before = sys.stdout, sys.stderr
    log.take_output()
    assert (sys.stdout, sys.stderr) == before
