"""Registries of every released version load, with everything they said; README.md says how to add one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from tests.adapters.store.making import Store, check_invariants, new_row

import mam
from mam.adapters.store import schema
from mam.core.session_row import with_all_fields

HERE = Path(__file__).resolve().parent
CASES = sorted(path.parent for path in HERE.glob("*/*/expected.json"))
WHEELS = sorted((HERE / "wheels").glob("*.whl"))


@pytest.fixture(params=CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def case(request):
    return request.param


@pytest.fixture
def golden(case, quick_path):
    """The registry in a root of its own."""
    store = Store(quick_path)
    store.paths.make()
    shutil.copyfile(case / "agent-sessions.yaml", store.yaml)
    connection = sqlite3.connect(store.paths.db)
    connection.executescript((case / "state.sql").read_text(encoding="utf-8"))
    connection.close()
    store.db.chmod(0o600)
    yield store
    store.registry.close()


@pytest.fixture
def expected(case):
    return json.loads((case / "expected.json").read_text(encoding="utf-8"))


def test_this_version_has_its_registries():
    made = {path.parent.name for path in CASES}
    assert mam.__version__ in made or ".dev" in mam.__version__, "python -m tests.golden.make"


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_the_wheel_of_a_release_is_whole(wheel):
    version = wheel.name.split("-")[1]
    assert version in {path.parent.name for path in CASES}
    with ZipFile(wheel) as files:
        assert files.testzip() is None
        (metadata,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        assert f"\nVersion: {version}\n" in files.read(metadata).decode("utf-8")


def test_both_together(golden, expected):
    view = golden.registry.view()
    assert view.rows == [with_all_fields(row) for row in expected["rows"]]
    assert [[one.session_id, one.verb] for one in view.intents] == expected["intents"]
    before = golden.rows()
    golden.touch()
    assert golden.rows() == before
    for session_id in before:
        golden.put(session_id, touched=True)
    golden.add(new_row(77))
    check_invariants(golden)


def test_the_file_alone(golden, case):
    golden.db.unlink()
    shown = yaml.safe_load((case / "agent-sessions.yaml").read_text(encoding="utf-8"))["tmux_sessions"]
    assert [row["name"] for row in golden.registry.view().rows] == [row["name"] for row in shown]
    golden.touch()
    rows = list(golden.rows().values())
    assert [row["id"] for row in rows if "id" in shown[rows.index(row)]] == [
        row["id"] for row in shown if "id" in row
    ]
    for session_id in golden.rows():
        golden.put(session_id, touched=True)
    check_invariants(golden)


def test_the_database_alone(golden, expected):
    golden.yaml.unlink()
    golden.touch()
    assert golden.registry.view().rows == [with_all_fields(row) for row in expected["rows"]]
    for session_id in golden.rows():
        golden.put(session_id, touched=True)
    check_invariants(golden)


@pytest.mark.parametrize("case", [one for one in CASES if one.name == "every-status"], indirect=True)
def test_what_a_person_wrote_is_still_there(golden):
    golden.add(new_row(77))
    assert "# mine, above\n- id: s_00000003\n" in golden.text()
    assert "team: blue  # ours\n" in golden.text()


def test_a_schema_step_is_never_changed_once_released(case):
    """The tables of a golden database are those that today's steps make, as far as that version had them."""
    script = (case / "state.sql").read_text(encoding="utf-8")
    version = int(script.rpartition("PRAGMA user_version=")[2].rstrip(";\n"))
    connection = sqlite3.connect(":memory:")
    for step in schema.STATE_MIGRATIONS[:version]:
        connection.executescript(step)
    made = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    connection.close()
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    kept = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    connection.close()
    assert kept == made
