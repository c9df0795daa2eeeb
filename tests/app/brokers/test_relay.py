"""Events over a real broker: out of the outbox, into the ledger, once each, whatever the broker does."""

import itertools
import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.app.over_broker import SECONDS, is_published, log_of, publish, receive, signed, submit
from tests.mosquitto import PASSWORDS, free_port

import mam
from mam.adapters.mqtt.connection import Connection
from mam.adapters.store.tables import jobs, outbox
from mam.app.brokers import config as brokers
from mam.app.brokers import relay_pool, wait_remote
from mam.app.brokers.publish import flush
from mam.app.brokers.relay import Relay
from mam.app.brokers.relay_pool import RelayPool
from mam.app.job_runner.check import check
from mam.app.jobs import find
from mam.app.jobs.event import event as report
from mam.core import caller as callers
from mam.core import job_event as events
from mam.core import republish_request
from mam.core.errors import BrokerRefused, NotAllowed, NotPublished, TimedOut


@pytest.fixture
def fleet(home, workspace, mosquitto):
    """A fleet whose jobs are published; no tmux is needed."""
    with mam.open(str(workspace)) as opened:
        opened.init()
        yield opened


@contextmanager
def relaying(fleet, told=None):
    """A relay in a thread, as the resident has it."""
    read, write = os.pipe()
    context = fleet._access.context.for_thread()
    relay = Relay(
        context,
        callers.user(),
        brokers.find(fleet._access.context),
        (told if told is not None else []).append,
    )
    thread = threading.Thread(target=relay.run, args=(read,))
    thread.start()
    try:
        yield relay
    finally:
        os.close(write)
        thread.join(SECONDS)
        assert not thread.is_alive()
        os.close(read)


@contextmanager
def waiting(fleet, *ids):
    """Somebody who waits elsewhere, in a thread; what they heard, and how it ended."""
    heard, done = [], []
    context = fleet._access.context.for_thread()
    tokens = {job_id: find.token_of(fleet._access.context, job_id) for job_id in ids}

    def wait():
        done.extend(
            wait_remote.wait(context, brokers.find(context), tokens, heard.append, timeout=SECONDS * 2)
        )

    thread = threading.Thread(target=wait)
    thread.start()
    yield heard, done
    thread.join(SECONDS * 2)
    assert not thread.is_alive()


def test_an_event_is_at_the_broker_when_the_verb_returns(fleet, stranger) -> None:
    job_id = submit(fleet)
    stranger.subscribe([f"python/mqtt/jobs/{job_id}/#"], SECONDS)
    done = fleet.jobs.event(job_id, "started", detail="über")
    assert done["published"] is True
    heard = {one.topic.rpartition("/")[2]: json.loads(one.payload) for one in receive(stranger, 2)}
    assert heard == {"events": done["event"], "status": done["event"]}
    fleet.jobs.event(job_id, "progress")
    assert is_published(fleet)


def test_a_job_without_a_broker_speaks_to_nobody(fleet) -> None:
    job_id = submit(fleet, broker=None)
    assert fleet.jobs.event(job_id, "completed")["published"] is None
    assert is_published(fleet)


def test_what_cannot_be_published_in_time_is_recorded_and_goes_out_later(
    fleet, mosquitto, stranger, until
) -> None:
    job_id = submit(fleet)
    mosquitto.kill()
    with pytest.raises(NotPublished, match="no broker listens") as caught:
        fleet.jobs.event(job_id, "completed", detail="done")
    assert caught.value.exit_code == 2
    assert fleet.jobs.status(job_id)["status"] == "completed"
    mosquitto.start()
    with relaying(fleet):
        until(lambda: is_published(fleet))


def test_a_broker_that_is_away_holds_up_no_other(fleet) -> None:
    nobody = f"mqtt://127.0.0.1:{free_port()}"
    away = [submit(fleet, broker={"url": nobody}) for _ in range(2)]
    job_id = submit(fleet)
    for one in (*away, job_id):
        report(fleet._access.context, fleet.caller, one, "started")
    said = []
    fleet.on_warning(said.append)
    flush(fleet._access.context)
    assert set(fleet._access.context.registry.peek(outbox.waiting_jobs, [])) == set(away)
    assert len(said) == 1


def test_the_doctor_asks_the_broker(fleet, mosquitto) -> None:
    def said():
        checks = {one["check"]: one for one in fleet.monitor.doctor()}
        return checks["broker"]["ok"], checks.get("outbox", {}).get("ok", True), checks["broker"]["message"]

    assert said() == (True, True, f"{mosquitto.url()} answers, MQTT 5")
    job_id = submit(fleet)
    mosquitto.kill()
    report(fleet._access.context, fleet.caller, job_id, "started")
    assert said() == (False, None, f"no broker listens at {mosquitto.url()}")


def test_a_broker_that_keeps_silent_is_not_waited_for(fleet, mosquitto) -> None:
    job_id = submit(fleet)
    mosquitto.signal(signal.SIGSTOP)
    with pytest.raises(NotPublished, match="does not answer"):
        fleet.jobs.event(job_id, "started", publish=0.2)


def test_a_wrong_password_is_said(fleet, mosquitto, monkeypatch) -> None:
    job_id = submit(fleet)
    mosquitto.password_file("mam").write_text("guess\n", encoding="utf-8")
    with pytest.raises(NotPublished, match="refuses"):
        fleet.jobs.event(job_id, "started")
    with pytest.raises(BrokerRefused):
        wait_remote.wait(
            fleet._access.context, brokers.find(fleet._access.context), {job_id: "x"}, print, timeout=SECONDS
        )


def test_the_relay_publishes_what_is_recorded(fleet, stranger, until) -> None:
    job_id = submit(fleet)
    told: list[dict] = []
    with relaying(fleet, told):
        until(lambda: told)
        assert told[0]["broker"]["state"] == "connected"
        stranger.subscribe([f"python/mqtt/jobs/{job_id}/events"], SECONDS)
        for number in range(3):
            report(fleet._access.context, fleet.caller, job_id, "progress", detail=str(number))
        assert [json.loads(one.payload)["detail"] for one in receive(stranger, 3)] == ["0", "1", "2"]
    assert len(told) == 1


def test_somebody_elsewhere_hears_each_event_and_the_end(fleet, until) -> None:
    one, other = submit(fleet), submit(fleet)
    with relaying(fleet), waiting(fleet, one, other) as (heard, done):
        fleet.jobs.event(one, "started")
        fleet.jobs.event(one, "completed", detail="all good")
        fleet.jobs.event(other, "error", detail="no")
        until(lambda: done, SECONDS)
    assert [(job["status"], job["terminal_detail"]) for job in done] == [
        ("completed", "all good"),
        ("error", "no"),
    ]
    assert [event["event"] for event in heard if event["job_id"] == one] == ["started", "completed"]


def test_who_comes_after_the_end_hears_it(fleet) -> None:
    job_id = submit(fleet)
    for name in ("started", "progress", "completed"):
        fleet.jobs.event(job_id, name)
    # Nobody is awake who could be asked: what is retained is the end.
    with waiting(fleet, job_id) as (heard, done):
        pass
    assert done[0]["status"] == "completed"
    assert [event["event"] for event in heard] == ["completed"]
    with relaying(fleet), waiting(fleet, job_id) as (heard, done):
        pass
    assert sorted(event["seq"] for event in heard) == [1, 2, 3]


def test_who_comes_within_an_hour_of_the_end_hears_all_of_it_from_who_is_awake(
    fleet, until, monkeypatch
) -> None:
    job_id = submit(fleet)
    for name in ("started", "progress", "completed"):
        fleet.jobs.event(job_id, name)
    told: list[dict] = []
    later = 0.0
    context = fleet._access.context.replace(clock=lambda: time.time() + later)
    relays = RelayPool(context, fleet.caller, told.append)
    try:
        until(lambda: relays.tick() or told)
        with waiting(fleet, job_id) as (heard, _done):
            pass
        assert sorted(event["seq"] for event in heard) == [1, 2, 3]
        # What was asked for is acknowledged, and then nobody is kept awake.
        until(lambda: not relays.is_needed())
        later = 3700.0
        relays.tick()
        assert not relays._running
    finally:
        relays.close()


def test_the_waiting_ends_in_time(fleet) -> None:
    job_id = submit(fleet)
    token = {job_id: find.token_of(fleet._access.context, job_id)}
    with pytest.raises(TimedOut, match=job_id):
        wait_remote.wait(
            fleet._access.context, brokers.find(fleet._access.context), token, print, timeout=0.3
        )


def test_a_token_file_that_others_can_read_is_refused(tmp_path) -> None:
    path = tmp_path / "token"
    with pytest.raises(NotAllowed, match="cannot be read"):
        wait_remote.read_token(str(path))
    path.write_text("abc\n", encoding="ascii")
    path.chmod(0o644)
    with pytest.raises(NotAllowed, match="open to others"):
        wait_remote.read_token(str(path))
    path.chmod(0o600)
    assert wait_remote.read_token(str(path)) == "abc"


def test_a_signed_event_from_elsewhere_is_taken_in_once(fleet, stranger, until) -> None:
    job_id = submit(fleet)
    topic, told = f"python/mqtt/jobs/{job_id}/events", []
    with relaying(fleet, told):
        until(lambda: told)
        for _ in range(3):
            publish(stranger, topic, signed(fleet, job_id, "started", 1, "from afar"))
        publish(stranger, topic, signed(fleet, job_id, "completed", 2, "done afar"))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
        until(lambda: is_published(fleet))
    assert log_of(fleet, job_id) == [("registered", ""), ("started", "from afar"), ("completed", "done afar")]
    assert [one["event"]["seq"] for one in told if "event" in one] == [1, 2]


def test_a_question_is_answered_once_however_often_it_is_heard(fleet) -> None:
    job_id = submit(fleet)
    token = find.token_of(fleet._access.context, job_id)
    relay = Relay(fleet._access.context, fleet.caller, brokers.find(fleet._access.context), print)
    for nonce, is_answered in (("a", True), ("a", False), ("b", True)):
        relay._owed.clear()
        relay._listen_to(
            job_id, republish_request.write(job_id, token, "2026-11-15T08:00:00Z", nonce).encode()
        )
        assert bool(relay._owed) is is_answered


def test_elsewhere_too_a_claim_is_not_believed_before_it_was_checked(fleet, stranger, until) -> None:
    job_id = submit(fleet, expected_artifacts=["not there"])
    with relaying(fleet), waiting(fleet, job_id) as (heard, done):
        fleet.jobs.event(job_id, "started")
        until(lambda: heard)
        publish(stranger, f"python/mqtt/jobs/{job_id}/events", signed(fleet, job_id, "completed", 2, "done"))
        until(lambda: fleet.jobs.status(job_id)["status"] == "checking")
        until(lambda: any(event["data"].get("checking") for event in heard))
        check(fleet._access.context, fleet.caller, job_id)
        until(lambda: done, SECONDS)
    assert (done[0]["status"], done[0]["reason"]) == ("error", "artifacts")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_claim_its_check_and_the_end_in_any_order(order) -> None:
    def event(name, seq, **data):
        made = events.make("1f00ab42", name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", data=data)
        return events.write(events.sign(made, "t" * 64)).encode()

    three = [
        event("completed", 1),
        event("progress", 1, checking=True),
        event("error", 2, by="mam", reason="validation"),
    ]
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for heard, index in enumerate(order):
        assert not job.is_over() or 2 in order[:heard]
        job.hear(three[index])
    assert job.is_over()
    assert job.as_json()["status"] == "error"


def test_what_is_missing_is_waited_for_while_it_still_comes(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(wait_remote.load_adjusted_clock, "now", lambda: now)
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for seq, name, by in ((9, "completed", {"by": "mam"}), (1, "progress", {}), (2, "progress", {})):
        made = events.make("1f00ab42", name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", data=by)
        job.hear(events.write(events.sign(made, "t" * 64)).encode())
        now += 1.5
        assert not job.is_over()
    now += 1.5
    assert job.is_over(), "nothing more was heard for a while"


def test_an_end_of_an_older_attempt_is_none() -> None:
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for seq, (name, attempt) in enumerate((("progress", 2), ("completed", 1)), 1):
        made = events.make("1f00ab42", name, seq=seq, attempt=attempt, timestamp="2026-11-15T08:00:00Z")
        job.hear(events.write(events.sign(made, "t" * 64)).encode())
    assert job.end is None


def test_the_end_that_a_lost_connection_swallowed_is_read_from_the_status(fleet, stranger, until) -> None:
    job_id = submit(fleet)
    topic = f"python/mqtt/jobs/{job_id}/status"
    publish(stranger, topic, signed(fleet, job_id, "completed", 7, "while you were away"), retain=True)
    with relaying(fleet):
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")


def test_forged_events_are_refused_and_logged(fleet, stranger, until) -> None:
    job_id, other = submit(fleet), submit(fleet)
    topic = f"python/mqtt/jobs/{job_id}"
    genuine = signed(fleet, job_id, "completed", 1)
    forged = [
        genuine.replace('"event":"completed"', '"event":"error"'),
        signed(fleet, other, "completed", 1),
        signed(fleet, other, "completed", 1).replace(other, job_id),
        "{" * 1000,
        "not json",
        "x" * 70_000,
    ]
    told: list[dict] = []
    with relaying(fleet, told):
        until(lambda: told)
        for payload in forged:
            publish(stranger, f"{topic}/events", payload)
        publish(stranger, f"{topic}/ask", "let me see")
        until(lambda: sum("refused" in one for one in told) == len(forged) + 1)
    # What is retained was said before: it is refused however well it is signed.
    publish(stranger, f"{topic}/events", genuine, retain=True)
    with relaying(fleet):
        until(lambda: ("dropped", "it is a retained message") in log_of(fleet, job_id))
        publish(stranger, f"{topic}/events", "", retain=True)
    names = [name for name, _ in log_of(fleet, job_id)]
    assert names.count("dropped") >= len(forged) + 1
    assert {fleet.jobs.status(one)["status"] for one in (job_id, other)} == {"pending"}


def test_the_same_forgery_is_logged_once(fleet, stranger, until) -> None:
    """However often it is said, and however many hear it."""
    job_id, other, told, too = submit(fleet), submit(fleet), [], []
    topic = f"python/mqtt/jobs/{job_id}"
    forged = signed(fleet, other, "completed", 1).replace(other, job_id)
    with relaying(fleet, told), relaying(fleet, too):
        until(lambda: told and too)
        for leaf in ("events", "status", "events"):
            publish(stranger, f"{topic}/{leaf}", forged)
        until(lambda: all(any("refused" in one for one in heard) for heard in (told, too)))
        publish(stranger, f"{topic}/events", signed(fleet, job_id, "completed", 1))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
    assert [name for name, _ in log_of(fleet, job_id)] == ["registered", "dropped", "completed"]


def test_our_own_words_are_no_news(fleet, stranger, until, monkeypatch) -> None:
    """3.1.1 gives us back what we said; a `completed` that is being checked has other words by then."""
    monkeypatch.setenv("MAM_BROKER_PROTOCOL", "3.1.1")
    job_id, told = submit(fleet, expected_artifacts=["proof.txt"]), []
    topic = f"python/mqtt/jobs/{job_id}/events"
    with relaying(fleet, told):
        until(lambda: told)
        stranger.subscribe([topic], SECONDS)
        report(fleet._access.context, fleet.caller, job_id, "started")
        publish(stranger, topic, signed(fleet, job_id, "completed", 5))
        heard = [json.loads(one.payload) for one in receive(stranger, 2)]
        assert [one["data"].get("checking") for one in heard] == [None, True]
        # Whatever comes back to us comes before this.
        publish(stranger, topic, signed(fleet, job_id, "progress", 6, "last"))
        until(lambda: ("progress", "last") in log_of(fleet, job_id))
    assert [name for name, _ in log_of(fleet, job_id)] == ["registered", "started", "checking", "progress"]


def test_a_record_from_elsewhere_names_no_broker(fleet, stranger) -> None:
    """A repository can carry one: nothing is sent to whom it names, and no password of ours."""
    job_id = "0badcafe"
    record = {
        "schema_version": 1,
        "job_id": job_id,
        "status": "running",
        "prompt": "x",
        "auth_token": "t" * 64,
    }
    folder = Path(fleet._access.context.paths.jobs)
    folder.mkdir(exist_ok=True)
    record["broker"] = brokers.find(fleet._access.context).as_json()
    (folder / f"{job_id}.json").write_text(json.dumps(record), encoding="utf-8")
    assert fleet.jobs.event(job_id, "completed")["published"] is None
    assert fleet.jobs.status(job_id)["broker"] is None


def test_a_half_open_connection_delays_and_loses_nothing(fleet, mosquitto, until, home, monkeypatch) -> None:
    """The broker stands still for longer than silence is borne: both ends notice, and find it again."""
    monkeypatch.delenv("MAM_BROKER")
    settings = f'[broker]\nurl = "{mosquitto.url()}"\nkeepalive = 1\n'
    (home / ".config" / "mam" / "config.toml").write_text(settings, encoding="utf-8")
    job_id, told = submit(fleet), []
    with relaying(fleet, told), waiting(fleet, job_id) as (heard, done):
        report(fleet._access.context, fleet.caller, job_id, "started")
        until(lambda: heard, SECONDS)
        mosquitto.signal(signal.SIGSTOP)
        report(fleet._access.context, fleet.caller, job_id, "progress")
        until(lambda: any("broker" in one and one["broker"]["state"] == "lost" for one in told), SECONDS)
        report(fleet._access.context, fleet.caller, job_id, "completed")
        mosquitto.signal(signal.SIGCONT)
        until(lambda: done, SECONDS)
    assert sorted(event["seq"] for event in heard) == [1, 2, 3]


def test_somebody_elsewhere_believes_no_forged_end(fleet, stranger, until) -> None:
    job_id, other = submit(fleet), submit(fleet)
    publish(
        stranger,
        f"python/mqtt/jobs/{job_id}/status",
        signed(fleet, other, "completed", 1).replace(other, job_id),
        retain=True,
    )
    said: list[str] = []
    fleet.on_warning(said.append)
    token = {job_id: find.token_of(fleet._access.context, job_id)}
    with pytest.raises(TimedOut):
        wait_remote.wait(
            fleet._access.context, brokers.find(fleet._access.context), token, print, timeout=1.0
        )
    assert any("signature" in one for one in said)


def test_jobs_of_others_on_the_same_broker_leave_no_trace(fleet, stranger, until) -> None:
    job_id = submit(fleet)
    told: list[dict] = []
    with relaying(fleet, told):
        until(lambda: told)
        publish(stranger, "python/mqtt/jobs/ffffffff/events", "whatever")
        publish(stranger, "python/mqtt/jobs/../etc/events", "whatever")
        publish(stranger, f"python/mqtt/jobs/{job_id}/events", signed(fleet, job_id, "completed", 1))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
    assert not [one for one in fleet.sessions.log() if one["verb"] == "job event"]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_killed_in_the_middle_of_500_events(fleet, mosquitto, until, monkeypatch, protocol) -> None:
    """All of them are applied at the other end, once each, though the broker forgets what it acknowledged."""
    monkeypatch.setenv("MAM_BROKER_PROTOCOL", protocol)
    job_id, count = submit(fleet), 500
    token = find.token_of(fleet._access.context, job_id)

    def record(first, last):
        """As `job event` does, without a broker in its way."""
        from mam.app.jobs import ledger

        def work(draft):
            for number in range(first, last):
                job = jobs.find(draft, job_id)
                name = "completed" if number == count else "progress"
                ledger.report(draft, job, name, token, str(number), data={})

        fleet._access.context.registry.note(work)

    with relaying(fleet), waiting(fleet, job_id) as (heard, done):
        for first in range(1, count, 100):
            record(first, first + 100 if first + 100 < count else count)
            until(lambda first=first: len(heard) >= first - 1, SECONDS)
            mosquitto.kill()
            record(count, count + 1) if first + 100 > count else None
            mosquitto.start()
        until(lambda: done and is_published(fleet), SECONDS * 2)
    assert sorted(event["seq"] for event in heard) == list(range(1, count + 1))
    assert done[0]["status"] == "completed"


@pytest.mark.slow
def test_500_events_from_elsewhere_and_a_broker_that_is_killed(fleet, mosquitto, until) -> None:
    """The other way round: whoever publishes again what was not acknowledged loses nothing here either."""
    job_id, count = submit(fleet), 500
    payloads = [signed(fleet, job_id, "progress", number, str(number)) for number in range(1, count)]
    payloads.append(signed(fleet, job_id, "completed", count, str(count)))
    topic = f"python/mqtt/jobs/{job_id}/events"
    sender = Connection(brokers.find(fleet._access.context), PASSWORDS["mam"], role="test")

    def seqs():
        entries = fleet._access.context.registry.peek(lambda draft: jobs.entries(draft, job_id), [])
        return sorted(one.document["seq"] for one in entries if one.document["seq"])

    def send(some):
        sender.open(SECONDS)
        sender.finish([sender.publish(topic, one) for one in some], SECONDS)

    told: list[dict] = []
    with relaying(fleet, told):
        until(lambda: told)
        send(payloads[:250])
        until(lambda: len(seqs()) > 20, SECONDS)
        mosquitto.kill()
        mosquitto.start()
        until(lambda: [one["broker"]["state"] for one in told if "broker" in one].count("connected") == 2)
        # What the broker had acknowledged and lost is what the sender's own outbox sends again.
        send(payloads)
        until(lambda: len(seqs()) == count, SECONDS * 3)
    sender.close()
    assert seqs() == list(range(1, count + 1))
    assert fleet.jobs.status(job_id)["status"] == "completed"


def test_a_thread_that_was_told_to_end_may_still_speak(fleet) -> None:
    """Its broker is out of use and its goodbye takes long: what it writes to stays open meanwhile."""
    gate = threading.Event()

    class Slow:
        tell = None

        def run(self, read):
            os.read(read, 1)
            gate.wait(SECONDS)
            self.tell({"broker": {"address": "x", "state": "lost"}})

    told, slow = [], Slow()
    pool = RelayPool(fleet._access.context, fleet.caller, told.append)
    slow.tell = pool._hear
    thread = relay_pool._Thread(slow)
    pool._running["x"] = thread
    pool.tick()
    pool.close()
    gate.set()
    assert thread.join(SECONDS)
    pool.tick()
    assert told == [{"broker": {"address": "x", "state": "lost"}}]
    pool.close()
    with pytest.raises(OSError):
        os.fstat(pool._write)
