"""`monitor --subscribe`: events from a broker are in the records at once, and a lost broker loses none."""

import json
import os
import threading
from contextlib import contextmanager

import pytest
from tests.app.over_broker import SECONDS, log_of, publish, signed, submit
from tests.app.watching import run_apart

import mam
from mam.app.brokers import config as brokers
from mam.app.brokers.relay_both_ways import Relay
from mam.app.brokers.relay_pool import RelayPool
from mam.app.monitor import resident as residents
from mam.app.monitor.broker_subscription import subscribe
from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
from mam.core.errors import InvalidSettings


@pytest.fixture
def lines():
    """Read what a process prints, each line a document."""

    def read(process):
        documents = []

        def take():
            documents.extend(json.loads(line) for line in process.stdout)

        threading.Thread(target=take, daemon=True).start()
        return documents

    return read


@contextmanager
def watching(workspace, news, **environ):
    """A resident that listens, in a thread."""
    with mam.open(str(workspace), environ={**os.environ, **environ}) as own:
        document = residents.Resident(
            own._access.context, own.caller, news.append, subscribe=brokers.find(own._access.context)
        )
        read, write = os.pipe()
        thread = threading.Thread(target=run_apart, args=(document, read))
        thread.start()
        try:
            yield document
        finally:
            os.write(write, b"!")
            thread.join(SECONDS)
            assert not thread.is_alive()
            os.close(read)
            os.close(write)


def states(news):
    return [document["broker"]["state"] for document in news if "broker" in document]


def test_a_signed_event_is_in_the_record_at_once(mosquitto, fleet, remote, monitor, lines, until) -> None:
    fleet.init()
    job_id = submit(fleet, broker=None)
    news = lines(monitor("--subscribe", "--json", "--idle-timeout", "0"))
    until(lambda: states(news) == ["connected"], SECONDS)
    topic = f"python/mqtt/jobs/{job_id}/events"
    publish(remote, topic, signed(fleet, job_id, "completed", 1, "done elsewhere"))
    until(lambda: fleet.jobs.status(job_id)["status"] == "completed", SECONDS)
    until(
        lambda: (
            [document["event"]["detail"] for document in news if "event" in document] == ["done elsewhere"]
        )
    )
    publish(remote, topic, signed(fleet, job_id, "error", 2).replace("error", "completed"))
    until(lambda: [document["refused"]["job_id"] for document in news if "refused" in document] == [job_id])
    assert log_of(fleet, job_id)[-1][0] == "dropped"


def test_a_broker_that_is_killed_and_comes_back(
    mosquitto, fleet, workspace, remote, until, monkeypatch
) -> None:
    fleet.init()
    job_id, news, passes = submit(fleet), [], []
    reconcile = residents.reconcile.reconcile
    monkeypatch.setattr(
        residents.reconcile,
        "reconcile",
        lambda *args, **options: passes.append(1) or reconcile(*args, **options),
    )
    with watching(workspace, news, RECONCILE_POLL_INTERVAL="0.05"):
        until(lambda: states(news) == ["connected"], SECONDS)
        mosquitto.kill()
        until(lambda: states(news)[-1] == "lost", SECONDS)
        before = len(passes)
        until(lambda: len(passes) > before + 3, SECONDS)
        # What happens meanwhile is in the ledger, and what is said elsewhere is retained as the status.
        mosquitto.start()
        remote.open(SECONDS)
        status = signed(fleet, job_id, "completed", 1, "while it was away")
        publish(remote, f"python/mqtt/jobs/{job_id}/status", status, retain=True)
        until(lambda: states(news)[-1] == "connected", SECONDS)
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed", SECONDS)
        after = submit(fleet)
        publish(remote, f"python/mqtt/jobs/{after}/events", signed(fleet, after, "started", 1))
        until(lambda: fleet.jobs.status(after)["status"] == "running", SECONDS)


def test_without_the_broker_it_looks_at_intervals(mosquitto, fleet, workspace, until, monkeypatch) -> None:
    """A wrong password is told once, and ends nothing."""
    fleet.init()
    news, passes = [], []
    reconcile = residents.reconcile.reconcile
    monkeypatch.setattr(
        residents.reconcile,
        "reconcile",
        lambda *args, **options: passes.append(1) or reconcile(*args, **options),
    )
    mosquitto.password_file("mam").write_text("guess", encoding="utf-8")
    with watching(workspace, news, RECONCILE_POLL_INTERVAL="0.05"):
        until(lambda: states(news) == ["lost"], SECONDS)
        before = len(passes)
        until(lambda: len(passes) > before + 3, SECONDS)
    assert [document["broker"]["error"]["code"] for document in news if "broker" in document] == [
        "broker_refused"
    ]


def test_a_relay_that_fails_is_told_once(mosquitto, fleet, workspace, until, monkeypatch) -> None:
    fleet.init()
    news, ticks, tick = [], [], RelayPool.tick
    monkeypatch.setattr(Relay, "_connect", lambda _relay: 1 // 0)
    monkeypatch.setattr(RelayPool, "tick", lambda relays: ticks.append(1) or tick(relays))
    with watching(workspace, news):
        until(lambda: news, SECONDS)
        before = len(ticks)
        fleet.boards.create("something happens")
        until(lambda: len(ticks) > before, SECONDS)
    assert [document["error"]["code"] for document in news] == ["broken"]


def test_beside_a_resident_it_listens(mosquitto, fleet, workspace, remote, monitor, lines, until) -> None:
    fleet.init()
    job_id = submit(fleet, broker=None)
    resident = monitor("--idle-timeout", "0")
    until(lambda: residents.lock(fleet._access.context).holder(), SECONDS)
    news = lines(monitor("--subscribe", "--json", "--idle-timeout", "0"))
    until(lambda: states(news) == ["connected"], SECONDS)
    publish(remote, f"python/mqtt/jobs/{job_id}/events", signed(fleet, job_id, "completed", 1))
    until(lambda: fleet.jobs.status(job_id)["status"] == "completed", SECONDS)
    mosquitto.kill()
    until(lambda: states(news)[-1] == "lost", SECONDS)
    mosquitto.start()
    until(lambda: states(news)[-1] == "connected", SECONDS)
    assert resident.poll() is None


def details(news):
    return [document["event"]["detail"] for document in news if "event" in document]


@pytest.mark.parametrize("beside", [False, True], ids=["as the resident", "beside a resident"])
def test_s001_30_every_accepted_event_is_printed_once(
    mosquitto, fleet, remote, monitor, lines, until, beside
) -> None:
    """Whoever takes an event in: the resident, this process, or a verb of this machine."""
    fleet.init()
    job_id = submit(fleet)
    fleet.jobs.event(job_id, "started", detail="before")
    if beside:
        monitor("--idle-timeout", "0")
        until(lambda: residents.lock(fleet._access.context).holder(), SECONDS)
    news = lines(monitor("--subscribe", "--json", "--idle-timeout", "0"))
    until(lambda: states(news) == ["connected"], SECONDS)
    expected = []
    for number in range(2, 16, 2):
        expected += [f"from elsewhere {number}", f"from here {number + 1}"]
        text = signed(fleet, job_id, "progress", number, expected[-2])
        publish(remote, f"python/mqtt/jobs/{job_id}/events", text)
        until(lambda detail=expected[-2]: ("progress", detail) in log_of(fleet, job_id), SECONDS)
        fleet.jobs.event(job_id, "progress", detail=expected[-1])
    until(lambda: expected[-1] in details(news), SECONDS)
    assert details(news) == expected


def test_s001_30_an_event_is_printed_once_when_the_resident_ends(
    mosquitto, fleet, monitor, lines, until
) -> None:
    fleet.init()
    job_id = submit(fleet)
    resident = monitor("--idle-timeout", "0")
    until(lambda: residents.lock(fleet._access.context).holder(), SECONDS)
    listening = monitor("--subscribe", "--json", "--idle-timeout", "0")
    news = lines(listening)
    until(lambda: states(news) == ["connected"], SECONDS)
    fleet.jobs.event(job_id, "started", detail="one")
    resident.kill()
    resident.wait()
    fleet.jobs.event(job_id, "progress", detail="two")
    until(lambda: (residents.lock(fleet._access.context).holder() or {}).get("pid") == listening.pid, SECONDS)
    fleet.jobs.event(job_id, "progress", detail="three")
    until(lambda: "three" in details(news), SECONDS)
    assert details(news) == ["one", "two", "three"]


def test_s001_31_an_event_is_activity_beside_a_resident(
    mosquitto, fleet, workspace, monitor, until, monkeypatch
) -> None:
    fleet.init()
    job_id, news, noted = submit(fleet), [], []
    monitor("--idle-timeout", "0")
    until(lambda: residents.lock(fleet._access.context).holder(), SECONDS)
    note_event = MonitorTimeouts.note_event
    monkeypatch.setattr(MonitorTimeouts, "note_event", lambda limits: noted.append(1) or note_event(limits))
    with mam.open(str(workspace)) as own:
        arguments = (own._access.context, own.caller, None, news.append)
        thread = threading.Thread(target=subscribe, args=arguments, kwargs={"timeout": 2 * SECONDS})
        thread.start()
        try:
            until(lambda: states(news) == ["connected"], SECONDS)
            before = len(noted)
            for number in range(3):
                fleet.jobs.event(job_id, "progress", detail=str(number))
            until(lambda: details(news) == ["0", "1", "2"], SECONDS)
            assert len(noted) >= before + 3
        finally:
            # It ends at once when it next asks whether its time is over.
            monkeypatch.setattr(MonitorTimeouts, "end_reason", lambda _limits: "enough")
            thread.join(SECONDS)
        assert not thread.is_alive()


def test_it_ends_when_its_time_is_over(mosquitto, fleet, monitor) -> None:
    fleet.init()
    for limit in ("--timeout", "--idle-timeout"):
        # On a busy machine a short time may be over before the broker has answered.
        for seconds in ("0.5", "2", "8", "30"):
            running = monitor("--subscribe", limit, seconds)
            assert running.wait(2 * SECONDS) == 0
            if "connected" in (reason := running.stdout.read()):
                break
        assert reason.count("connected") == 1


def test_what_it_cannot_do_without(fleet, monkeypatch) -> None:
    fleet.init()
    with pytest.raises(InvalidSettings, match="no broker"):
        subscribe(fleet._access.context, fleet.caller, None, print)
    for wrong in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("RECONCILE_POLL_INTERVAL", wrong)
        with pytest.raises(InvalidSettings, match="RECONCILE_POLL_INTERVAL"):
            subscribe(fleet._access.context, fleet.caller, "mqtt://127.0.0.1:1", print)
