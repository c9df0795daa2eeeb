"""What a person is told about a file that cannot be restored."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pytest

from mam.adapters.store import database, schema
from mam.app.roots.restore_source import open_source
from mam.core.errors import RegistryCorrupt, SchemaTooNew


def a_database(path) -> sqlite3.Connection:
    return database.connect(
        str(path), schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True, with_wal=False
    )


@pytest.fixture
def file(tmp_path):
    return tmp_path / "file.db"


@pytest.mark.parametrize("kind", ["cut off", "garbage", "odd facts", "too many digits"])
def test_nobody_is_told_to_move_a_bad_file_away(tmp_path, file, kind) -> None:
    connection = a_database(file)
    connection.execute("CREATE TABLE backup(key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    if kind == "odd facts":
        connection.execute("INSERT INTO backup VALUES('made_at', '\"never\"')")
    if kind == "too many digits":
        connection.execute("INSERT INTO backup VALUES('tokens', ?)", ("1" * 5000,))
    connection.close()
    if kind == "cut off":
        file.write_bytes(gzip.compress(file.read_bytes())[:-100])
    if kind == "garbage":
        file.write_bytes(b"garbage" * 1000)
    with pytest.raises(RegistryCorrupt) as refused, open_source(str(file), str(tmp_path / "user")):
        pass
    assert refused.value.message.count(str(file)) == 1
    assert refused.value.hint == "take another: mam backup --list"
    assert not list((tmp_path / "user" / "scratch").iterdir())


def test_a_file_of_a_newer_schema_is_named(tmp_path, file) -> None:
    connection = a_database(file)
    connection.execute("PRAGMA user_version=99")
    connection.execute("INSERT INTO meta VALUES('newest_mam', ?)", (json.dumps({"version": "9.9"}),))
    connection.close()
    with pytest.raises(SchemaTooNew) as refused, open_source(str(file), str(tmp_path / "user")):
        pass
    assert refused.value.message.startswith(f"{file} was written by mam 9.9 (schema 99.")
    assert "this root" not in refused.value.message
