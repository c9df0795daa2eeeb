"""A stop signal ends a resident properly at every moment, also before it has the lock."""

from __future__ import annotations

import os
import select
import signal
import time

import pytest

from mam.adapters.system import load_adjusted_clock
from mam.app.monitor import resident as residents
from mam.app.monitor import stop_signal
from mam.app.monitor.resident import Resident
from mam.app.monitor.stop_signal import StopOverdue, stop_handle
from mam.core.errors import ResidentRuns

TOLD = "the monitor was told to stop"


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def resident(fleet):
    return Resident(fleet._access.context, fleet.caller, [].append)


def tell_to_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_makes_the_handle_readable(number) -> None:
    before = signal.getsignal(number)
    with stop_handle() as stop:
        assert not stop.has_come
        os.kill(os.getpid(), number)
        assert stop.has_come
        assert select.select([stop], [], [], 0.0)[0]
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0.0
    assert (signal.getsignal(number), signal.getitimer(signal.ITIMER_REAL)[0]) == (before, 0.0)


def test_on_a_busy_machine_a_step_may_take_longer(monkeypatch) -> None:
    monkeypatch.setattr(load_adjusted_clock, "share", lambda: 0.25)
    monkeypatch.setattr(stop_signal, "_PATIENCE", 600.0)
    with stop_handle():
        tell_to_stop()
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 2000.0


def test_a_step_that_takes_too_long_is_interrupted(monkeypatch) -> None:
    monkeypatch.setattr(stop_signal, "_PATIENCE", 0.01)
    with pytest.raises(StopOverdue), stop_handle():
        tell_to_stop()
        time.sleep(600)


def test_told_while_it_takes_the_lock_it_ends_as_it_should(resident, monkeypatch) -> None:
    take = Resident._take

    def told_and_take(self) -> bool:
        tell_to_stop()
        return take(self)

    monkeypatch.setattr(Resident, "_take", told_and_take)
    assert resident.run() == TOLD
    assert resident.lock.holder() is None


def test_told_while_it_waits_for_an_older_one_it_ends(resident, monkeypatch) -> None:
    monkeypatch.setattr(stop_signal, "_PATIENCE", 0.01)

    def wait(*_given) -> bool:
        tell_to_stop()
        time.sleep(600)
        return True

    monkeypatch.setattr(Resident, "_take", lambda _self: False)
    monkeypatch.setattr(residents, "take_over", wait)
    assert resident.run() == TOLD


@pytest.mark.parametrize("is_told", [False, True])
def test_told_while_it_finds_another_one_it_does_not_follow_that(resident, monkeypatch, is_told) -> None:
    def refuse(*_given) -> bool:
        if is_told:
            tell_to_stop()
        return False

    monkeypatch.setattr(Resident, "_take", lambda _self: False)
    monkeypatch.setattr(residents, "take_over", refuse)
    if is_told:
        assert resident.run() == TOLD
    else:
        with pytest.raises(ResidentRuns):
            resident.run()
