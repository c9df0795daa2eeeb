"""A resident in a thread of the test, and what it told."""

from pathlib import Path

from tests.waiting import SECONDS, wait_until

from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts


def run_apart(watching, wake):
    """Run it where signals cannot be had: in a thread."""
    assert watching.lock.take({})
    try:
        watching._loop(wake, MonitorTimeouts(), False)
    finally:
        watching.close()


def ended(running, seconds=SECONDS):
    """Wait for the end of a process, and return what it wrote."""
    wait_until(lambda: running.poll() is not None, "the end of the process", seconds)
    return running.communicate()


def classes(told):
    return [(one["class"], one["session"]) for report in told for one in report.get("drifts", [])]


def is_listening_to(pid, number):
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1
