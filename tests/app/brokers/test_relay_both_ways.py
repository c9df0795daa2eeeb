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
from tests.matrix.broker_proxy import BrokerProxy
from tests.mosquitto import PASSWORDS, free_port

import mam
from mam.adapters.mqtt.connection import Connection
from mam.adapters.store.tables import jobs, outbox
from mam.app.brokers import config as brokers
from mam.app.brokers import relay_both_ways, relay_pool, wait_remote
from mam.app.brokers.publish import flush
from mam.app.brokers.relay_both_ways import Relay
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
def relaying(fleet, news=None):
    """A relay in a thread, as the resident has it."""
    read, write = os.pipe()
    context = fleet._access.context.for_thread()
    relay = Relay(
        context,
        callers.user(),
        brokers.find(fleet._access.context),
        (news if news is not None else []).append,
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
    """Wait for jobs over the broker in a thread; yield the received events and the results."""
    events_received, results = [], []
    context = fleet._access.context.for_thread()
    tokens = {job_id: find.token_of(fleet._access.context, job_id) for job_id in ids}

    def wait():
        results.extend(
            wait_remote.wait(
                context, brokers.find(context), tokens, events_received.append, timeout=SECONDS * 2
            )
        )

    thread = threading.Thread(target=wait)
    thread.start()
    yield events_received, results
    thread.join(SECONDS * 2)
    assert not thread.is_alive()


def test_an_event_is_at_the_broker_when_the_verb_returns(fleet, remote) -> None:
    job_id = submit(fleet)
    remote.subscribe([f"python/mqtt/jobs/{job_id}/#"], SECONDS)
    outcome = fleet.jobs.event(job_id, "started", detail="über")
    assert outcome["published"] is True
    received = {
        message.topic.rpartition("/")[2]: json.loads(message.payload) for message in receive(remote, 2)
    }
    assert received == {"events": outcome["event"], "status": outcome["event"]}
    fleet.jobs.event(job_id, "progress")
    assert is_published(fleet)


def test_a_job_without_a_broker_speaks_to_nobody(fleet) -> None:
    job_id = submit(fleet, broker=None)
    assert fleet.jobs.event(job_id, "completed")["published"] is None
    assert is_published(fleet)


def test_what_cannot_be_published_in_time_is_recorded_and_goes_out_later(
    fleet, mosquitto, remote, until
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
    url = f"mqtt://127.0.0.1:{free_port()}"
    unreachable = [submit(fleet, broker={"url": url}) for _ in range(2)]
    job_id = submit(fleet)
    for job in (*unreachable, job_id):
        report(fleet._access.context, fleet.caller, job, "started")
    warnings = []
    fleet.on_warning(warnings.append)
    flush(fleet._access.context)
    assert set(fleet._access.context.registry.peek(outbox.waiting_jobs, [])) == set(unreachable)
    assert len(warnings) == 1


def test_the_doctor_asks_the_broker(fleet, mosquitto) -> None:
    def checks_of_broker():
        checks = {check["check"]: check for check in fleet.monitor.doctor()}
        return checks["broker"]["ok"], checks.get("outbox", {}).get("ok", True), checks["broker"]["message"]

    assert checks_of_broker() == (True, True, f"{mosquitto.url()} answers, MQTT 5")
    job_id = submit(fleet)
    mosquitto.kill()
    report(fleet._access.context, fleet.caller, job_id, "started")
    assert checks_of_broker() == (False, None, f"no broker listens at {mosquitto.url()}")


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


def test_the_relay_publishes_what_is_recorded(fleet, remote, until) -> None:
    job_id = submit(fleet)
    news: list[dict] = []
    with relaying(fleet, news):
        until(lambda: news)
        assert news[0]["broker"]["state"] == "connected"
        remote.subscribe([f"python/mqtt/jobs/{job_id}/events"], SECONDS)
        for number in range(3):
            report(fleet._access.context, fleet.caller, job_id, "progress", detail=str(number))
        assert [json.loads(message.payload)["detail"] for message in receive(remote, 3)] == ["0", "1", "2"]
    assert len(news) == 1


def test_somebody_elsewhere_hears_each_event_and_the_end(fleet, until) -> None:
    first, second = submit(fleet), submit(fleet)
    with relaying(fleet), waiting(fleet, first, second) as (received, results):
        fleet.jobs.event(first, "started")
        fleet.jobs.event(first, "completed", detail="all good")
        fleet.jobs.event(second, "error", detail="no")
        until(lambda: results, SECONDS)
    assert [(job["status"], job["terminal_detail"]) for job in results] == [
        ("completed", "all good"),
        ("error", "no"),
    ]
    assert [event["event"] for event in received if event["job_id"] == first] == ["started", "completed"]


def test_who_comes_after_the_end_hears_it(fleet) -> None:
    job_id = submit(fleet)
    for name in ("started", "progress", "completed"):
        fleet.jobs.event(job_id, name)
    # No relay runs that could publish the log again, so only the retained status is received.
    with waiting(fleet, job_id) as (received, results):
        pass
    assert results[0]["status"] == "completed"
    assert [event["event"] for event in received] == ["completed"]
    with relaying(fleet), waiting(fleet, job_id) as (received, results):
        pass
    assert sorted(event["seq"] for event in received) == [1, 2, 3]


def test_who_comes_within_an_hour_of_the_end_hears_all_of_it_from_who_is_awake(
    fleet, until, monkeypatch
) -> None:
    job_id = submit(fleet)
    for name in ("started", "progress", "completed"):
        fleet.jobs.event(job_id, name)
    news: list[dict] = []
    later = 0.0
    context = fleet._access.context.replace(clock=lambda: time.time() + later)
    relays = RelayPool(context, fleet.caller, news.append)
    try:
        until(lambda: relays.tick() or news)
        with waiting(fleet, job_id) as (received, _results):
            pass
        assert sorted(event["seq"] for event in received) == [1, 2, 3]
        # Once the broker has acknowledged the log, the resident need not stay.
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
    with pytest.raises(NotAllowed, match="other users can read"):
        wait_remote.read_token(str(path))
    path.chmod(0o600)
    assert wait_remote.read_token(str(path)) == "abc"


def test_a_signed_event_from_elsewhere_is_taken_in_once(fleet, remote, until) -> None:
    job_id = submit(fleet)
    topic, news = f"python/mqtt/jobs/{job_id}/events", []
    with relaying(fleet, news):
        until(lambda: news)
        for _ in range(3):
            publish(remote, topic, signed(fleet, job_id, "started", 1, "from afar"))
        publish(remote, topic, signed(fleet, job_id, "completed", 2, "done afar"))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
        until(lambda: is_published(fleet))
    assert log_of(fleet, job_id) == [("registered", ""), ("started", "from afar"), ("completed", "done afar")]
    assert [document["event"]["seq"] for document in news if "event" in document] == [1, 2]


def test_a_relay_whose_connections_end_at_once_loses_and_doubles_nothing(
    fleet, mosquitto, remote, until, monkeypatch
) -> None:
    """Fifty in a row; the pauses between them, which grow to minutes, take a moment here."""
    monkeypatch.setattr(relay_both_ways.rules, "pause", lambda *_given: 0.01)
    proxy = BrokerProxy(mosquitto.port)
    proxy.to_cut = 50
    monkeypatch.setenv("MAM_BROKER", mosquitto.url().replace(str(mosquitto.port), str(proxy.port)))
    job_id = submit(fleet)
    topic, news = f"python/mqtt/jobs/{job_id}/events", []
    remote.subscribe([topic], SECONDS)
    try:
        with relaying(fleet, news):
            report(fleet._access.context, fleet.caller, job_id, "progress", detail="here")
            until(lambda: is_published(fleet), SECONDS)
            assert proxy.connections > 50
            assert [json.loads(message.payload)["detail"] for message in receive(remote, 1)] == ["here"]
            publish(remote, topic, signed(fleet, job_id, "completed", 9, "there"))
            until(lambda: fleet.jobs.status(job_id)["status"] == "completed", SECONDS)
    finally:
        proxy.close()
    assert [detail for _, detail in log_of(fleet, job_id)] == ["", "here", "there"]


def test_a_question_is_answered_once_however_often_it_is_heard(fleet) -> None:
    job_id = submit(fleet)
    token = find.token_of(fleet._access.context, job_id)
    relay = Relay(fleet._access.context, fleet.caller, brokers.find(fleet._access.context), print)
    for nonce, is_answered in (("a", True), ("a", False), ("b", True)):
        relay._requested.clear()
        relay._note_request(
            job_id, republish_request.write(job_id, token, "2026-11-15T08:00:00Z", nonce).encode()
        )
        assert bool(relay._requested) is is_answered


def test_elsewhere_too_a_claim_is_not_believed_before_it_was_checked(fleet, remote, until) -> None:
    job_id = submit(fleet, expected_artifacts=["not there"])
    with relaying(fleet), waiting(fleet, job_id) as (received, results):
        fleet.jobs.event(job_id, "started")
        until(lambda: received)
        publish(remote, f"python/mqtt/jobs/{job_id}/events", signed(fleet, job_id, "completed", 2, "done"))
        until(lambda: fleet.jobs.status(job_id)["status"] == "checking")
        until(lambda: any(event["data"].get("checking") for event in received))
        check(fleet._access.context, fleet.caller, job_id)
        until(lambda: results, SECONDS)
    assert (results[0]["status"], results[0]["reason"]) == ("error", "artifacts")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_claim_its_check_and_the_end_in_any_order(order) -> None:
    def event(name, seq, **data):
        unsigned = events.make(
            "1f00ab42", name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", data=data
        )
        return events.write(events.sign(unsigned, "t" * 64)).encode()

    payloads = [
        event("completed", 1),
        event("progress", 1, checking=True),
        event("error", 2, by="mam", reason="validation"),
    ]
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for count, index in enumerate(order):
        assert not job.is_over() or 2 in order[:count]
        job.take_event(payloads[index])
    assert job.is_over()
    assert job.as_json()["status"] == "error"


def test_what_is_missing_is_waited_for_while_it_still_comes(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(wait_remote.load_adjusted_clock, "now", lambda: now)
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for seq, name, by in ((9, "completed", {"by": "mam"}), (1, "progress", {}), (2, "progress", {})):
        unsigned = events.make(
            "1f00ab42", name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", data=by
        )
        job.take_event(events.write(events.sign(unsigned, "t" * 64)).encode())
        now += 1.5
        assert not job.is_over()
    now += 1.5
    assert job.is_over(), "nothing more was heard for a while"


def test_an_end_of_an_older_attempt_is_none() -> None:
    job = wait_remote._Job("1f00ab42", "t" * 64)
    for seq, (name, attempt) in enumerate((("progress", 2), ("completed", 1)), 1):
        unsigned = events.make("1f00ab42", name, seq=seq, attempt=attempt, timestamp="2026-11-15T08:00:00Z")
        job.take_event(events.write(events.sign(unsigned, "t" * 64)).encode())
    assert job.end is None


def test_the_end_that_a_lost_connection_swallowed_is_read_from_the_status(fleet, remote, until) -> None:
    job_id = submit(fleet)
    topic = f"python/mqtt/jobs/{job_id}/status"
    publish(remote, topic, signed(fleet, job_id, "completed", 7, "while you were away"), retain=True)
    with relaying(fleet):
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")


def test_forged_events_are_refused_and_logged(fleet, remote, until) -> None:
    job_id, other_job = submit(fleet), submit(fleet)
    topic = f"python/mqtt/jobs/{job_id}"
    genuine = signed(fleet, job_id, "completed", 1)
    forged = [
        genuine.replace('"event":"completed"', '"event":"error"'),
        signed(fleet, other_job, "completed", 1),
        signed(fleet, other_job, "completed", 1).replace(other_job, job_id),
        "{" * 1000,
        "not json",
        "x" * 70_000,
    ]
    news: list[dict] = []
    with relaying(fleet, news):
        until(lambda: news)
        for payload in forged:
            publish(remote, f"{topic}/events", payload)
        publish(remote, f"{topic}/ask", "let me see")
        until(lambda: sum("refused" in one for one in news) == len(forged) + 1)
    # A retained message repeats an earlier event, so it is refused even with a valid signature.
    publish(remote, f"{topic}/events", genuine, retain=True)
    with relaying(fleet):
        until(lambda: ("dropped", "the event is a retained message") in log_of(fleet, job_id))
        publish(remote, f"{topic}/events", "", retain=True)
    names = [name for name, _ in log_of(fleet, job_id)]
    assert names.count("dropped") >= len(forged) + 1
    assert {fleet.jobs.status(one)["status"] for one in (job_id, other_job)} == {"pending"}


def test_the_same_forgery_is_logged_once(fleet, remote, until) -> None:
    """It does not matter how often it is published, and how many relays receive it."""
    job_id, other_job, news, other_news = submit(fleet), submit(fleet), [], []
    topic = f"python/mqtt/jobs/{job_id}"
    forged = signed(fleet, other_job, "completed", 1).replace(other_job, job_id)
    with relaying(fleet, news), relaying(fleet, other_news):
        until(lambda: news and other_news)
        for leaf in ("events", "status", "events"):
            publish(remote, f"{topic}/{leaf}", forged)
        until(
            lambda: all(
                any("refused" in document for document in documents) for documents in (news, other_news)
            )
        )
        publish(remote, f"{topic}/events", signed(fleet, job_id, "completed", 1))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
    assert [name for name, _ in log_of(fleet, job_id)] == ["registered", "dropped", "completed"]


def test_our_own_words_are_no_news(fleet, remote, until, monkeypatch) -> None:
    """MQTT 3.1.1 returns our own messages; a `completed` that is checked has been rewritten by then."""
    monkeypatch.setenv("MAM_BROKER_PROTOCOL", "3.1.1")
    job_id, news = submit(fleet, expected_artifacts=["proof.txt"]), []
    topic = f"python/mqtt/jobs/{job_id}/events"
    with relaying(fleet, news):
        until(lambda: news)
        remote.subscribe([topic], SECONDS)
        report(fleet._access.context, fleet.caller, job_id, "started")
        publish(remote, topic, signed(fleet, job_id, "completed", 5))
        received = [json.loads(message.payload) for message in receive(remote, 2)]
        assert [event["data"].get("checking") for event in received] == [None, True]
        # An echo of our own messages would arrive before this event.
        publish(remote, topic, signed(fleet, job_id, "progress", 6, "last"))
        until(lambda: ("progress", "last") in log_of(fleet, job_id))
    assert [name for name, _ in log_of(fleet, job_id)] == ["registered", "started", "checking", "progress"]


def test_a_record_from_elsewhere_names_no_broker(fleet, remote) -> None:
    """A repository can contain a record: mam sends nothing, and no password, to the broker in it."""
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
    """The broker is stopped for longer than the keepalive: both ends notice, and reconnect."""
    monkeypatch.delenv("MAM_BROKER")
    settings = f'[broker]\nurl = "{mosquitto.url()}"\nkeepalive = 1\n'
    (home / ".config" / "mam" / "config.toml").write_text(settings, encoding="utf-8")
    job_id, news = submit(fleet), []
    with relaying(fleet, news), waiting(fleet, job_id) as (received, results):
        report(fleet._access.context, fleet.caller, job_id, "started")
        until(lambda: received, SECONDS)
        mosquitto.signal(signal.SIGSTOP)
        report(fleet._access.context, fleet.caller, job_id, "progress")
        until(
            lambda: any("broker" in document and document["broker"]["state"] == "lost" for document in news),
            SECONDS,
        )
        report(fleet._access.context, fleet.caller, job_id, "completed")
        mosquitto.signal(signal.SIGCONT)
        until(lambda: results, SECONDS)
    assert sorted(event["seq"] for event in received) == [1, 2, 3]


def test_somebody_elsewhere_believes_no_forged_end(fleet, remote, until) -> None:
    job_id, other_job = submit(fleet), submit(fleet)
    publish(
        remote,
        f"python/mqtt/jobs/{job_id}/status",
        signed(fleet, other_job, "completed", 1).replace(other_job, job_id),
        retain=True,
    )
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    token = {job_id: find.token_of(fleet._access.context, job_id)}
    with pytest.raises(TimedOut):
        wait_remote.wait(
            fleet._access.context, brokers.find(fleet._access.context), token, print, timeout=1.0
        )
    assert any("token did not sign" in text for text in warnings)


def test_jobs_of_others_on_the_same_broker_leave_no_trace(fleet, remote, until) -> None:
    job_id = submit(fleet)
    news: list[dict] = []
    with relaying(fleet, news):
        until(lambda: news)
        publish(remote, "python/mqtt/jobs/ffffffff/events", "whatever")
        publish(remote, "python/mqtt/jobs/../etc/events", "whatever")
        publish(remote, f"python/mqtt/jobs/{job_id}/events", signed(fleet, job_id, "completed", 1))
        until(lambda: fleet.jobs.status(job_id)["status"] == "completed")
    assert not [entry for entry in fleet.sessions.log() if entry["verb"] == "job event"]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_killed_in_the_middle_of_500_events(fleet, mosquitto, until, monkeypatch, protocol) -> None:
    """All of them are applied at the other end, once each, though the broker forgets what it acknowledged."""
    monkeypatch.setenv("MAM_BROKER_PROTOCOL", protocol)
    job_id, count = submit(fleet), 500
    token = find.token_of(fleet._access.context, job_id)

    def record(first, last):
        """Record events as `job event` does, without publishing them."""
        from mam.app.jobs import ledger_writer

        def work(transaction):
            for number in range(first, last):
                job = jobs.find(transaction, job_id)
                name = "completed" if number == count else "progress"
                ledger_writer.report(transaction, job, name, token, str(number), data={})

        fleet._access.context.registry.note(work)

    with relaying(fleet), waiting(fleet, job_id) as (received, results):
        for first in range(1, count, 100):
            record(first, first + 100 if first + 100 < count else count)
            until(lambda first=first: len(received) >= first - 1, SECONDS)
            mosquitto.kill()
            record(count, count + 1) if first + 100 > count else None
            mosquitto.start()
        until(lambda: results and is_published(fleet), SECONDS * 2)
    assert sorted(event["seq"] for event in received) == list(range(1, count + 1))
    assert results[0]["status"] == "completed"


@pytest.mark.slow
def test_500_events_from_elsewhere_and_a_broker_that_is_killed(fleet, mosquitto, until) -> None:
    """The other direction: a sender that repeats unacknowledged events loses none."""
    job_id, count = submit(fleet), 500
    payloads = [signed(fleet, job_id, "progress", number, str(number)) for number in range(1, count)]
    payloads.append(signed(fleet, job_id, "completed", count, str(count)))
    topic = f"python/mqtt/jobs/{job_id}/events"
    sender = Connection(brokers.find(fleet._access.context), PASSWORDS["mam"], role="test")

    def seqs():
        entries = fleet._access.context.registry.peek(
            lambda transaction: jobs.entries(transaction, job_id), []
        )
        return sorted(entry.document["seq"] for entry in entries if entry.document["seq"])

    def send(batch):
        sender.open(SECONDS)
        sender.finish([sender.publish(topic, payload) for payload in batch], SECONDS)

    news: list[dict] = []
    with relaying(fleet, news):
        until(lambda: news)
        send(payloads[:250])
        until(lambda: len(seqs()) > 20, SECONDS)
        mosquitto.kill()
        mosquitto.start()
        until(
            lambda: (
                [document["broker"]["state"] for document in news if "broker" in document].count("connected")
                == 2
            )
        )
        # What the broker had acknowledged and lost is what the sender's own outbox sends again.
        send(payloads)
        until(lambda: len(seqs()) == count, SECONDS * 3)
    sender.close()
    assert seqs() == list(range(1, count + 1))
    assert fleet.jobs.status(job_id)["status"] == "completed"


def test_a_thread_that_was_told_to_end_may_still_speak(fleet) -> None:
    """The thread ends slowly after its broker is out of use: its pipe stays open until then."""
    gate = threading.Event()

    class Slow:
        tell = None

        def run(self, read):
            os.read(read, 1)
            gate.wait(SECONDS)
            self.tell({"broker": {"address": "x", "state": "lost"}})

    news, slow = [], Slow()
    pool = RelayPool(fleet._access.context, fleet.caller, news.append)
    slow.tell = pool._queue
    thread = relay_pool._Thread(slow)
    pool._running["x"] = thread
    pool.tick()
    pool.close()
    gate.set()
    assert thread.join(SECONDS)
    pool.tick()
    assert news == [{"broker": {"address": "x", "state": "lost"}}]
    pool.close()
    with pytest.raises(OSError):
        os.fstat(pool._write)


def test_e11_honest_events_arrive_beside_forged_ones(fleet, remote, until):
    job_id, other = submit(fleet), submit(fleet)
    news = []
    with relaying(fleet, news):
        until(lambda: any("broker" in document for document in news))
        topic = f"python/mqtt/jobs/{job_id}/events"
        for number in range(300):
            event = events.make(job_id, "progress", seq=1, attempt=1, timestamp="2026-11-15T08:00:00Z")
            forged = events.sign({**event, "detail": f"forged {number}"}, "f" * 64)
            remote.publish(topic, events.write(forged))
        publish(remote, topic, signed(fleet, job_id, "progress", 1, "honest"))
        publish(remote, f"python/mqtt/jobs/{other}/events", signed(fleet, other, "progress", 1, "honest"))
        until(lambda: ("progress", "honest") in log_of(fleet, other))
        until(lambda: ("progress", "honest") in log_of(fleet, job_id))
    dropped = [detail for name, detail in log_of(fleet, job_id) if name == "dropped"]
    assert len(dropped) == 11, "ten have an entry of their own, and the others are counted in one"
    assert dropped[-1].startswith("290 further events were refused")
