"""The resident delivers to several sessions at once, and keeps the order within each."""

import threading

import pytest
from tests.app.team_desk import QUICK, said

from mam.adapters.store.tables import messages
from mam.app.messages import receipt_proof, resident_task
from mam.app.messages.send import new_message


@pytest.fixture
def task(fleet):
    return resident_task.DeliveryTask(fleet._access.context)


def hold(fleet, session, *texts):
    fleet._access.context.registry.note(
        lambda transaction: [
            messages.add(transaction, new_message(None, "user", session.row, text)) for text in texts
        ]
    )


def states(fleet, name):
    return [message["state"] for message in fleet.messages.inbox(name)]


def test_e12_one_slow_proof_holds_up_nobody_else(fleet, task, monkeypatch, until) -> None:
    slow = fleet.sessions.create("practice", name="slow", args=QUICK)
    quick = fleet.sessions.create("practice", name="quick", args=QUICK)
    real, is_found = receipt_proof.find, threading.Event()

    def find(context, row, proof):
        return real(context, row, proof) if row["name"] == "quick" or is_found.is_set() else None

    monkeypatch.setattr(receipt_proof, "find", find)
    monkeypatch.setattr(receipt_proof, "proof_seconds", lambda text: 60.0)
    hold(fleet, slow, "one", "two")
    hold(fleet, quick, "three")
    task.tick()
    until(lambda: states(fleet, "quick") == ["submitted"])
    assert states(fleet, "slow") == ["held", "held"]
    hold(fleet, quick, "four")
    # The thread of the session may be about to end. The resident gives the session another one a second
    # later.
    until(lambda: (task.tick(), states(fleet, "quick") == ["submitted", "submitted"])[1])
    assert states(fleet, "slow") == ["held", "held"]
    is_found.set()
    until(lambda: (task.tick(), set(states(fleet, "slow")) <= {"submitted", "queued"})[1], timeout=30)
    assert said(fleet, "slow") == ["one", "two"], "in order"


def test_the_threads_are_few(fleet, task, monkeypatch, until) -> None:
    served, going_on, lock, running = [], threading.Event(), threading.Lock(), [0]
    at_once = []

    def deliver(_context, session_id):
        with lock:
            running[0] += 1
            at_once.append(running[0])
            served.append(session_id)
        going_on.wait(30)
        with lock:
            running[0] -= 1

    monkeypatch.setattr(resident_task, "deliver", deliver)
    monkeypatch.setattr(resident_task, "_MOST_THREADS", 2)
    fleet.init()
    for number in range(5):
        hold(fleet, type("S", (), {"row": {"id": f"s_0000000{number}"}}), "hello")
    task.tick()
    task.tick()
    until(lambda: len(served) == 2)
    going_on.set()
    until(lambda: len(served) == 5)
    assert sorted(served) == [f"s_0000000{number}" for number in range(5)]
    assert max(at_once) == 2
