"""A broker that is away for 5,000 events, and one that is killed again and again: all heard, once each."""

import os
import random
import threading

import pytest
from tests.app.over_broker import submit

import mam
from mam.adapters.store.tables import jobs
from mam.app.brokers import config as brokers
from mam.app.brokers import wait_remote
from mam.app.brokers.relay_both_ways import Relay
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import token_of
from mam.core import caller as callers

SECONDS = 300.0
MANY = 5000


@pytest.fixture
def mosquitto(mosquitto):
    """The broker, which is away until it is started."""
    mosquitto.kill()
    return mosquitto


@pytest.fixture
def fleet(home, quick_path, mosquitto):
    with mam.open(str(quick_path)) as opened:
        opened.init()
        yield opened


@pytest.fixture
def both_ends(fleet):
    """A relay and somebody elsewhere, in threads: start them for a job, and read what was heard."""
    read, write = os.pipe()
    threads = []

    def start(job_id):
        heard, done = [], []
        worlds = [fleet._access.context.for_thread() for _ in range(2)]
        broker, token = brokers.find(fleet._access.context), token_of(fleet._access.context, job_id)
        relay = Relay(worlds[0], callers.user(), broker, lambda _told: None)

        def wait():
            done.extend(wait_remote.wait(worlds[1], broker, {job_id: token}, heard.append, timeout=SECONDS))

        threads.extend([threading.Thread(target=relay.run, args=(read,)), threading.Thread(target=wait)])
        for thread in threads:
            thread.start()
        return heard, done

    yield start
    os.close(write)
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    os.close(read)


def record(fleet, job_id, count, *, ends=False):
    token = token_of(fleet._access.context, job_id)

    def work(draft):
        for number in range(count):
            name = "completed" if ends and number == count - 1 else "progress"
            ledger_writer.report(draft, jobs.find(draft, job_id), name, token, "x" * 400, data={})

    fleet._access.context.registry.note(work)


def test_a_burst_while_the_broker_is_down(fleet, mosquitto, both_ends, until) -> None:
    job_id = submit(fleet)
    heard, done = both_ends(job_id)
    for number in range(10):
        record(fleet, job_id, MANY // 10, ends=number == 9)
    mosquitto.start()
    until(lambda: done, SECONDS)
    assert sorted(event["seq"] for event in heard) == list(range(1, MANY + 1))


@pytest.mark.parametrize("seed", range(3))
def test_a_broker_killed_at_random(fleet, mosquitto, both_ends, until, seed) -> None:
    chance = random.Random(seed)
    job_id = submit(fleet)
    mosquitto.start()
    heard, done = both_ends(job_id)
    for _ in range(20):
        record(fleet, job_id, 50)
        until(lambda: heard, SECONDS)
        threading.Event().wait(chance.random() * 0.3)
        mosquitto.kill()
        mosquitto.start()
    record(fleet, job_id, 1, ends=True)
    until(lambda: done, SECONDS)
    assert sorted(event["seq"] for event in heard) == list(range(1, 1002))
