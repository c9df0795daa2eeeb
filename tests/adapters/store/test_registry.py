"""mam commits a change and then writes the file; it renders only changed rows and reads nothing twice."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from pathlib import Path

import pytest
import yaml
from tests.adapters.store.making import FIRST, NOON, check_invariants, file_rows, new_row

from mam.adapters.store import database, root_paths
from mam.adapters.store import registry as registry_file
from mam.adapters.store.registry import Registry
from mam.adapters.store.yaml import document, projection, yaml_text
from mam.core.errors import (
    Conflict,
    Damaged,
    EditRefused,
    NameTaken,
    ReadOnly,
    RegistryBusy,
    SessionNotFound,
    Unavailable,
)


def put_in(transaction, session_id, **fields):
    transaction.put({**transaction.get(session_id), **fields})


def show(transaction, session_id):
    """Record another screen of a session."""
    row = transaction.get(session_id)
    put_in(transaction, session_id, last_visible_note=f"{row['last_visible_note']} and more")


def add_fourth(transaction):
    if transaction.get("s_00000004") is None:
        transaction.add(new_row(4))
    else:
        show(transaction, "s_00000004")


@pytest.fixture
def counted(monkeypatch):
    """Counts how often mam parsed the file and rendered rows."""
    counts = {"parse": 0, "dump_row": 0}

    def count(name):
        real = getattr(yaml_text, name)

        def counting(*arguments):
            counts[name] += 1
            return real(*arguments)

        monkeypatch.setattr(yaml_text, name, counting)

    count("parse")
    count("dump_row")
    return counts


def test_a_change_is_in_the_database_and_in_the_file(store):
    store.add(new_row(1))
    assert store.rows()[FIRST]["version"] == 1
    assert file_rows(store.yaml)[0]["name"] == "demo-app-1-creator-claude"
    check_invariants(store)


def test_a_reader_waits_for_the_record_of_a_file_that_is_being_replaced(store, counted, monkeypatch):
    """Between the rename and its record the file looks edited; parsing 500 rows takes half a second."""
    store.add(new_row(1))
    renamed, looked = threading.Event(), threading.Event()
    record_written, sleep = projection._record_written, time.sleep

    def late(*arguments):
        renamed.set()
        looked.wait(10)
        record_written(*arguments)

    def nap(seconds):
        looked.set()
        sleep(seconds)

    monkeypatch.setattr(projection, "_record_written", late)
    monkeypatch.setattr(registry_file, "sleep", nap)
    monkeypatch.setattr(registry_file, "_RECORD_SECONDS", 10.0)
    reader = Registry(store.paths, time.time)
    writer = threading.Thread(target=lambda: change_apart(store.paths))
    writer.start()
    renamed.wait(10)
    (row,) = reader.view().rows
    writer.join(10)
    assert (row["role"], counted["parse"]) == ("tester", 0)
    reader.close()


def change_apart(paths):
    other = Registry(paths, time.time)
    other.change(lambda transaction: transaction.put({**transaction.get(FIRST), "role": "tester"}))
    other.close()


def test_the_old_file_is_kept(store):
    store.add(new_row(1))
    assert not store.backup.exists()
    before = store.text()
    store.put(FIRST, role="tester")
    assert store.backup.read_text(encoding="utf-8") == before
    assert "role: tester" in store.text()


@pytest.mark.parametrize("can_swap", [True, False])
def test_the_former_file_goes_with_a_session_that_is_forgotten(three, monkeypatch, can_swap) -> None:
    """It would show the session until the next change."""
    if not can_swap:
        monkeypatch.setattr(projection, "swap", lambda *_paths: False)
    three.put("s_00000002", role="tester")
    assert "s_00000001" in three.backup.read_text(encoding="utf-8")
    three.registry.change(lambda transaction: transaction.remove("s_00000001"))
    assert not three.backup.exists()
    assert "s_00000001" not in three.text()
    assert three.strays() == []
    three.put("s_00000002", role="developer")
    assert "role: tester" in three.backup.read_text(encoding="utf-8")


def test_the_former_file_goes_after_a_death_before_the_update(three) -> None:
    three.put("s_00000002", role="tester")
    three.registry.commit(lambda transaction: transaction.remove("s_00000001"))
    assert three.backup.exists()
    three.again().show()
    assert not three.backup.exists()


def test_a_registry_without_sessions_says_so_with_an_empty_list(store):
    store.touch()
    assert "tmux_sessions: []\n" in store.text()
    store.add(new_row(1, status="stopped"))
    store.registry.change(lambda transaction: transaction.remove(FIRST))
    assert "tmux_sessions: []\n" in store.text()
    assert yaml.safe_load(store.text())["tmux_sessions"] == []
    check_invariants(store)


def test_the_file_begins_with_what_a_person_should_know(store):
    store.add(new_row(1))
    assert store.text().startswith(document.FIRST_LINE)
    assert yaml.safe_load(store.text())["schema_version"] == document.SCHEMA_VERSION


def test_times_are_quoted_texts_in_utc(store):
    store.add(new_row(1))
    assert "created_at: '2026-11-15T12:00:00Z'\n" in store.text()
    assert "updated_at: '2026-11-15T12:00:00Z'\n" in store.text()
    plain = yaml.safe_load(store.text())
    assert isinstance(plain["updated_at"], str)
    assert isinstance(plain["tmux_sessions"][0]["created_at"], str)


@pytest.mark.promise("P44")
def test_private_modes(store):
    old = os.umask(0)
    try:
        store.add(new_row(1))
        store.put(FIRST, role="tester")
        state = Path(store.paths.state)
        folders = [state, state / "spool", state / "launch", store.yaml.parent]
        files = [store.yaml, store.backup, store.db, *state.glob("state.db-*")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(old)


def test_an_unchanged_file_is_never_parsed(three, counted):
    for number in range(5):
        three.put(FIRST, note=str(number))
        three.again().view()
    assert counted["parse"] == 0


def test_an_edited_file_is_parsed_once_and_not_again(three, counted):
    three.edit("note: mine", "note: yours")
    three.touch()
    once = counted["parse"]
    assert once > 0
    three.again().view()
    three.put(FIRST, role=None)
    assert counted["parse"] == once


def test_only_the_changed_row_is_rendered(three, counted):
    before = three.blocks()
    three.put("s_00000002", note="changed")
    after = three.blocks()
    assert counted["dump_row"] == 1
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1] == before[1].replace("note: mine", "note: changed").replace("version: 1", "version: 2")


def test_nothing_is_written_where_nothing_changed(three):
    before = three.yaml.stat()
    three.touch()
    three.registry.note(lambda transaction: transaction.log("user", "test", None))
    after = three.yaml.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_unknown_keys_of_a_row_survive_changes(store):
    store.add(new_row(1, my_key={"deep": [1, "two", None]}, another="x"))
    row = store.put(FIRST, role="tester")
    assert row["my_key"] == {"deep": [1, "two", None]}
    assert file_rows(store.yaml)[0]["my_key"] == {"deep": [1, "two", None]}


def test_a_version_that_was_not_read_is_a_conflict(store):
    store.add(new_row(1))
    row = store.registry.view().find(FIRST)
    store.put(FIRST, role="tester")
    before = store.dump()
    with pytest.raises(Conflict) as caught:
        store.registry.change(lambda transaction: transaction.put({**row, "role": "other"}))
    assert caught.value.retryable
    assert store.dump() == before


def test_a_version_counts_every_change(store):
    store.add(new_row(1))
    for version in (2, 3, 4):
        assert store.put(FIRST, note=str(version))["version"] == version


def test_a_name_is_given_once(store):
    store.add(new_row(1))
    with pytest.raises(NameTaken):
        store.add(new_row(2, name=new_row(1)["name"]))
    assert len(store.rows()) == 1


def test_a_change_that_fails_changes_nothing(three):
    before, text = three.dump(), three.text()

    def fail(transaction):
        transaction.put({**transaction.get(FIRST), "role": None})
        transaction.remove("s_00000002")
        raise SessionNotFound("of this test")

    with pytest.raises(SessionNotFound):
        three.registry.change(fail)
    assert (three.dump(), three.text()) == (before, text)
    three.put(FIRST, note="the registry works on")


def test_a_removed_session_is_gone_from_both(three):
    three.registry.change(lambda transaction: transaction.remove("s_00000002"))
    assert list(three.rows()) == [FIRST, "s_00000003"]
    check_invariants(three)


def test_sessions_are_found_by_name_and_by_id(three):
    view = three.registry.view()
    assert view.find(FIRST)["name"] == view.find("demo-app-1-creator-claude")["name"]
    with pytest.raises(SessionNotFound) as caught:
        view.find("demo-app-1-creator-claud")
    assert "demo-app-1-creator-claude" in (caught.value.hint or "")


def test_only_the_rows_that_are_asked_for_are_parsed(three, monkeypatch):
    """A message to one of 500 sessions would else spend most of its work on the rows of the others."""
    parsed = []
    monkeypatch.setattr(registry_file, "with_new_fields", lambda row: parsed.append(row["id"]) or row)
    view = three.registry.view()
    assert not parsed
    row = view.by_id(FIRST)
    assert view.find(FIRST) is view.find(row["name"]) is row
    assert parsed == [FIRST]
    assert view.rows[0] is row
    assert len(view.rows) == 3
    assert parsed == [row["id"] for row in view.rows], "each once"


def test_a_row_is_found_by_its_id_alone(three):
    view = three.registry.view()
    row = view.by_id(FIRST)
    assert row is not None
    assert row["id"] == FIRST
    assert view.by_id(row["name"]) is None
    del view.rows[1]["id"]  # as in a file that no database has recorded yet
    assert view.by_id(None) is None


class TestLostFiles:
    def test_a_missing_file_is_written_again(self, three):
        before = three.text()
        three.yaml.unlink()
        assert len(three.again().view().rows) == 3
        three.touch()
        assert three.text() == before
        check_invariants(three)

    def test_an_empty_file_is_no_edit_and_is_written_again(self, three):
        before = three.text()
        three.write("")
        assert len(three.again().view().rows) == 3
        three.touch()
        assert three.text() == before

    @pytest.mark.parametrize(
        "rest", ["\n\n", "# a comment\n", "---\n", "null\n", "schema_version: 2\n", "{}\n"]
    )
    def test_a_file_without_sessions_is_no_edit_and_is_written_again(self, three, rest):
        before = three.rows()
        three.write(rest)
        assert len(three.again().view().rows) == 3
        three.touch()
        assert three.rows() == before
        check_invariants(three)

    @pytest.mark.promise("P4")
    @pytest.mark.parametrize("has_last_line", [True, False])
    def test_a_file_whose_list_has_another_name_is_refused_with_its_line(self, three, has_last_line):
        text = three.text().replace("tmux_sessions:", "tmux_session:").replace("note: mine", "note: yours")
        if not has_last_line:
            # As a program leaves it that loads and dumps YAML.
            text = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
        three.write(text)
        with pytest.raises(Damaged, match=r"line \d+: the key tmux_sessions is missing"):
            three.touch()
        assert three.text() == text
        assert three.registry.view_to_show().problem is not None

    def test_a_lost_database_is_made_from_the_file_with_its_ids(self, three):
        rows, text = three.rows(), three.text()
        three.registry.close()
        for path in Path(three.paths.state).glob("state.db*"):
            path.unlink()
        assert [row["id"] for row in three.again().view().rows] == list(rows)
        three.touch()
        assert three.rows() == rows
        assert three.text() == text
        assert "import" in three.log()

    def test_a_database_lost_under_an_open_connection_is_noticed(self, three):
        for path in Path(three.paths.state).glob("state.db*"):
            path.unlink()
        three.put(FIRST, role="developer", note="kept")
        assert three.again().view().find(FIRST)["note"] == "kept"
        check_invariants(three)

    def test_a_database_that_was_made_and_never_filled_takes_the_file_in(self, three):
        """A process may die between creating the database and the commit of the import."""
        rows = three.rows()
        three.registry.close()
        for path in Path(three.paths.state).glob("state.db*"):
            path.unlink()
        three.again().note(lambda transaction: transaction.log("user", "test", None))
        assert [row["id"] for row in three.again().view().rows] == list(rows)
        three.touch()
        assert three.rows() == rows

    def test_both_lost_is_an_empty_registry(self, three):
        three.registry.close()
        three.yaml.unlink()
        for path in Path(three.paths.state).glob("state.db*"):
            path.unlink()
        assert three.again().view().rows == []
        three.add(new_row(7))
        check_invariants(three)

    def test_a_log_without_its_database_is_not_replayed_into_a_new_one(self, three):
        three.put(FIRST, note="in the log only")
        wal = three.db.with_name("state.db-wal")
        log = wal.read_bytes()
        three.registry.close()
        three.db.unlink()
        wal.write_bytes(log)
        three.again().view()
        three.touch()
        check_invariants(three)


class TestEditWhileWriting:
    """An edit between mam's check and its rename is recorded or refused, never overwritten."""

    @pytest.fixture
    def arriving(self, three, monkeypatch):
        """Run an edit once, in the moment before the rename."""
        edits = []
        real = projection._write

        def write(path, text):
            fingerprint = real(path, text)
            if edits:
                edits.pop()()
            return fingerprint

        monkeypatch.setattr(projection, "_write", write)
        return edits

    def test_an_allowed_edit_is_taken_in(self, three, arriving):
        arriving.append(lambda: three.edit("note: mine", "note: yours"))
        three.put(FIRST, delegate_job_id="job-1")
        assert not arriving
        assert three.rows()["s_00000002"]["note"] == "yours"
        assert three.rows()[FIRST]["delegate_job_id"] == "job-1"
        check_invariants(three)

    def test_a_refused_edit_stays_in_the_file_and_the_change_in_the_database(self, three, arriving):
        edited = []
        arriving.append(lambda: edited.append(three.edit("name: demo-app-2", "name: other")))
        with pytest.raises(EditRefused) as caught:
            three.put(FIRST, delegate_job_id="job-1")
        assert "recorded" in (caught.value.hint or "")
        assert three.yaml.read_bytes() == edited[0]
        assert three.rows()[FIRST]["delegate_job_id"] == "job-1"
        three.edit("name: other", "name: demo-app-2")
        three.touch()
        check_invariants(three)

    def test_an_edit_right_after_the_look(self, three, monkeypatch):
        """An edit between reading the file and recording its fingerprint."""
        edits = []
        real = three.registry._take_in

        def take_in(transaction, confirm):
            real(transaction, confirm)
            if edits:
                edits.pop()()

        monkeypatch.setattr(three.registry, "_take_in", take_in)
        for moment in (1, 2):
            text = "mine" if moment == 1 else "yours1"
            edits += [lambda moment=moment, text=text: three.edit(f"note: {text}", f"note: yours{moment}")]
            edits += [lambda: None] * (moment - 1)
            three.put(FIRST, delegate_job_id=f"job-{moment}")
            assert not edits
            three.touch()
            assert three.rows()["s_00000002"]["note"] == f"yours{moment}"
        check_invariants(three)

    @pytest.mark.promise("P4")
    @pytest.mark.parametrize("moment", ["before the swap", "after the swap"])
    def test_an_edit_in_the_very_moment_of_the_swap(self, three, monkeypatch, moment):
        """An edit after the last check, or after the swap and before its record."""
        real, edits = projection.swap, [lambda: three.edit("note: mine", "note: yours")]

        def swap(path, other):
            if edits and moment == "before the swap":
                edits.pop()()
            swapped = real(path, other)
            if edits:
                edits.pop()()
            return swapped

        monkeypatch.setattr(projection, "swap", swap)
        three.put(FIRST, delegate_job_id="job-1")
        assert not edits
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "yours"
        assert three.rows()[FIRST]["delegate_job_id"] == "job-1"
        check_invariants(three)

    def test_a_file_that_appears_while_none_was_there(self, three, monkeypatch):
        text = three.text().replace("note: mine", "note: yours")
        three.yaml.unlink()
        real = projection.swap

        def swap(path, other):
            try:
                return real(path, other)
            except FileNotFoundError:
                three.write(text)
                raise

        monkeypatch.setattr(projection, "swap", swap)
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "yours"
        check_invariants(three)

    def test_a_file_that_never_holds_still_is_reported(self, three, monkeypatch):
        real, numbers = projection._write, iter(range(1000))

        def write(path, text):
            fingerprint = real(path, text)
            three.write(three.text().replace("note: mine", f"note: mine{next(numbers)}"))
            return fingerprint

        monkeypatch.setattr(projection, "_write", write)
        with pytest.raises(RegistryBusy) as caught:
            three.put(FIRST, delegate_job_id="job-1")
        assert caught.value.recorded
        assert not caught.value.retryable, "what is recorded must not be repeated"
        monkeypatch.undo()
        three.touch()
        assert three.rows()[FIRST]["delegate_job_id"] == "job-1"
        check_invariants(three)

    def test_an_edit_in_place_that_leaves_size_and_clock_tick_alone_is_seen(self, three):
        """mam must notice an editor that writes into the same inode right after mam."""
        for number in range(30):
            old, new = ("mine", "MINE") if number % 2 == 0 else ("MINE", "mine")
            three.put(FIRST, delegate_job_id=f"job-{number}")
            text = three.yaml.read_bytes().replace(f"note: {old}".encode(), f"note: {new}".encode())
            with three.yaml.open("r+b") as file:
                file.write(text)
            three.touch()
            assert three.rows()["s_00000002"]["note"] == new, f"round {number}"


class TestReadersAndWriters:
    def test_a_reader_between_two_states_is_not_told_of_an_edit(self, three, monkeypatch):
        """Another process changes everything between reading the database and checking the file."""
        other = Registry(three.paths, lambda: NOON)
        reader = Registry(three.paths, lambda: NOON)
        real, changes = root_paths.fingerprint, []

        def look(path):
            if not changes:
                changes.append(True)
                other.change(
                    lambda transaction: transaction.put(
                        {**transaction.get(FIRST), "delegate_job_id": "job-1"}
                    )
                )
                other.change(lambda transaction: transaction.add(new_row(9)))
            return real(path)

        monkeypatch.setattr("mam.adapters.store.registry.fingerprint", look)
        rows = reader.view().rows
        assert [row["id"] for row in rows] in (list(three.rows()), list(three.rows())[:3])
        reader.close()
        other.close()

    def test_reading_makes_nothing(self, store):
        assert store.registry.view().rows == []
        assert not store.registry.is_edited()
        assert not list(store.root.iterdir())

    def test_reading_leaves_the_file_and_its_rows_alone(self, three):
        three.edit("note: mine", "note: yours")
        before, text = three.dump(), three.text()
        assert three.again().view().find("s_00000002")["note"] == "yours"
        assert three.registry.is_edited()
        assert (three.dump(), three.text()) == (before, text)


class TestCrash:
    """If a process dies between the commit and the file, the file is older than the database, never newer."""

    @pytest.mark.promise("P2")
    @pytest.mark.parametrize("can_swap", [True, False])
    @pytest.mark.parametrize(
        "moment", ["_render", "_write", "_put", "_keep", "flush_folder", "_record_written"]
    )
    def test_the_next_change_writes_what_is_missing(self, three, monkeypatch, moment, can_swap):
        class Death(BaseException):
            pass

        def die(*_arguments):
            raise Death

        if not can_swap:
            monkeypatch.setattr(projection, "swap", lambda *_names: False)
        with monkeypatch.context() as patch:
            patch.setattr(projection, moment, die)
            with pytest.raises(Death):
                three.put(FIRST, delegate_job_id="job-1")
            with pytest.raises(Death):
                three.registry.change(lambda transaction: transaction.remove("s_00000003"))
            with pytest.raises(Death):
                three.add(new_row(4))
        assert [row["id"] for row in three.again().view().rows] == [FIRST, "s_00000002", "s_00000004"]
        assert three.registry.view().find(FIRST)["delegate_job_id"] == "job-1"
        three.touch()
        check_invariants(three)
        before = three.dump(), three.text()
        three.again()
        three.touch()
        assert (three.dump(), three.text()) == before

    @pytest.mark.promise("P4")
    @pytest.mark.parametrize("moment", ["_keep", "flush_folder", "_record_written"])
    def test_an_edit_of_a_file_that_was_behind_survives_a_second_death(self, three, monkeypatch, moment):
        """What mam itself writes when it takes an edit in is not mistaken for a person's work."""
        self.die(three, monkeypatch, "_render", self.put)
        three.edit("note: mine", "note: yours")
        self.die(three, monkeypatch, moment, lambda store: store.registry.project())
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "yours"
        check_invariants(three)

    @pytest.mark.promise("P4")
    @pytest.mark.parametrize("moment", ["_keep", "flush_folder", "_record_written"])
    def test_an_edit_of_a_file_that_was_never_recorded(self, three, monkeypatch, moment):
        """The first process dies after it wrote the file, and the next one before it writes its own."""
        self.die(three, monkeypatch, moment, self.put)
        self.die(three, monkeypatch, "_render", lambda store: store.put(FIRST, delegate_job_id="job-2"))
        three.edit("note: mine", "note: yours")
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "yours"
        assert three.rows()[FIRST]["delegate_job_id"] == "job-2"
        check_invariants(three)

    @pytest.mark.promise("P4")
    def test_an_edit_that_is_undone_before_the_file_was_written(self, three, monkeypatch):
        three.edit("note: mine", "note: yours")
        self.die(three, monkeypatch, "_render", self.put)
        three.edit("note: yours", "note: mine")
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "mine"
        check_invariants(three)

    @pytest.mark.promise("P4")
    @pytest.mark.parametrize("moment", ["_keep", "flush_folder", "_record_written"])
    @pytest.mark.parametrize("times", [1, 2])
    @pytest.mark.parametrize(
        ("change", "note"),
        [
            (lambda transaction: show(transaction, FIRST), lambda transaction: show(transaction, FIRST)),
            (lambda transaction: show(transaction, FIRST), lambda transaction: transaction.remove(FIRST)),
            (add_fourth, lambda transaction: show(transaction, "s_00000004")),
            (add_fourth, lambda transaction: transaction.remove("s_00000004")),
            (
                lambda transaction: transaction.set_identity("claude", {"session_id": "first"}),
                lambda transaction: transaction.set_identity("claude", {"session_id": "later"}),
            ),
        ],
        ids=["a changed row", "a row that goes", "a new row", "a new row that goes", "an identity"],
    )
    def test_a_change_after_a_file_that_could_not_be_recorded(
        self, three, monkeypatch, moment, times, change, note
    ):
        """The disk was full when mam recorded what it had written. Nobody has edited anything."""

        def full(*_arguments):
            raise Unavailable("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(projection, moment, full)
            with pytest.raises(Unavailable):
                three.registry.change(change)
            for _ in range(times - 1):
                three.registry.note(change)
                with pytest.raises(Unavailable):
                    three.registry.project()
        three.registry.note(note)
        before = three.rows()
        assert three.registry.view_to_show().problem is None
        three.edit("note: mine", "note: yours")
        three.touch()
        assert three.rows()["s_00000002"]["note"] == "yours"
        assert three.rows().keys() == before.keys()
        assert three.rows().get(FIRST) == before.get(FIRST)
        check_invariants(three)

    def test_an_edit_of_a_row_that_mam_may_have_shown_otherwise(self, three, monkeypatch):
        """What mam may have written is no edit, and everything else still is."""

        def full(*_arguments):
            raise Unavailable("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(projection, "_record_written", full)
            with pytest.raises(Unavailable):
                three.put(FIRST, last_visible_note="a screen")
        three.registry.note(lambda transaction: put_in(transaction, FIRST, last_visible_note="a later one"))
        three.edit("last_visible_note: a screen", "last_visible_note: my own words")
        with pytest.raises(EditRefused, match="only mam writes it"):
            three.touch()

    @staticmethod
    def put(store):
        store.put(FIRST, delegate_job_id="job-1")

    @staticmethod
    def die(store, monkeypatch, moment, change):
        """Have a process die at a moment of its change; the next one begins with its own connection."""

        def stop(*_arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(projection, moment, stop)
            with pytest.raises(KeyboardInterrupt):
                change(store)
        store.again()

    def test_a_name_given_again_before_the_file_was_written(self, three, monkeypatch):
        """A session was removed and created again with the same name: the old row in the file is no edit."""
        name = three.rows()["s_00000003"]["name"]
        with monkeypatch.context() as patch:
            patch.setattr(Registry, "project", lambda *_arguments: None)
            three.registry.change(lambda transaction: transaction.remove("s_00000003"))
            three.add(new_row(9, name=name))
        three.edit("note: mine", "note: yours")
        three.touch()
        assert list(three.rows()) == [FIRST, "s_00000002", "s_00000009"]
        check_invariants(three)

    def test_old_temporary_files_are_removed(self, three):
        folder = three.yaml.parent
        (folder / ".agent-sessions.yaml.tmp").write_text("half", encoding="utf-8")
        three.put(FIRST, delegate_job_id="job-1")
        check_invariants(three)


def test_everything_that_follows_a_commit_is_done_and_the_first_failure_is_raised(three):
    steps: list[str] = []

    def fail() -> None:
        steps.append("fails")
        raise Unavailable("no room")

    def work(transaction):
        for step in (fail, lambda: steps.append("after it")):
            transaction.after_commit(step)
        transaction.set_meta("proof", 1)

    with pytest.raises(Unavailable) as caught:
        three.registry.change(work)
    assert steps == ["fails", "after it"]
    assert caught.value.recorded and not caught.value.retryable
    assert three.registry.peek(lambda transaction: transaction.meta("proof"), None) == 1


def test_what_follows_a_commit_is_done_also_where_the_file_cannot_be_written(three, monkeypatch):
    steps: list[str] = []

    def no_room(_confirm=None):
        raise Unavailable("no room")

    monkeypatch.setattr(three.registry, "show", no_room)
    with pytest.raises(Unavailable):
        three.registry.change(lambda transaction: transaction.after_commit(lambda: steps.append("it")))
    assert steps == ["it"]


def test_nothing_follows_a_change_that_was_not_committed(three):
    def work(transaction):
        transaction.after_commit(lambda: pytest.fail("it was rolled back"))
        raise Unavailable("stop")

    with pytest.raises(Unavailable):
        three.registry.change(work)


def test_a_database_that_was_opened_for_reading_only_is_opened_again(three):
    """SQLite does so without a word where it cannot open a file for writing, as on a disk that is full."""
    registry = three.registry
    registry.close()
    path = three.paths.db
    registry._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    registry._is_writer, registry._file = True, database.identity(path)
    three.put(FIRST, delegate_job_id="job-1")
    assert three.rows()[FIRST]["delegate_job_id"] == "job-1"


def test_a_database_that_stays_read_only_is_an_error(three, monkeypatch):
    registry = three.registry

    def connect():
        return sqlite3.connect(f"file:{three.paths.db}?mode=ro", uri=True, isolation_level=None)

    registry.close()
    monkeypatch.setattr(registry, "_connect_to_write", connect)
    with pytest.raises(ReadOnly):
        three.put(FIRST, delegate_job_id="job-1")
