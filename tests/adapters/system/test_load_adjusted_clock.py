"""The load-adjusted clock runs slower on a busy machine."""

from __future__ import annotations

import threading

import pytest

from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.load_adjusted_clock import WorkClock


@pytest.fixture
def machine(monkeypatch):
    """A machine of two cores and a time that the test sets."""

    class Machine:
        at, runnable = 100.0, 1.0

    fake = Machine()
    monkeypatch.setattr(load_adjusted_clock, "monotonic", lambda: fake.at)
    monkeypatch.setattr(load_adjusted_clock, "_runnable", lambda: fake.runnable)
    monkeypatch.setattr(load_adjusted_clock.os, "cpu_count", lambda: 2)
    return fake


@pytest.mark.parametrize(
    ("runnable", "share"), [(0, 1.0), (1, 1.0), (2, 1.0), (4, 0.5), (8, 0.25), (1000, 0.05)]
)
def test_the_share_of_a_core(machine, runnable, share) -> None:
    machine.runnable = runnable
    assert load_adjusted_clock.share() == share
    assert load_adjusted_clock.stretched(3.0) == pytest.approx(min(3.0 / share, 12.0))


def test_it_goes_slower_while_the_machine_is_busy(machine) -> None:
    clock = WorkClock()
    began = clock.now()
    machine.at += 2.0
    assert clock.now() - began == 2.0
    machine.runnable = 8
    machine.at += 2.0
    assert clock.now() - began == 2.5
    machine.runnable = 2
    machine.at += 2.0
    assert clock.now() - began == 4.5


def test_this_machine_has_a_load() -> None:
    assert 0.0 < load_adjusted_clock.share() <= 1.0
    assert load_adjusted_clock._runnable() >= 0


def test_without_loadavg_the_average_counts(monkeypatch) -> None:
    monkeypatch.setattr(load_adjusted_clock, "_LOADAVG", "/nowhere")
    monkeypatch.setattr(load_adjusted_clock.os, "getloadavg", lambda: (3.5, 1.0, 1.0))
    assert load_adjusted_clock._runnable() == 3.5


@pytest.mark.parametrize("text", ["", "0.1 0.2 0.3", "0.1 0.2 0.3 many/80 5"])
def test_what_cannot_be_read_slows_nothing(tmp_path, monkeypatch, text) -> None:
    (tmp_path / "loadavg").write_text(text, encoding="ascii")
    monkeypatch.setattr(load_adjusted_clock, "_LOADAVG", str(tmp_path / "loadavg"))
    assert load_adjusted_clock._runnable() == 1.0


def test_threads_do_not_make_it_faster(machine) -> None:
    clock = WorkClock()
    began = clock.now()
    machine.at += 1.0
    threads = [threading.Thread(target=clock.now) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now() - began == 1.0
