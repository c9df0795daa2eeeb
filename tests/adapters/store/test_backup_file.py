"""A copy is one sound file that says what it is; anybody's file is read with care."""

from __future__ import annotations

import errno
import gzip
import json
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest
from tests.adapters.store.filled_database import ROOT_ID, FilledDatabase, rows_of
from tests.adapters.store.making import NOON, Store

from mam.adapters.store import backup_file, database
from mam.adapters.store.files import job_files
from mam.core.backup_rotation import CHANGE, MANUAL, MIGRATION
from mam.core.errors import DiskFull, MamError, RegistryCorrupt

TOKEN = "ab" * 32


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    made = FilledDatabase(tmp_path_factory.mktemp("root"))
    made.store.registry.close()
    return made


@pytest.fixture
def store(filled) -> Store:
    return filled.store


def facts(store: Store, reason: str = CHANGE, **options):
    return backup_file.facts_of(store.paths, ROOT_ID, NOON, reason, **options)


def made(store: Store, folder: Path, reason: str = CHANGE, now: float = NOON, **options) -> str:
    """Make a copy in a folder; return its path."""
    path = backup_file.new_path(str(folder), reason, now)
    connection = sqlite3.connect(store.paths.db)
    try:
        backup_file.write(connection, path, facts(store, reason), **options)
    finally:
        connection.close()
    return path


def mode(path: str | Path) -> int:
    return Path(path).stat().st_mode & 0o777


def said_by(path: str):
    with backup_file.open_copy(path) as plain:
        connection = database.connect_to_copy(plain)
        try:
            return backup_file.read_facts(connection, path)
        finally:
            connection.close()


def listed(folder: Path) -> list[tuple[float, str, bool]]:
    return [
        (copy.made_at, copy.reason, copy.is_compressed)
        for copy in sorted(backup_file.copies_in(str(folder)), key=lambda copy: -copy.made_at)
    ]


def test_e5_a_copy_is_one_private_file_with_all_rows_and_says_what_it_is(store, tmp_path) -> None:
    job_files.new_token(store.paths.jobs, "0123abcd", TOKEN)
    path = made(store, tmp_path / "copies")
    assert [name.name for name in (tmp_path / "copies").iterdir()] == [Path(path).name]
    assert mode(path) == 0o600
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert rows_of(Path(path)) == rows_of(store.db)
    said = said_by(path)
    assert said.as_json() == facts(store).as_json()
    assert said.tokens == {"0123abcd": TOKEN}
    assert (said.root_id, said.root, said.state) == (ROOT_ID, store.paths.root, store.paths.state)


def test_tokens_are_left_out_on_request(store, tmp_path) -> None:
    job_files.new_token(store.paths.jobs, "0123abcd", TOKEN)
    path = str(tmp_path / "portable.db")
    connection = sqlite3.connect(store.paths.db)
    backup_file.write(connection, path, facts(store, with_tokens=False))
    connection.close()
    assert said_by(path).tokens is None
    assert TOKEN.encode() not in Path(path).read_bytes()


def test_a_token_that_others_could_have_read_is_not_copied(store, tmp_path) -> None:
    folder = str(tmp_path)
    job_files.new_token(folder, "0123abcd", TOKEN)
    job_files.new_token(folder, "0123abce", TOKEN)
    private, public, link = (Path(job_files.token_file(folder, f"0123abc{end}")) for end in "def")
    public.chmod(0o644)
    link.symlink_to(private)
    assert job_files.tokens(folder) == {"0123abcd": TOKEN}
    assert job_files.tokens(str(tmp_path / "none")) == {}


def test_a_compressed_copy_gives_the_same_database(store, tmp_path) -> None:
    path = made(store, tmp_path)
    before = Path(path).read_bytes()
    packed = backup_file.compress(path)
    assert [str(name) for name in tmp_path.iterdir()] == [packed]
    assert mode(packed) == 0o600
    assert Path(packed).stat().st_size < len(before) / 2
    with backup_file.open_copy(packed) as plain:
        assert Path(plain).read_bytes() == before
        assert mode(Path(plain).parent) == 0o700
    assert not Path(plain).exists()
    assert listed(tmp_path) == [(NOON, "change", True)]


def test_the_names_give_the_order_also_after_the_clock_was_put_back(store, tmp_path) -> None:
    for now in (NOON, NOON, NOON - 3600, NOON - 1800, NOON - 7200, NOON + 60):
        made(store, tmp_path, MANUAL, now)
    newest_first = sorted(backup_file.copies_in(str(tmp_path)), key=lambda copy: copy.order, reverse=True)
    assert [copy.made_at - NOON for copy in newest_first] == [60, -7200, -1800, -3600, 1, 0]
    assert [copy.run for copy in newest_first] == [2, 2, 1, 1, 0, 0]


def test_a_copy_after_the_clock_was_put_back_is_compressed_and_renamed_as_any_other(store, tmp_path) -> None:
    folder = tmp_path / backup_file.BACKUPS / ROOT_ID
    for now in (NOON, NOON - 3600):
        path = made(store, folder, MANUAL, now)
    packed = backup_file.compress(path)
    assert packed.endswith(".1-manual.db.gz")
    renamed = backup_file.keep_longer(packed, str(tmp_path), NOON)
    (newest, _) = backup_file.copies(str(tmp_path), ROOT_ID)
    facts_of_name = (newest.path, newest.made_at, newest.run, newest.reason, newest.since)
    assert facts_of_name == (renamed, NOON - 3600, 1, "restored", NOON)


def test_a_name_that_mam_does_not_give_is_no_copy(store, tmp_path) -> None:
    made(store, tmp_path, MANUAL, NOON)
    for name in ("99999999T999999Z-change.db", "99991231T235959Z-change.db", "2026١١١٨T000000Z-change.db"):
        (tmp_path / name).write_bytes(b"x")
    assert listed(tmp_path) == [(NOON, "manual", False)]
    made(store, tmp_path, MANUAL, NOON)
    assert listed(tmp_path)[0] == (NOON + 1, "manual", False)


def test_an_unfinished_copy_has_a_name_that_nobody_can_guess_and_is_private(
    store, tmp_path, monkeypatch
) -> None:
    """In a folder such as /tmp somebody else may have made a file of a name that is known."""
    planted = tmp_path / f"copy.db.{os.getpid()}.new"
    planted.write_bytes(b"somebody else's")
    planted.chmod(0o666)
    inode = planted.stat().st_ino
    connection = sqlite3.connect(store.paths.db)
    backup_file.write(connection, str(tmp_path / "copy.db"), facts(store))
    connection.close()
    copy = (tmp_path / "copy.db").stat()
    assert (copy.st_ino != inode, copy.st_mode & 0o777) == (True, 0o600)
    assert planted.read_bytes() == b"somebody else's"
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f"copy.db.{bytes(8).hex()}.new").write_bytes(b"somebody else's")
    connection = sqlite3.connect(store.paths.db)
    with pytest.raises(MamError):
        backup_file.write(connection, str(tmp_path / "copy.db"), facts(store))
    connection.close()
    assert (tmp_path / f"copy.db.{bytes(8).hex()}.new").read_bytes() == b"somebody else's"


def test_copies_of_a_root_are_listed_with_those_from_before_it_had_an_id(store, tmp_path) -> None:
    user = str(tmp_path)
    for root_id, now in ((None, NOON), (ROOT_ID, NOON + 60)):
        folder = backup_file.folder_of(user, root_id, store.paths.state)
        path = backup_file.new_path(folder, MIGRATION, now, schema_number="8.1")
        connection = sqlite3.connect(store.paths.db)
        backup_file.write(connection, path, facts(store, MIGRATION))
        connection.close()
        (Path(folder) / "notes.txt").write_text("mine", encoding="utf-8")
    copies = backup_file.copies(user, ROOT_ID, store.paths.state)
    assert [(copy.made_at, copy.reason) for copy in copies] == [
        (NOON + 60, "migration"),
        (NOON, "migration"),
    ]
    assert [copy.made_at for copy in backup_file.copies(user, ROOT_ID)] == [NOON + 60]
    assert backup_file.copies(user, None) == backup_file.copies(user, "0" * 16) == []


def test_a_crash_between_compressing_and_removing_shows_one_copy(store, tmp_path) -> None:
    path = made(store, tmp_path)
    Path(path + ".gz").write_bytes(b"x")
    assert listed(tmp_path) == [(NOON, "change", False)]


def test_a_damaged_database_takes_no_place_of_a_sound_copy(filled, store, tmp_path) -> None:
    damaged = tmp_path / "damaged.db"
    content = bytearray(store.db.read_bytes())
    content[-4096:-4032] = b"\xff" * 64
    damaged.write_bytes(content)
    connection = sqlite3.connect(damaged)
    folder = tmp_path / "copies"
    with pytest.raises(RegistryCorrupt, match=f"^{damaged} is damaged"):
        backup_file.write(connection, str(folder / "x.db"), facts(store))
    assert list(folder.iterdir()) == []
    backup_file.write(connection, str(folder / "x.db"), facts(store), is_checked=False)
    connection.close()


def test_a_copy_that_does_not_fit_leaves_nothing(store, tmp_path, monkeypatch) -> None:
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup_file, "_record", full)
    with pytest.raises(DiskFull):
        made(store, tmp_path / "copies")
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_compact_copy_has_nothing_that_was_deleted(tmp_path) -> None:
    source = sqlite3.connect(tmp_path / "source.db", isolation_level=None)
    source.execute("PRAGMA secure_delete=OFF")
    source.execute("CREATE TABLE words(text)")
    source.execute("INSERT INTO words VALUES('what was purged')")
    source.execute("DELETE FROM words")
    for name, is_compact in (("plain", False), ("compact", True)):
        backup_file.write(source, str(tmp_path / name), None, is_compact=is_compact)
    source.close()
    assert b"purged" in (tmp_path / "plain").read_bytes()
    assert b"purged" not in (tmp_path / "compact").read_bytes()


@pytest.mark.parametrize(
    "values",
    [
        {"root": 7},
        {"made_at": "now"},
        {"made_at": float("nan")},
        {"tokens": {"../x": "ab"}},
        {"tokens": {"0123abcd": ""}},
        {"tokens": {"0123abcd": "a\nb"}},
        {"tokens": ["0123abcd"]},
        {"version": None},
    ],
    ids=str,
)
def test_a_table_that_no_mam_has_written_is_refused(store, values) -> None:
    connection = sqlite3.connect(":memory:")
    assert backup_file.read_facts(connection, "x") is None
    connection.execute("CREATE TABLE backup(key, value)")
    for key, value in {**facts(store).as_json(), **values}.items():
        connection.execute("INSERT INTO backup VALUES(?, ?)", (key, json.dumps(value)))
    with pytest.raises(RegistryCorrupt):
        backup_file.read_facts(connection, "x")
    for value in ("{", None, 7, b"\xff", "1" + "0" * 400, "[" * 100_000, "1" * 5000):
        connection.execute("UPDATE backup SET value=?", (value,))
        with pytest.raises(RegistryCorrupt):
            backup_file.read_facts(connection, "x")
    connection.execute("DROP TABLE backup")
    connection.execute("CREATE TABLE backup AS SELECT 1, 2, 3")
    with pytest.raises(RegistryCorrupt):
        backup_file.read_facts(connection, "x")


def test_a_file_that_cannot_be_unpacked_says_so(tmp_path, monkeypatch) -> None:
    path = tmp_path / "x.db.gz"
    path.write_bytes(gzip.compress(os.urandom(100_000))[:-1000])
    with pytest.raises(RegistryCorrupt, match="unpacked"), backup_file.open_copy(str(path)):
        pass
    monkeypatch.setattr(backup_file, "_LARGEST", 1 << 20)
    path.write_bytes(gzip.compress(bytes(3 << 20)))
    with pytest.raises(RegistryCorrupt, match="too large"), backup_file.open_copy(str(path)):
        pass


def test_a_file_that_unpacks_to_more_than_there_is_room_for_is_not_unpacked(tmp_path, monkeypatch) -> None:
    """The error names the folder that is too small, and not the file, which is not written."""
    path, scratch = tmp_path / "bomb.gz", tmp_path / "scratch"
    path.write_bytes(gzip.compress(bytes(3 << 20)))
    scratch.mkdir()
    monkeypatch.setattr(backup_file, "_free", lambda folder: 4 << 20)
    with pytest.raises(DiskFull) as full, backup_file.open_copy(str(path), str(scratch)):
        pass
    assert f"too little space in {scratch}" in full.value.message
    assert str(path) in full.value.message
    assert not list(scratch.iterdir())
    monkeypatch.setattr(backup_file, "_free", lambda folder: 8 << 20)
    with backup_file.open_copy(str(path), str(scratch)) as plain:
        assert Path(plain).stat().st_size == 3 << 20

    def write(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup_file, "_unpack", write)
    with pytest.raises(DiskFull) as full, backup_file.open_copy(str(path), str(scratch)):
        pass
    assert str(path) not in full.value.message


def test_a_link_or_a_pipe_is_not_opened(tmp_path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(MamError), backup_file.open_copy(str(tmp_path / name)):
            pass


def test_folders_of_copies_are_private(store, tmp_path) -> None:
    folder = tmp_path / "user" / "backups" / ROOT_ID
    with backup_file.only_one(str(folder)):
        modes = [path.stat().st_mode & 0o777 for path in (folder, folder.parent, folder.parent.parent)]
    assert modes == [0o700] * 3


def test_a_copy_is_edited_beside_the_others_and_not_in_a_folder_of_all(store, tmp_path, monkeypatch) -> None:
    """A process that is killed leaves its file there, and the next one removes it."""
    made(store, tmp_path, MANUAL, NOON)
    (copy,) = backup_file.copies_in(str(tmp_path))
    backup_file.compress(copy.path)
    (copy,) = backup_file.copies_in(str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", None)
    modes = []

    def work(connection) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob("*.new"))
        connection.execute("DELETE FROM log")

    assert backup_file.edit(copy, work)
    assert modes == [0o600]
    assert not list(tmp_path.glob("*.new"))


def test_what_a_dead_process_left_is_removed_later(tmp_path) -> None:
    stray, young = tmp_path / "x.db.1.new", tmp_path / "y.db.2.new"
    for path in (stray, young):
        path.write_bytes(b"x")
    os.utime(stray, (1, 1))
    with backup_file.only_one(str(tmp_path)):
        assert not stray.exists()
        assert young.exists()


def test_copies_that_killed_processes_have_left_in_the_folder_of_all_are_removed(
    tmp_path, monkeypatch
) -> None:
    """Only old folders of this user; nothing is followed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young, link, other = (tmp_path / f"mam-copy-{name}" for name in ("old", "young", "link", "file"))
    precious = tmp_path / "precious"
    for folder in (old, young, precious):
        folder.mkdir()
        (folder / "copy.db").write_bytes(b"x")
    link.symlink_to(precious)
    other.write_bytes(b"x")
    for path in (old, link, other, precious):
        os.utime(path, (1, 1), follow_symlinks=False)
    backup_file.remove_stray_scratch(str(tmp_path / "user"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("mam-copy-file", "mam-copy-link", "mam-copy-young", "precious")
    ]
    assert (precious / "copy.db").exists()
