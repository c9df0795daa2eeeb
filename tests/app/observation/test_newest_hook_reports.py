"""What hooks report: reading verbs leave payloads in the spool; changing verbs and waits take them in."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from tests.waiting import wait_for

from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import evidence, set_aside
from mam.app.context import claims
from mam.app.context.context import Resources
from mam.app.jobs import report_activity
from mam.app.observation import hook_intake, newest_hook_reports
from mam.app.observation.hook_intake import take_in
from mam.app.observation.newest_hook_reports import newest_reports
from mam.core.activity import FRESH_SECONDS
from mam.core.errors import TimedOut

QUICK = ["--speed", "0"]


@pytest.fixture
def session(fleet, until_reported):
    """A session that is idle, and whose own hook has reported: no payload comes but those of the test."""
    session = fleet.sessions.create("practice", name="one", args=QUICK)
    wait_for(session, "idle")
    until_reported(session, "SessionStart")
    return session


def write_payload(fleet, session, event: str, number: int, **more: object) -> Path:
    """Write a payload as the session's own agent would, newer than everything before."""
    spool = Path(fleet._access.context.paths.spool)
    spool.mkdir(exist_ok=True)
    path = spool / f"{session.id}.{session.row['pane']['pid']}.{number:04}.json"
    path.write_text(json.dumps({"hook_event_name": event, **more}), encoding="utf-8")
    return path


def state(fleet) -> dict[str, str]:
    """Return a digest of every file of the root, without what the agent itself writes."""
    folder = Path(fleet._access.context.paths.state)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "spool" and not path.name.endswith("-shm")
    }


READERS = {
    "ls": lambda fleet: fleet.sessions.ls()["sessions"][0]["activity"],
    "status": lambda fleet: fleet.sessions.status("one")["activity"],
    "explain": lambda fleet: fleet.sessions.explain("one")["evidence"],
    "dry run": lambda fleet: fleet.monitor.once(dry_run=True),
    "read": lambda fleet: fleet.sessions.read("one"),
    "log": lambda fleet: fleet.sessions.log("one"),
    "agents": lambda fleet: fleet.agents.list(),
    "inbox": lambda fleet: fleet.messages.inbox("one"),
    "jobs": lambda fleet: fleet.jobs.list(),
    "teams": lambda fleet: fleet.teams.list(),
    "tasks": lambda fleet: fleet.tasks.list(),
}


@pytest.mark.promise("P5")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_reading_verb_writes_nothing(fleet, session, read):
    payload = write_payload(fleet, session, "UserPromptSubmit", 1)
    half = payload.parent / f".{session.id}.5.x.tmp"
    half.write_text("half", encoding="utf-8")
    os.utime(half, (1, 1))
    before = state(fleet)
    read(fleet)
    assert state(fleet) == before
    assert payload.exists() and half.exists()


def test_a_reader_sees_what_waits_in_the_spool(fleet, session):
    write_payload(fleet, session, "UserPromptSubmit", 1)
    report = newest_reports(fleet._access.context, [session.row])[session.id]
    assert report.data["state"] == "working"
    assert ("hook", "UserPromptSubmit") in [
        (item["source"], item["detail"]) for item in fleet.sessions.explain("one")["evidence"]
    ]


def test_the_newest_payload_with_a_state_counts(fleet, session):
    for number, (event, at) in enumerate((("UserPromptSubmit", 100), ("Stop", 90), ("SessionEnd", 110))):
        path = write_payload(fleet, session, event, number)
        when = fleet._access.context.now() + at
        os.utime(path, (when, when))
    context = fleet._access.context.replace(clock=lambda: fleet._access.context.now() + 1000)
    assert newest_reports(context, [session.row])[session.id].data["event"] == "UserPromptSubmit"


INTAKES = {
    "a changing verb": lambda fleet: fleet.sessions.resumable(),
    "wait": lambda fleet: fleet.sessions.wait("one", "text:.", timeout=10),
    "a pass": lambda fleet: fleet.monitor.once(),
}


@pytest.mark.parametrize("change", INTAKES.values(), ids=INTAKES)
def test_other_verbs_take_payloads_in(fleet, session, change):
    payload = write_payload(fleet, session, "UserPromptSubmit", 1)
    half = payload.parent / f".{session.id}.5.x.tmp"
    half.write_text("half", encoding="utf-8")
    os.utime(half, (1, 1))
    change(fleet)
    assert not payload.exists() and not half.exists()
    assert evidence.recorded(fleet._access.context.registry, "hook")[session.id][1]["state"] == "working"


def test_a_wait_for_a_job_takes_in_what_its_agent_reports(fleet):
    job = fleet.jobs.submit("please never report", agent="practice", agent_session="one", args=QUICK)
    session = fleet.sessions.get("one")
    payload = write_payload(fleet, session, "UserPromptSubmit", 1)
    with pytest.raises(TimedOut):
        fleet.jobs.wait([job["job_id"]], timeout=0.1)
    assert not payload.exists()


def test_a_payload_that_cannot_be_read_stays(fleet, session, monkeypatch):
    payload = write_payload(fleet, session, "UserPromptSubmit", 1)
    with monkeypatch.context() as patch:
        patch.setattr(hook_spool.Payload, "data", None)
        take_in(fleet._access.context)
    assert payload.exists()


def test_what_is_taken_in_between_the_listing_and_the_look_is_not_lost(fleet, session, monkeypatch):
    context = fleet._access.context
    write_payload(fleet, session, "UserPromptSubmit", 1)
    listed = hook_spool.pending(context.paths.spool, context.now())
    take_in(context)
    drop_older = evidence.recorded
    calls: list[int] = []

    def recorded(registry, source):
        calls.append(1)
        # The first reading of the record was before the intake.
        return {} if len(calls) == 1 else drop_older(registry, source)

    monkeypatch.setattr(hook_spool, "pending", lambda *_given, **_more: listed)
    monkeypatch.setattr(evidence, "recorded", recorded)
    assert newest_reports(context, [session.row])[session.id].data["state"] == "working"


def test_a_spool_full_of_hooks_without_a_state_is_not_read_to_its_end(fleet, session, monkeypatch):
    for number in range(300):
        write_payload(fleet, session, "SubagentStop", number)
    opened: list[str] = []
    really = hook_spool.Payload.data.fget

    def data(payload):
        opened.append(payload.path)
        return really(payload)

    monkeypatch.setattr(hook_spool.Payload, "data", property(data))
    newest_reports(fleet._access.context, [session.row])
    assert len(set(opened)) == 200


def test_e11_a_reader_reads_a_bounded_part_of_the_spool(fleet, session, monkeypatch) -> None:
    context = fleet._access.context
    take_in(context)
    monkeypatch.setattr(newest_hook_reports, "_MOST_BYTES", 100_000)
    for number in range(100):
        # None of these reports a state, so a reader would go on to the oldest.
        write_payload(fleet, session, "SubagentStop", number, filling="x" * 20_000)
    read: list[int] = []

    def counting(text: bytes) -> dict[str, object]:
        read.append(len(text))
        return parse(text)

    parse = hook_spool._parse
    monkeypatch.setattr(hook_spool, "_parse", counting)
    newest_reports(context, [session.row])
    assert 0 < sum(read) <= 2 * 100_000


def test_e11_a_payload_that_is_too_large_is_removed_unread_and_logged_once(
    fleet, session, monkeypatch
) -> None:
    context = fleet._access.context
    take_in(context)
    monkeypatch.setattr(hook_spool, "LARGEST_PAYLOAD", 10_000)
    large = [
        write_payload(fleet, session, "UserPromptSubmit", number, filling="x" * 20_000) for number in range(3)
    ]
    small = write_payload(fleet, session, "UserPromptSubmit", 3)
    opened: list[str] = []

    def opening(path: str, flags: int) -> int:
        opened.append(path)
        return os.open(path, flags)

    monkeypatch.setattr(hook_spool, "_open_regular", opening)
    take_in(context)
    assert opened == [str(small)]
    assert not small.exists() and not any(path.exists() for path in large)
    entries = [entry for entry in fleet.sessions.log() if entry["verb"] == "hook"]
    assert [(entry["detail"]["payloads"], entry["session"]) for entry in entries] == [(3, "one")]
    assert newest_reports(context, [session.row])[session.id].data["event"] == "UserPromptSubmit"


def test_e11_the_intake_works_in_bounded_batches(fleet, session, monkeypatch) -> None:
    context = fleet._access.context
    take_in(context)
    monkeypatch.setattr(hook_intake, "_BYTES_OF_BATCH", 50_000)
    for number in range(20):
        write_payload(fleet, session, "UserPromptSubmit", number, filling="x" * 20_000)
    batches: list[int] = []
    record = hook_intake._record

    def counting(context, transaction, reports, rows) -> None:
        batches.append(len(reports))
        record(context, transaction, reports, rows)

    monkeypatch.setattr(hook_intake, "_record", counting)
    take_in(context)
    assert batches == [2] * 10
    assert not hook_spool.pending(context.paths.spool)


@pytest.mark.parametrize("days", [-1, 1])
@pytest.mark.parametrize("taken_in", [False, True], ids=["in the spool", "taken in"])
def test_e6_a_clock_that_jumps_freezes_no_activity(fleet, session, days, taken_in) -> None:
    context = fleet._access.context
    take_in(context)
    jump = days * 86400.0
    now = context.now() + 10
    context.registry.note(
        lambda transaction: evidence.record(
            transaction.connection, session.id, "hook", now, {"state": "working", "event": "old"}, now
        )
    )
    moved = context.replace(
        clock=lambda: now + jump + 30,
        resources=Resources(context.paths, context.environ, lambda: now + jump + 30),
    )
    try:
        # The old report is not fresh any more: what is read now wins.
        old = newest_reports(moved, [session.row])[session.id]
        assert moved.now() - old.at > FRESH_SECONDS
        path = write_payload(fleet, session, "Stop", 9001)
        os.utime(path, (now + jump + 20, now + jump + 20))
        if taken_in:
            take_in(moved)
            assert not path.exists()
        report = newest_reports(moved, [session.row])[session.id]
        assert (report.data["state"], report.at) == ("idle", now + jump + 20)
    finally:
        moved.close()


@pytest.mark.parametrize("taken_in", [False, True], ids=["in the spool", "taken in"])
def test_e6_a_payload_from_the_future_hides_no_newer_one(fleet, session, taken_in) -> None:
    """It was written before the clock was set back."""
    context = fleet._access.context
    take_in(context)
    now = context.now() + 100
    later = context.replace(
        clock=lambda: now, resources=Resources(context.paths, context.environ, lambda: now)
    )
    try:
        for number, (event, at) in enumerate([("UserPromptSubmit", now + 3600), ("Stop", now - 20)]):
            os.utime(write_payload(fleet, session, event, number), (at, at))
        if taken_in:
            take_in(later)
        report = newest_reports(later, [session.row])[session.id]
        assert (report.data["state"], report.at) == ("idle", now - 20)
    finally:
        later.close()


@pytest.mark.promise("P23")
def test_e2_a_payload_on_which_mam_fails_is_removed_and_hides_no_other(fleet, session, monkeypatch) -> None:
    kind = type(fleet._access.context.kind("practice"))
    real = kind.read_hook

    def read_hook(self, payload):
        if payload.get("is_bad"):
            raise KeyError("what nobody foresaw")
        return real(self, payload)

    monkeypatch.setattr(kind, "read_hook", read_hook)
    other = write_payload(fleet, session, "UserPromptSubmit", 1)
    bad = [write_payload(fleet, session, "Stop", number, is_bad=True) for number in (2, 3)]
    assert fleet.sessions.ls()["sessions"][0]["activity"] == "working"
    take_in(fleet._access.context)
    assert not any(path.exists() for path in (other, *bad))
    assert evidence.recorded(fleet._access.context.registry, "hook")[session.id][1]["state"] == "working"
    entries = [entry for entry in fleet.sessions.log("one") if entry["verb"] == "hook"]
    assert [entry["reason"] for entry in entries] == [
        "a payload was removed because mam failed on it: KeyError: 'what nobody foresaw'"
    ]
    (item,) = fleet._access.context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key) == ("payload", session.id)


def test_e2_a_broken_job_holds_up_no_payload(fleet, session, monkeypatch) -> None:
    context = fleet._access.context
    row = {**session.row, "delegate_job_id": "1f00ab42"}
    claims.change(context, lambda transaction: transaction.put(row))

    def report(*_arguments, **_options):
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr(report_activity, "report_activity", report)
    payload = write_payload(fleet, session, "UserPromptSubmit", 1)
    take_in(context)
    assert not payload.exists()
    assert evidence.recorded(context.registry, "hook")[session.id][1]["state"] == "working"
    (item,) = context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key) == ("job", "1f00ab42")
