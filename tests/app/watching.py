"""A resident in a thread of the test, and what it told."""

from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts


def run_apart(watching, wake):
    """Run it where signals cannot be had: in a thread."""
    assert watching.lock.take({})
    try:
        watching._loop(wake, MonitorTimeouts(), False)
    finally:
        watching.close()


def classes(told):
    return [(one["class"], one["session"]) for report in told for one in report.get("drifts", [])]
