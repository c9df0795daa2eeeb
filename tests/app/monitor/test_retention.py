"""What has ended long ago is removed; what is open, held or parked stays, and so does what others wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import mam
from mam.adapters.store import database
from mam.adapters.store.tables import jobs, messages, set_aside
from mam.app.jobs.forget import forget
from mam.app.jobs.new_job import new_id, record_job
from mam.app.jobs.write_job_files import write_files
from mam.app.monitor import doctor, retention
from mam.app.monitor.retention import remove_some
from mam.core import caller as callers
from mam.core.message_rules import NOT_TRIED

OLD = 100 * 86400.0


@pytest.fixture
def fleet(initialised_fleet):
    return initialised_fleet


@pytest.fixture
def context(fleet):
    return fleet._access.context


def job(fleet, status: str, age: float = OLD) -> str:
    context = fleet._access.context
    job_id = record_job(context, fleet.caller, new_id(), "do it").id
    write_files(context, job_id)
    context.registry.note(
        lambda transaction: transaction.connection.execute(
            "UPDATE jobs SET status=?, updated_at=? WHERE id=?", (status, context.now() - age, job_id)
        )
    )
    return job_id


def message(context, state: str, age: float = OLD, text: str = "words") -> str:
    fields = {
        "id": messages.new_id(),
        "session_id": "s_00000001",
        "sender": "user",
        "text": text,
        "is_command": False,
        "wanted": "ready",
        "state": state,
        "reason": NOT_TRIED,
        "conversation": None,
    }

    def work(transaction) -> None:
        messages.add(transaction, fields)
        transaction.connection.execute(
            "UPDATE messages SET changed_at=? WHERE id=?", (context.now() - age, fields["id"])
        )

    context.registry.note(work)
    return str(fields["id"])


def one(context, query: str):
    return context.registry.peek(
        lambda transaction: transaction.connection.execute(query).fetchone()[0], None
    )


def files_of(context, job_id: str) -> list[str]:
    folders = (Path(context.paths.jobs), Path(context.paths.root) / "delegate_job_logs")
    return [path.name for folder in folders for path in folder.iterdir() if path.name.startswith(job_id)]


@pytest.mark.promise("P15")
def test_e7_only_jobs_that_ended_long_ago_are_removed_with_their_files(fleet, context) -> None:
    old = [job(fleet, status) for status in ("completed", "error", "cancelled")]
    kept = [job(fleet, status) for status in ("pending", "running", "checking", "parked")]
    kept.append(job(fleet, "completed", 86400.0))
    assert all(files_of(context, job_id) for job_id in old)
    assert not remove_some(context)
    assert not any(files_of(context, job_id) for job_id in old)
    assert all(files_of(context, job_id) for job_id in kept)
    left = {record["job_id"] for record in fleet.jobs.list()}
    assert left == set(kept)
    for table in ("job_events", "job_prompts"):
        assert one(context, f"SELECT count(DISTINCT job_id) FROM {table}") == len(kept)


def test_e7_jobs_are_bounded_in_size(fleet, context, monkeypatch) -> None:
    first, second = job(fleet, "completed", 7300.0), job(fleet, "completed", 7200.0)
    young = job(fleet, "completed", 60.0)
    monkeypatch.setattr(retention, "MOST_JOB_BYTES", retention._bytes_of(context, _find(context, second)))
    remove_some(context)
    assert {record["job_id"] for record in fleet.jobs.list()} == {second, young}
    assert not files_of(context, first)


def _find(context, job_id: str):
    return context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)


def test_e7_a_link_in_the_place_of_an_audit_folder_is_not_followed(fleet, context, tmp_path) -> None:
    job_id = job(fleet, "completed")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine", encoding="utf-8")
    audit = Path(context.paths.root) / "delegate_job_logs" / job_id
    shutil.rmtree(audit)
    audit.symlink_to(precious)
    remove_some(context)
    assert (precious / "file").exists()
    assert [record["job_id"] for record in fleet.jobs.list()] == [job_id]


def test_jobs_that_cannot_be_removed_keep_no_others(fleet, context, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(retention, "_JOBS", 3)
    stuck = [job(fleet, "completed", OLD + 100 - number) for number in range(4)]
    for job_id in stuck:
        audit = Path(context.paths.root) / "delegate_job_logs" / job_id
        shutil.rmtree(audit)
        audit.symlink_to(tmp_path)
    for _ in range(4):
        job(fleet, "completed")
    assert remove_some(context)
    assert len(fleet.jobs.list()) == 5, "one step removes three"
    assert not remove_some(context)
    assert {record["job_id"] for record in fleet.jobs.list()} == set(stuck)


def test_e7_the_log_keeps_its_numbers(fleet, context) -> None:
    def add(transaction) -> None:
        for _ in range(3):
            transaction.log("user", "test", None)

    context.registry.note(add)
    newest = one(context, "SELECT max(seq) FROM log")
    context.registry.note(
        lambda transaction: transaction.connection.execute("UPDATE log SET at=?", (context.now() - OLD,))
    )
    assert not remove_some(context)
    assert one(context, "SELECT count(*) FROM log") == 0
    context.registry.note(lambda transaction: transaction.log("user", "test", None))
    assert one(context, "SELECT min(seq) FROM log") == newest + 1


def test_e7_the_log_is_bounded_and_removed_in_small_steps(fleet, context, monkeypatch) -> None:
    monkeypatch.setattr(retention, "MOST_LOG_ENTRIES", 5)
    monkeypatch.setattr(retention, "_ENTRIES", 10)

    def add(transaction) -> None:
        for _ in range(35):
            transaction.log("user", "test", None)

    context.registry.note(add)
    steps = 1
    while remove_some(context):
        steps += 1
    assert steps >= 3
    assert one(context, "SELECT count(*) FROM log") == 5


def test_e7_items_that_were_set_aside_are_forgotten_with_the_log(context) -> None:
    def work(transaction) -> None:
        for key, at in (("old", transaction.now - OLD), ("young", transaction.now)):
            set_aside.add(transaction, "payload", key, "KeyError", "0.2.0", {})
            transaction.connection.execute("UPDATE set_aside SET at=? WHERE key=?", (at, key))

    context.registry.note(work)
    remove_some(context)
    assert [item.key for item in context.registry.peek(set_aside.listed, [])] == ["young"]


@pytest.mark.promise("P15")
def test_e7_settled_messages_and_their_mail_are_removed(fleet, context, quick_path, monkeypatch) -> None:
    gone = [message(context, state) for state in ("submitted", "failed", "unconfirmed", "queued")]
    kept = [message(context, state) for state in ("held", "parked")]
    kept.append(message(context, "submitted", 60.0))
    mail = Path(quick_path) / ".mam-mail"
    mail.mkdir()
    names = [*(f"{message_id}.md" for message_id in [*gone, *kept]), "notes.md"]
    for name in names:
        (mail / name).write_text("words", encoding="utf-8")
        os.utime(mail / name, (context.now() - OLD,) * 2)
    rows = [{"id": "s_00000001", "name": "one", "workspace": str(quick_path)}]
    monkeypatch.setattr(
        type(context.registry), "view_to_show", lambda _self: type("View", (), {"rows": rows})()
    )
    remove_some(context)
    assert {entry[0] for entry in context.registry.peek(messages.settled, [])} == {kept[-1]}
    assert context.registry.peek(messages.unended_ids, set()) == set(kept[:2])
    assert {path.name for path in mail.iterdir()} == {f"{kept[0]}.md", f"{kept[1]}.md", "notes.md"}


def test_e7_states_that_were_kept_aside_are_removed_after_a_time(context) -> None:
    old, new = (kept_state(context, context.root_id, age) for age in (OLD, 60.0))
    strange = kept_state(context, "mine", OLD)
    remove_some(context)
    assert (old.exists(), new.exists(), strange.exists()) == (False, True, True)


def kept_state(context, root_id: str, age: float) -> Path:
    name = f"{root_id}-2026-01-01T000000Z-{os.urandom(2).hex()}"
    folder = Path(context.user_state.folder) / "kept" / name
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "state.db").write_text("x", encoding="utf-8")
    os.utime(folder, (context.now() - age,) * 2)
    return folder


GONE = "0" * 16


@pytest.fixture
def other_id(tmp_path):
    """The id of another root, which is still there."""
    with mam.open(str(tmp_path)) as other:
        other.init()
        return other._access.context.root_id


def of_user(home, value: str) -> None:
    """Set `keep_jobs` in the user's own file."""
    file = home / ".config" / "mam" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"keep_jobs = {value}\n", encoding="utf-8")
    file.chmod(0o600)


def test_states_of_other_roots_are_kept_by_their_own_settings(context, home, other_id) -> None:
    own, gone, others = (kept_state(context, root_id, OLD) for root_id in (context.root_id, GONE, other_id))
    of_user(home, '"200d"')
    context.settings().keep_jobs = 86400.0
    remove_some(context)
    assert (own.exists(), gone.exists(), others.exists()) == (False, True, True)
    of_user(home, '"2d"')
    own = kept_state(context, context.root_id, OLD)
    context.settings().keep_jobs = None
    remove_some(context)
    assert (own.exists(), gone.exists(), others.exists()) == (True, False, True)


def test_what_residents_left_goes_with_their_roots(context, home, other_id) -> None:
    folder = Path(context.user_state.resident_logs)
    folder.mkdir(exist_ok=True)
    ids = (context.root_id, GONE, other_id)
    names = [f"{root_id}.log{ending}" for root_id in ids for ending in ("", ".1")]
    for name in [*names, "1" * 16 + ".log", "mine.log"]:
        (folder / name).write_text("a line\n", encoding="utf-8")
    for name in [*names, "mine.log"]:
        os.utime(folder / name, (context.now() - OLD,) * 2)
    clock = context.user_state.clock
    context.user_state.clock = lambda: clock() - OLD
    for root_id in ids:
        context.user_state.begin_resident_start(root_id)
    context.user_state.clock = clock
    context.user_state.begin_resident_start("1" * 16)
    remove_some(context)
    assert {path.name for path in folder.iterdir()} == {
        *(name for name in names if GONE not in name),
        "1" * 16 + ".log",
        "mine.log",
    }
    assert set(context.user_state.last_resident_starts()) == {context.root_id, other_id, "1" * 16}


def test_states_that_were_kept_beside_the_state_are_removed_after_a_time(context, quick_path) -> None:
    """The user state is on another file system. The times of the folders say nothing."""
    root_id = context.root_id
    old, new, strange = (
        f".mam.kept-{root_id}-2020-01-01T000000Z-0a1b-state",
        f".mam.kept-{root_id}-9998-01-01T000000Z-0a1b-state",
        f".mam.kept-{root_id}-2020-99-99T000000Z-0a1b-state",
    )
    others = (".mam.kept-" + "0" * 16 + "-2020-01-01T000000Z-0a1b-state", ".mam.kept-mine")
    for name in (old, new, strange, *others):
        (quick_path / name).mkdir()
        (quick_path / name / "state.db").write_text("x", encoding="utf-8")
        os.utime(quick_path / name, (context.now() - OLD,) * 2)
    remove_some(context)
    assert {path.name for path in quick_path.glob(".mam.kept-*")} == {new, strange, *others}


def test_e7_forever_keeps_all(fleet, context, home) -> None:
    settings = context.settings()
    settings.keep_jobs = settings.keep_log = settings.keep_messages = None
    job_id, message_id = job(fleet, "completed"), message(context, "submitted")
    remove_some(context)
    assert [record["job_id"] for record in fleet.jobs.list()] == [job_id]
    assert [entry[0] for entry in context.registry.peek(messages.settled, [])] == [message_id]


def test_e7_the_file_shrinks_when_much_of_it_is_free(context) -> None:
    for _ in range(4):
        message(context, "submitted", text="x" * 1_000_000)
    remove_some(context)
    size = Path(context.paths.db).stat().st_size
    assert context.registry.shrink(1 << 20, 1 << 30)
    assert Path(context.paths.db).stat().st_size < size / 4
    assert database.free_bytes(context.registry.writer(), context.paths.db)[0] == 0
    assert not context.registry.shrink(1 << 20, 1 << 30)


def test_e7_a_job_is_forgotten_with_all_that_it_left(fleet, context) -> None:
    ended, unended = job(fleet, "completed", 60.0), job(fleet, "running", 60.0)
    outcomes = fleet.jobs.forget(ended, unended, "1f00ab42")
    assert [(outcome["job_id"], outcome["forgotten"], outcome["reason"]) for outcome in outcomes] == [
        (ended, True, None),
        (unended, False, "it is running"),
        ("1f00ab42", False, "it is no job of this root"),
    ]
    assert outcomes[1]["hint"] == f"mam job cancel {unended} ends it"
    assert not files_of(context, ended)
    assert [record["job_id"] for record in fleet.jobs.list()] == [unended]
    for table in ("job_events", "job_prompts"):
        assert one(context, f"SELECT count(DISTINCT job_id) FROM {table}") == 1
    logged = "SELECT json_extract(detail, '$.job') FROM log WHERE verb='job forget'"
    assert one(context, logged) == ended


def test_e7_a_session_forgets_only_the_jobs_that_it_submitted(fleet, context) -> None:
    ended = job(fleet, "completed", 60.0)
    (outcome,) = forget(context, callers.session("s_00000001"), [ended])
    assert (outcome["forgotten"], outcome["reason"]) == (False, "it was submitted by somebody else")
    assert files_of(context, ended)


def test_e7_doctor_says_how_much_room_the_state_takes(fleet, context) -> None:
    job(fleet, "completed")
    message(context, "submitted")
    database_size, files_size = (finding["message"] for finding in doctor._sizes(context))
    assert "1 message (keep_messages), 1 job with 1 event (keep_jobs)" in database_size
    assert "(setting keep_log)" in database_size
    assert files_size.endswith("(keep_jobs), the payloads of hooks 0 KiB")
