"""SIGKILL before every call by which the first change of a newer mam changes a file of a root of mam 0.1.0.

After each death the old mam still reads what is there, and the next change of the newer one finds all rows,
in one consistent schema, with a copy from before.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.machine import KILL_BEFORE, Machine
from tests.upgrades import old_mam

import mam
from mam.adapters.store import database, schema

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "0.1.0" / "every-status"
ROWS = {"demo-app-1-creator-claude": "running", "two": "stopped", "three": "terminated", "four": "archived"}
# The schema of mam 0.1.0 and that of today.
OLD, TODAY = (8, 0), (len(schema.STATE_MIGRATIONS), len(schema.STATE_ADDITIONS))
# Answers each line, the path of a root, with the sessions as that mam lists them.
READER = """
import json, sys, mam
assert mam.__version__ == "0.1.0"
for line in sys.stdin:
    try:
        with mam.open(json.loads(line)) as fleet:
            answer = {row["name"]: row["status"] for row in fleet.ls()["sessions"]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(scope="module")
def read_by_old_mam(machine, tmp_path_factory):
    """Read a root with mam 0.1.0, in one warm process."""
    old = old_mam.Program(machine.root, old_mam.unpack("0.1.0", tmp_path_factory.mktemp("old")))
    reader = subprocess.Popen(
        [sys.executable, "-P", "-c", READER],
        env=old.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def read() -> dict:
        print(json.dumps(str(machine.root)), file=reader.stdin, flush=True)
        return json.loads(reader.stdout.readline())

    yield read
    reader.stdin.close()
    reader.wait(timeout=20)
    reader.stdout.close()


@pytest.fixture(scope="module")
def root_of_old_mam(machine, read_by_old_mam):
    """Make a root of mam 0.1.0 that the user state knows by its path alone, and keep it."""
    machine.clear()
    state, yaml = machine.root / ".mam", machine.root / ".hermes" / "agent-sessions.yaml"
    for folder in (state, yaml.parent):
        folder.mkdir(mode=0o700)
    shutil.copyfile(GOLDEN / "agent-sessions.yaml", yaml)
    yaml.chmod(0o600)
    connection = sqlite3.connect(state / "state.db")
    connection.executescript((GOLDEN / "state.sql").read_text(encoding="utf-8"))
    connection.close()
    (state / "state.db").chmod(0o600)
    assert read_by_old_mam() == ROWS, "and with that it has the schema of mam 0.1.0"
    user = user_folder()
    user.mkdir(parents=True)
    connection = database.connect(
        str(user / "user.db"), schema.USER_MIGRATIONS[:2], create=True, with_wal=False
    )
    connection.execute("INSERT INTO roots VALUES(?, ?, 1)", (str(machine.root), str(yaml)))
    connection.close()
    machine.save()


def begin(machine: Machine) -> None:
    """Bring the root of mam 0.1.0 back; nothing of today's mam touches it."""
    for name, folder in machine._kept().items():
        shutil.rmtree(folder)
        shutil.copytree(machine.saved / name, folder)


def user_folder() -> Path:
    return Path(os.environ["MAM_STATE_HOME"])


def look(machine: Machine) -> tuple[dict[str, str], tuple[int, int], str]:
    """Return the sessions as today's mam reads them, the schema, and what SQLite says about the database."""
    with mam.open(str(machine.root)) as fleet:
        statuses = {row["name"]: row["status"] for row in fleet._access.context.registry.view().rows}
    connection = sqlite3.connect(machine.root / ".mam" / "state.db")
    try:
        verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
        return statuses, database.schema_number(connection), verdict
    finally:
        connection.close()


def points(names: list[str]) -> list[int]:
    """Return the calls to die before: of many equal ones in a row the first two and the last."""
    kept = []
    for n in range(1, len(names) + 1):
        around = names[max(0, n - 3) : n + 1]
        if len(around) < 4 or len(set(around)) > 1:
            kept.append(n)
    return kept


@pytest.mark.promise("P13")
def test_e3_a_migration_that_dies_at_any_point_loses_nothing(
    machine, read_by_old_mam, root_of_old_mam, record_property
):
    begin(machine)
    answer = machine.run("settle")
    assert not answer["error"], answer
    assert look(machine) == (ROWS, TODAY, "ok")
    deaths = points(answer["names"])
    record_property("kill points", len(deaths))
    assert len(deaths) >= 40, "the shim counts too little to prove anything"
    failures = []
    for n in deaths:
        begin(machine)
        assert machine.run("settle", n, KILL_BEFORE)["killed"]
        statuses, number, verdict = look(machine)
        read = read_by_old_mam()
        error = machine.run("settle")["error"]
        copies = len(list((user_folder() / "backups").glob(f"*/*-before-migration-of-{OLD[0]}.{OLD[1]}.db")))
        seen = (statuses, number in (OLD, TODAY), verdict, read, error, bool(copies), look(machine))
        if seen != (ROWS, True, "ok", ROWS, None, True, (ROWS, TODAY, "ok")):
            failures.append((n, answer["names"][n - 1], seen))
    assert not failures, "\n".join(map(repr, failures))
