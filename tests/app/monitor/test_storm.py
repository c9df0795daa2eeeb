"""The resident in a storm: a frozen server, deaths by the dozen, and its own at random moments."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.crowd import name_of, settle
from bench.stage import Stage
from tests.app.watching import ended

import mam
from mam.adapters.store.yaml.yaml_text import parse
from mam.adapters.tmux.client import Tmux
from mam.app.monitor import resident as residents

pytestmark = [pytest.mark.slow, pytest.mark.starts]
FROZEN_SECONDS = 30


@contextmanager
def frozen(server):
    """A tmux server that does not answer, so that its sessions are unknown."""
    pid = Tmux(server).server_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


def rests(fleet, names, until):
    """Wait until a pass may change these rows, which a person has just changed."""
    latest = max(residents.hands_off_until(fleet.sessions.get(name).row) for name in names)
    until(lambda: time.time() > latest)


@pytest.mark.promise("P3")
def test_a_server_frozen_for_half_a_minute_terminates_nobody(fleet, monitor, tmux_server, until) -> None:
    names = [fleet.sessions.create("sleep", args=["1000"], name=f"s{number}").name for number in range(3)]
    rests(fleet, names, until)
    running = monitor("--json", "--idle-timeout", "0")
    with frozen(tmux_server):
        thaw = time.monotonic() + FROZEN_SECONDS
        while time.monotonic() < thaw:
            # Each hook payload wakes the resident, which then asks in vain.
            Path(fleet._access.context.paths.spool, "ffffffff.1.x.json").write_text("{}", encoding="utf-8")
            time.sleep(0.5)
            assert running.poll() is None
    assert fleet.sessions.names(status=["running"]) == names
    os.kill(fleet.sessions.get("s1").row["pane"]["pid"], signal.SIGKILL)
    until(lambda: fleet.sessions.names(status=["terminated"]) == ["s1"], timeout=60)
    assert fleet.sessions.names(status=["running"]) == ["s0", "s2"]


def test_told_to_stop_it_does_not_wait_for_a_frozen_server(fleet, monitor, tmux_server, until) -> None:
    fleet.sessions.create("sleep", args=["1000"], name="one")
    with frozen(tmux_server):
        running = monitor()
        until(lambda: children(running.pid))
        running.send_signal(signal.SIGTERM)
        # The call to tmux would take ten seconds.
        ended(running, 5)
    assert running.returncode == 0
    assert fleet.sessions.names(status=["running"]) == ["one"]


def test_a_server_that_ends_takes_nobody_else_along(fleet, watched, tmux_server, until) -> None:
    other_session = f"{tmux_server}-2"
    try:
        fleet.sessions.create("sleep", args=["1000"], name="one")
        fleet.sessions.create("sleep", args=["1000"], name="two", tmux_server=other_session)
        until(lambda: len(fleet.sessions.names(status=["running"])) == 2)
        Tmux(tmux_server).kill_server()
        until(lambda: fleet.sessions.names(status=["terminated"]) == ["one"])
        fleet.sessions.resume("one")
        assert sorted(fleet.sessions.names(status=["running"])) == ["one", "two"]
    finally:
        Tmux(other_session).kill_server()


def test_fifty_of_two_hundred_die_while_residents_are_killed(until) -> None:
    """Whenever a resident is killed, the next one finds every death, and none that was not."""
    dice = random.Random(4)
    doomed = dice.sample(range(200), 50)
    with Stage() as stage:
        settle(stage, 200, alive=True).close()
        command = [
            sys.executable,
            "-m",
            "mam",
            "monitor",
            "--idle-timeout",
            "0",
            "--workspace",
            str(stage.root),
        ]
        with mam.open(str(stage.root), environ=stage.environ) as fleet:
            pids = {
                name_of(number): fleet.sessions.get(name_of(number)).row["pane"]["pid"] for number in doomed
            }
            for wave in range(5):
                for name in list(pids)[wave * 10 : wave * 10 + 10]:
                    os.kill(pids[name], signal.SIGKILL)
                running = subprocess.Popen(command, env=stage.environ, stdout=subprocess.DEVNULL)
                time.sleep(dice.uniform(0.0, 1.5))
                running.kill()
                running.wait()
            last = subprocess.Popen(command, env=stage.environ, stdout=subprocess.DEVNULL)
            try:
                until(lambda: set(fleet.sessions.names(status=["terminated"])) == set(pids), timeout=60)
            finally:
                last.terminate()
                ended(last)
            assert len(fleet.sessions.names(status=["running"])) == 150
            deaths = [entry for entry in fleet.sessions.log(limit=1000) if entry["verb"] == "died"]
            assert sorted(entry["session"] for entry in deaths) == sorted(pids), "each is recorded once"
            listing = parse(Path(fleet.registry_file).read_bytes(), fleet.registry_file)
            assert {row["name"] for row in listing["tmux_sessions"] if row["status"] == "terminated"} == set(
                pids
            )
