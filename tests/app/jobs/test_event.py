"""Events of jobs: recorded once, refused with a trace, shown in files, and passed to waiting processes."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

import mam
from mam.adapters.store import incarnation
from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs, outbox
from mam.app.jobs import event as event_verb
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import token_of
from mam.app.jobs.new_job import new_id, record_job
from mam.core import job_event as events
from mam.core.errors import EventRefused, JobNotFound, NotAllowed, TimedOut, Usage


@pytest.fixture
def fleet(quick_path, home):
    with mam.open(str(quick_path)) as opened:
        yield opened


@pytest.fixture
def job(fleet):
    return record_job(fleet._access.context, fleet.caller, new_id(), "do it").id


def signed(fleet, job, name="progress", seq=1, attempt=1, token=None, **data):
    event = events.make(
        job, name, seq=seq, attempt=attempt, timestamp="2026-11-15T08:00:00Z", detail="d", data=data
    )
    return events.write(events.sign(event, token or token_of(fleet._access.context, job)))


def names(fleet, job):
    return [entry["event"] for entry in fleet.jobs.logs(job)["events"]]


def test_from_start_to_end(fleet, job):
    for name in ("started", "permission_required", "progress"):
        outcome = fleet.jobs.event(job, name, detail="x")
        assert (outcome["status"], outcome["event"]["event"]) == ("running", name)
    assert fleet.jobs.event(job, "completed", detail="all of it")["status"] == "completed"
    record = fleet.jobs.status(job)
    assert (record["terminal_event"], record["terminal_detail"]) == ("completed", "all of it")
    assert names(fleet, job) == ["registered", "started", "permission_required", "progress", "completed"]
    assert [entry["seq"] for entry in fleet.jobs.logs(job)["events"]] == [0, 1, 2, 3, 4]


def test_what_was_said_is_signed(fleet, job):
    event = fleet.jobs.event(job, "progress", detail="é", data={"n": 1, "by": "somebody"})["event"]
    assert events.is_signed(event, token_of(fleet._access.context, job))
    assert event["data"]["by"] == "user"


@pytest.mark.promise("P33")
def test_after_the_end_nothing_counts(fleet, job):
    fleet.jobs.event(job, "error", detail="no")
    for name in ("completed", "error", "progress"):
        with pytest.raises(EventRefused):
            fleet.jobs.event(job, name)
    assert fleet.jobs.status(job)["status"] == "error"
    assert names(fleet, job)[-3:] == ["dropped"] * 3


@pytest.mark.promise("P34")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order_and_twice(fleet, job, order):
    payloads = [
        signed(fleet, job, name, seq)
        for seq, name in enumerate(("started", "progress", "permission_required", "completed"), 1)
    ]
    first = [fleet.jobs.take_in(payloads[index], job=job)["verdict"] for index in order]
    again = [fleet.jobs.take_in(payloads[index], job=job)["verdict"] for index in order]
    assert set(first) <= {"applied", "late"}
    assert set(again) == {"duplicate"}
    assert fleet.jobs.status(job)["status"] == "completed"
    assert sorted(names(fleet, job)) == sorted(
        ["registered", "started", "progress", "permission_required", "completed"]
    )


@pytest.mark.promise("P34")
def test_forged_events_are_refused_and_logged(fleet, job):
    other_job = record_job(fleet._access.context, fleet.caller, new_id(), "another").id
    genuine = json.loads(signed(fleet, job))
    fleet.jobs.take_in(signed(fleet, job, seq=7), job=job)
    forged = {
        "another job's token": signed(
            fleet, job, "completed", token=token_of(fleet._access.context, other_job)
        ),
        "a guessed token": signed(fleet, job, "completed", token="0" * 64),
        "no signature": json.dumps({**genuine, "data": {"attempt": 1}}),
        "an empty signature": json.dumps({**genuine, "data": {**genuine["data"], "hmac_sig": ""}}),
        "a changed event": json.dumps({**genuine, "event": "completed"}),
        "a changed number": json.dumps({**genuine, "seq": 2}),
        "a changed attempt": json.dumps({**genuine, "data": {**genuine["data"], "attempt": 2}}),
        "a changed detail": json.dumps({**genuine, "detail": "forged"}),
        "an older attempt": signed(fleet, job, attempt=0),
        "an attempt to come": signed(fleet, job, "completed", attempt=2),
        "a number used before": signed(fleet, job, "started", seq=7),
        "another job's event": signed(fleet, other_job, "completed"),
        "another job's name": json.dumps({**genuine, "job_id": other_job}),
        "not JSON": "completed",
        "a list": "[]",
        "another schema": json.dumps({**genuine, "schema_version": 2}),
        "too large": json.dumps({**genuine, "detail": "x" * 70000}),
        "too deep": json.dumps({**genuine, "data": json.loads('{"x":' * 40 + "1" + "}" * 40)}),
        "a key twice": signed(fleet, job).replace('"seq":1', '"seq":1,"seq":1', 1),
        "an event of the log": json.dumps({**genuine, "event": "cancelled"}),
        "a number that leaves none for the next": signed(fleet, job, seq=events.LAST_SEQ),
        "a field too many": json.dumps({**genuine, "status": "completed"}),
    }
    before = fleet.jobs.status(job)
    for case, payload in forged.items():
        outcome = fleet.jobs.take_in(payload, job=job)
        assert outcome["verdict"] == "refused", case
        assert outcome["reason"], case
    after = fleet.jobs.status(job)
    assert (after["status"], after["last_seq"]) == (before["status"], before["last_seq"])
    assert fleet.jobs.status(other_job)["status"] == "pending"
    dropped = [entry for entry in fleet.jobs.logs(job)["events"] if entry["event"] == "dropped"]
    assert len(dropped) == len(forged) >= 20
    assert all(entry["detail"] for entry in dropped)
    assert fleet.jobs.event(job, "completed")["status"] == "completed"


def test_whatever_number_is_taken_in_our_next_event_can_be_read_elsewhere(fleet, job):
    assert fleet.jobs.take_in(signed(fleet, job, seq=events.HIGHEST_GIVEN), job=job)["verdict"] == "applied"
    last = fleet.jobs.event(job, "completed")["event"]
    assert events.parse(events.write(last), job)["seq"] == events.HIGHEST_GIVEN + 1


def test_a_replay_after_the_end_changes_nothing(fleet, job):
    payload = signed(fleet, job, "progress", 1)
    fleet.jobs.take_in(payload, job=job)
    fleet.jobs.event(job, "completed")
    assert fleet.jobs.take_in(payload, job=job)["verdict"] == "duplicate"
    assert fleet.jobs.take_in(signed(fleet, job, "progress", 9), job=job)["verdict"] == "refused"
    assert fleet.jobs.status(job)["status"] == "completed"


def test_what_is_published_names_the_incarnation_and_one_of_before_a_restore_is_refused(fleet, job):
    context = fleet._access.context
    assert "incarnation" not in fleet.jobs.event(job, "progress")["event"]["data"], "it is not published"
    broker = {"host": "127.0.0.1", "port": 1}
    other = record_job(context, fleet.caller, new_id(), "do it", broker=broker, topic_prefix="x").id
    event = fleet.jobs.event(other, "progress", detail="old", data={"incarnation": "f" * 28})["event"]
    before = event["data"]["incarnation"]
    assert before == context.registry.peek(incarnation.current, None) != "f" * 28
    assert fleet.jobs.take_in(events.write(event), job=other)["verdict"] == "duplicate"
    renewed = context.registry.note(incarnation.renew)
    assert fleet.jobs.event(other, "progress")["event"]["data"]["incarnation"] == renewed
    outcome = fleet.jobs.take_in(signed(fleet, other, seq=7, incarnation=before), job=other)
    assert outcome["reason"] == "it was published before the database was restored"
    assert fleet.jobs.take_in(signed(fleet, other, seq=7), job=other)["verdict"] == "applied"


def test_a_flood_of_forged_events_does_not_fill_the_log(fleet, job):
    for _ in range(130):
        fleet.jobs.take_in("{}", job=job)
    assert names(fleet, job).count("dropped") == 100


def test_an_event_of_no_job_is_in_the_log_of_the_root(fleet, job):
    assert fleet.jobs.take_in("{}")["verdict"] == "refused"
    assert fleet.jobs.take_in("{}", job="00000000")["verdict"] == "refused"
    assert [entry["verb"] for entry in fleet.sessions.log()][-2:] == ["job event", "job event"]


def test_retained_messages_are_echoes(fleet, job):
    from mam.app.jobs.event import take_in

    outcome = take_in(
        fleet._access.context, fleet.caller, signed(fleet, job, "completed"), job_id=job, is_retained=True
    )
    assert outcome["verdict"] == "refused"


@pytest.mark.promise("P34")
def test_an_older_attempt_is_refused(fleet, job):
    context = fleet._access.context
    context.registry.note(
        lambda transaction: jobs.update(transaction, jobs.find(transaction, job), attempt=2)
    )
    with pytest.raises(EventRefused, match="older attempt"):
        fleet.jobs.event(job, "completed", attempt=1)
    assert fleet.jobs.take_in(signed(fleet, job, "completed"), job=job)["verdict"] == "refused"
    assert fleet.jobs.event(job, "completed", attempt=2)["status"] == "completed"


def test_a_job_that_is_not_there(fleet, job, tmp_path):
    with pytest.raises(JobNotFound):
        fleet.jobs.event("00000000", "started")
    with pytest.raises(JobNotFound):
        fleet.jobs.status("../../etc")
    with pytest.raises(Usage):
        fleet.jobs.event(None, "started")
    with pytest.raises(Usage):
        fleet.jobs.event(job, "cancelled")
    with mam.open(str(tmp_path)) as empty:
        with pytest.raises(JobNotFound):
            empty.jobs.event(job, "started")
        assert not (tmp_path / ".mam").exists()


def test_without_its_token_nothing_is_signed(fleet, job):
    path = Path(fleet._access.context.paths.jobs) / f"{job}.token"
    path.chmod(0o644)
    with pytest.raises(NotAllowed, match="other users can read"):
        fleet.jobs.event(job, "started")
    path.unlink()
    with pytest.raises(NotAllowed, match="token"):
        fleet.jobs.event(job, "started")


def test_the_files_of_the_original(fleet, job):
    fleet.jobs.event(job, "started")
    fleet.jobs.event(job, "completed", detail="done")
    place, audit = Path(fleet._access.context.paths.jobs), Path(fleet.root) / "delegate_job_logs" / job
    files = [place / f"{job}.json", place / f"{job}.events.log", place / f"{job}.token"]
    files += [audit / name for name in ("meta.json", "events.ndjson", "status.json")]
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    record = json.loads(files[0].read_text(encoding="utf-8"))
    assert (record["job_id"], record["status"], record["prompt"]) == (job, "completed", "do it")
    lines = [json.loads(line) for line in files[4].read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["registered", "started", "completed"]
    token = token_of(fleet._access.context, job)
    for path in (*place.iterdir(), *audit.iterdir()):
        assert path.suffix == ".token" or token not in path.read_text(encoding="utf-8"), path


def test_files_that_were_lost_or_cut_are_whole_again(fleet, job):
    place, audit = Path(fleet._access.context.paths.jobs), Path(fleet.root) / "delegate_job_logs" / job
    fleet.jobs.event(job, "started")
    log = place / f"{job}.events.log"
    log.write_bytes(log.read_bytes()[:-20])
    (audit / "events.ndjson").unlink()
    (place / f"{job}.json").unlink()
    fleet.jobs.event(job, "progress")
    for path in (log, audit / "events.ndjson"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [line["event"] for line in lines] == ["registered", "started", "progress"]
    assert (place / f"{job}.json").exists()


def test_files_that_cannot_be_written_stop_nothing(fleet, job):
    warnings = []
    fleet.on_warning(warnings.append)
    Path(fleet._access.context.paths.jobs, ".lock").unlink()
    Path(fleet._access.context.paths.jobs, ".lock").mkdir()
    assert fleet.jobs.event(job, "started")["status"] == "running"
    assert job in warnings[0]


def test_somebody_who_holds_the_files_and_sleeps_holds_up_no_report(fleet, job, monkeypatch):
    monkeypatch.setattr(job_files, "_PATIENCE", 0.2)
    warnings = []
    fleet.on_warning(warnings.append)
    with Path(fleet._access.context.paths.jobs, ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert fleet.jobs.event(job, "started")["status"] == "running"
    assert "not up to date" in warnings[0]
    fleet.jobs.event(job, "progress")
    log = Path(fleet._access.context.paths.jobs, f"{job}.events.log").read_text(encoding="utf-8")
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["registered", "started", "progress"]


def test_an_audit_folder_that_cannot_be_written_keeps_no_record_back(fleet, job, tmp_path):
    warnings = []
    fleet.on_warning(warnings.append)
    audits = Path(fleet._access.context.paths.root, "delegate_job_logs")
    shutil.rmtree(audits)
    audits.symlink_to(tmp_path)
    fleet.jobs.event(job, "started")
    place = Path(fleet._access.context.paths.jobs)
    assert json.loads((place / f"{job}.json").read_text(encoding="utf-8"))["status"] == "running"
    assert "started" in (place / f"{job}.events.log").read_text(encoding="utf-8")
    assert "symbolic link" in warnings[0]
    assert not (tmp_path / job).exists()


def test_a_record_of_the_original_goes_on_here(fleet):
    fleet.init()
    place = Path(fleet._access.context.paths.jobs)
    place.mkdir(parents=True)
    old = {
        "schema_version": 1,
        "job_id": "1f00ab42",
        "status": "running",
        "created_at": "2026-06-20T10:00:00Z",
        "updated_at": "2026-06-20T10:00:00Z",
        "prompt": "old work",
        "agent": "codex",
        "agent_session": "tmux:codex",
        "last_seq": 2,
        "auth_token": "the old token",
        "expected_artifacts": [],
    }
    (place / "1f00ab42.json").write_text(json.dumps(old), encoding="utf-8")
    line = {
        "schema_version": 1,
        "seq": 2,
        "job_id": "1f00ab42",
        "event": "progress",
        "detail": "",
        "data": {},
    }
    (place / "1f00ab42.events.log").write_text(json.dumps(line) + "\nhalf a li", encoding="utf-8")
    (place / "broken00.json").write_text("{", encoding="utf-8")
    before = (place / "1f00ab42.json").read_bytes()
    assert [(job["job_id"], job["status"]) for job in fleet.jobs.list()] == [("1f00ab42", "running")]
    assert fleet.jobs.status("1f00ab42")["auth_token"] is None
    assert (place / "1f00ab42.json").read_bytes() == before
    event = fleet.jobs.event("1f00ab42", "completed")["event"]
    assert event["seq"] == 3
    assert events.is_signed(event, "the old token")
    assert names(fleet, "1f00ab42") == ["progress", "completed"]
    assert "the old token" not in (place / "1f00ab42.json").read_text(encoding="utf-8")


def test_s002_36_a_record_of_the_original_that_was_taken_in_has_its_audit_folder(fleet):
    fleet.init()
    place = Path(fleet._access.context.paths.jobs)
    place.mkdir(parents=True)
    old = {"schema_version": 1, "job_id": "1f00ab42", "status": "running"}
    old |= {"logs_dir": "/elsewhere", "auth_token": "the old token"}
    (place / "1f00ab42.json").write_text(json.dumps(old), encoding="utf-8")
    line = {"schema_version": 1, "seq": 2, "job_id": "1f00ab42", "event": "progress", "data": {}}
    (place / "1f00ab42.events.log").write_text(json.dumps(line) + "\n", encoding="utf-8")
    fleet.jobs.event("1f00ab42", "completed")
    audit = Path(fleet.jobs.logs("1f00ab42")["directory"])
    assert audit == Path(fleet.root, "delegate_job_logs", "1f00ab42")
    assert sorted(path.name for path in audit.iterdir()) == ["events.ndjson", "meta.json", "status.json"]
    lines = (audit / "events.ndjson").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["progress", "completed"]
    assert [listed["job_id"] for listed in fleet.jobs.audits()] == ["1f00ab42"]


def test_s002_36_the_audit_folder_is_written_for_a_record_that_an_earlier_version_took_in(fleet, job):
    context = fleet._access.context
    shutil.rmtree(Path(fleet.root, "delegate_job_logs"))
    context.registry.note(
        lambda transaction: jobs.update(transaction, jobs.find(transaction, job), data={"logs_dir": None})
    )
    fleet.jobs.event(job, "completed")
    assert Path(fleet.jobs.logs(job)["directory"], "status.json").exists()


def test_s002_19_started_is_logged_once(fleet, job):
    context = fleet._access.context
    token = token_of(context, job)
    context.registry.note(
        lambda transaction: ledger_writer.report(
            transaction, jobs.find(transaction, job), "started", token, data={"by": "hook"}
        )
    )
    outcome = fleet.jobs.event(job, "started")
    assert (outcome["status"], outcome["event"]["event"]) == ("running", "started")
    assert names(fleet, job) == ["registered", "started"]
    fleet.jobs.event(job, "started", detail="with something to say")
    context.registry.note(
        lambda transaction: jobs.update(transaction, jobs.find(transaction, job), attempt=2)
    )
    fleet.jobs.event(job, "started")
    assert names(fleet, job) == ["registered", "started", "started", "started"]


def test_what_is_to_be_published(fleet):
    broker = {"host": "127.0.0.1", "port": 1883}
    job = record_job(fleet._access.context, fleet.caller, new_id(), "x", broker=broker).id
    fleet.jobs.event(job, "started")
    fleet.jobs.event(job, "completed")
    rows = fleet._access.context.registry.peek(outbox.waiting, [])
    assert [(row.topic, row.retain, json.loads(row.payload)["event"]) for row in rows] == [
        ("events", False, "started"),
        ("events", False, "completed"),
        ("status", True, "completed"),
    ]
    fleet._access.context.registry.note(
        lambda transaction: outbox.set_published(transaction, [row.seq for row in rows])
    )
    assert fleet._access.context.registry.peek(outbox.waiting, []) == []


def test_e7_big_data_is_stored_once(fleet):
    context = fleet._access.context
    broker = {"host": "127.0.0.1", "port": 1883}
    job = record_job(context, fleet.caller, new_id(), "x", broker=broker).id
    big = {"output": "x" * 50_000, "short": "kept"}
    fleet.jobs.event(job, "progress", data=big)
    fleet.jobs.event(job, "progress", detail="small", data={"note": "here"})
    for path in (
        Path(context.paths.jobs, f"{job}.events.log"),
        Path(context.paths.root, "delegate_job_logs", job, "events.ndjson"),
    ):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert path.stat().st_size < 5_000
        assert [line["event"] for line in lines] == ["registered", "progress", "progress"]
        omitted = lines[1]["data"].pop("omitted")
        assert omitted["bytes"] > 50_000
        assert omitted["see"] == f"mam job logs {job}"
        assert sorted(lines[1]["data"]) == ["attempt", "by", "hmac_sig", "incarnation", "short"]
        assert lines[2]["data"]["note"] == "here"
    shown = fleet.jobs.logs(job)["events"][1]
    assert shown["data"]["output"] == big["output"]

    published = context.registry.peek(outbox.waiting, [])
    assert len(published) == 3
    context.registry.note(
        lambda transaction: outbox.set_published(transaction, [row.seq for row in published])
    )
    assert context.registry.peek(_outbox_payloads, []) == [row.payload for row in published[1:]]
    context.registry.note(lambda transaction: outbox.publish_again(transaction, job))
    again = context.registry.peek(outbox.waiting, [])
    assert sorted(row.payload for row in again) == sorted(row.payload for row in published)
    context.registry.note(lambda transaction: outbox.publish_again(transaction, job))
    assert len(context.registry.peek(outbox.waiting, [])) == 3, "nothing is there twice"


def _outbox_payloads(transaction):
    rows = transaction.connection.execute("SELECT payload FROM outbox ORDER BY seq")
    return [payload for (payload,) in rows]


@pytest.mark.starts
def test_who_waits_hears_each_event(fleet, job, until):
    names: list[str] = []

    def wait():
        with mam.open(fleet.root) as other_fleet:
            other_fleet.jobs.wait([job], lambda entry: names.append(entry["event"]), timeout=30)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: fleet.jobs.event(job, "progress") and names)
    fleet.jobs.event(job, "completed")
    thread.join(30)
    assert names[-1] == "completed"


@pytest.mark.starts
def test_waiting_ends_and_the_job_does_not(fleet, job):
    with pytest.raises(TimedOut):
        fleet.jobs.wait([job], timeout=0.05)
    assert fleet.jobs.status(job)["status"] == "pending"
    fleet.jobs.event(job, "error", detail="no")
    (ended_job,) = fleet.jobs.wait([job])
    assert ended_job["status"] == "error"
    assert fleet.jobs.wait() == []


def test_the_folder_of_records(fleet, tmp_path, monkeypatch):
    elsewhere = str(tmp_path / "records")
    job = record_job(fleet._access.context, fleet.caller, new_id(), "x", registry_dir=elsewhere).id
    own = record_job(fleet._access.context, fleet.caller, new_id(), "y").id
    fleet.jobs.event(job, "completed", folder=elsewhere)
    assert Path(elsewhere, f"{job}.json").exists()
    assert [entry["job_id"] for entry in fleet.jobs.list(folder=elsewhere)] == [job]
    assert {entry["job_id"] for entry in fleet.jobs.list()} == {job, own}
    monkeypatch.chdir(tmp_path)
    with mam.open(fleet.root) as again:
        assert again.jobs.status(job)["status"] == "completed"


def _carried(folder, **fields):
    """Write a record that a repository could contain; return its id."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"schema_version": 1, "job_id": "0badcafe", "status": "running", "auth_token": "t" * 64}
    (folder / "0badcafe.json").write_text(json.dumps({**plain, **fields}), encoding="utf-8")
    return "0badcafe"


def test_a_record_that_was_carried_here_runs_nothing(fleet, tmp_path):
    """A file of a repository cannot make mam run, start or write something elsewhere."""
    script, elsewhere = tmp_path / "evil.sh", tmp_path / "elsewhere"
    script.write_text(f"touch {tmp_path}/ran\n", encoding="utf-8")
    job = _carried(
        Path(fleet.root, ".hermes", "jobs"),
        validate=str(script),
        logs_dir=str(elsewhere),
        type="loop",
        reviewer="practice",
        permissions="skip",
    )
    assert fleet.jobs.event(job, "completed")["status"] == "completed"
    assert not elsewhere.exists()
    assert not (tmp_path / "ran").exists()


def test_odd_records_are_listed_and_cancelled(fleet, tmp_path):
    folder = tmp_path / "odd"
    job = _carried(folder, created_at=5, last_seq=10**30, auth_token="é" * 9, workdir=["x"])
    lines = [{"event": "\ud800", "data": {}}, {"event": "started", "data": {"reason": 1}, "detail": []}]
    log = "".join(json.dumps(entry) + "\n" for entry in lines)
    (folder / f"{job}.events.log").write_text(log, encoding="utf-8")
    own = record_job(fleet._access.context, fleet.caller, new_id(), "x", registry_dir=str(folder)).id
    assert {entry["job_id"] for entry in fleet.jobs.list(folder=str(folder))} == {job, own}
    assert len(fleet.jobs.logs(job, folder=str(folder))["events"]) == 2
    assert fleet.jobs.cancel(job, folder=str(folder))["changed"]
    assert names(fleet, job) == ["started", "cancelled", "error"]


def test_a_pipe_a_link_or_a_folder_in_place_of_a_file_holds_nobody_up(fleet):
    place = Path(fleet._access.context.paths.jobs)
    place.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place / "aaaaaaaa.json")
    (place / "bbbbbbbb.json").mkdir()
    record = {"schema_version": 1, "job_id": "cccccccc", "status": "pending", "prompt": "x"}
    (place / "cccccccc.json").write_text(json.dumps(record), encoding="utf-8")
    (place / "cccccccc.events.log").symlink_to("/dev/zero")
    (place / "dddddddd.json").write_text(json.dumps({**record, "job_id": "dddddddd"}), encoding="utf-8")
    os.mkfifo(place / "dddddddd.events.log")
    assert [entry["job_id"] for entry in fleet.jobs.list()] == ["cccccccc", "dddddddd"]
    assert [fleet.jobs.logs(entry)["events"] for entry in ("cccccccc", "dddddddd")] == [[], []]


def test_a_job_of_another_root_stays_there(fleet, job, tmp_path):
    elsewhere = str(tmp_path / "records")
    job = record_job(fleet._access.context, fleet.caller, new_id(), "x", registry_dir=elsewhere).id
    before = Path(elsewhere, f"{job}.json").read_bytes()
    (tmp_path / "other").mkdir()
    with mam.open(str(tmp_path / "other")) as other_fleet:
        assert other_fleet.jobs.status(job, folder=elsewhere)["status"] == "pending"
        with pytest.raises(NotAllowed, match="belongs to the root"):
            other_fleet.jobs.cancel(job, folder=elsewhere)
    assert Path(elsewhere, f"{job}.json").read_bytes() == before


def test_what_was_recorded_is_told_and_not_what_another_recorded_since(fleet, job, monkeypatch):
    original = event_verb.write_files

    def write_files(context, job_id):
        monkeypatch.setattr(event_verb, "write_files", original)
        fleet.jobs.event(job, "progress", detail="another")

    monkeypatch.setattr(event_verb, "write_files", write_files)
    assert fleet.jobs.event(job, "started", detail="mine")["event"]["detail"] == "mine"


@pytest.mark.parametrize(
    ("data", "reason"),
    [({"a": float("nan")}, "not JSON"), ({"a": "x" * 70_000}, "too large"), ("deep", "nested")],
)
def test_what_would_be_believed_nowhere_is_not_recorded(fleet, job, data, reason):
    if data == "deep":
        data = {}
        for _ in range(5000):
            data = {"a": data}
    with pytest.raises(EventRefused, match=reason):
        fleet.jobs.event(job, "completed", data=data)
    assert fleet.jobs.status(job)["status"] == "pending"


def test_s002_24_the_variable_names_another_folder_for_audit_folders(quick_path, home, tmp_path):
    environ = {**os.environ, "DELEGATE_JOB_LOGS_DIR": str(tmp_path / "logs")}
    with mam.open(str(quick_path), environ=environ) as fleet:
        job = record_job(fleet._access.context, fleet.caller, new_id(), "do it").id
        fleet.jobs.event(job, "completed")
        assert (tmp_path / "logs" / job / "status.json").exists()
        assert [audit["directory"] for audit in fleet.jobs.audits()] == [str(tmp_path / "logs" / job)]
        assert not Path(fleet.root, "delegate_job_logs").exists()
