"""mam 0.1.0, from its kept wheel, beside the mam of today: running agents, residents, and the way back."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests.processes import is_running
from tests.upgrades.old_mam import Program, take_over_user_state, unpack

import mam
from mam.adapters.store import database, schema
from mam.adapters.store.process_lock import ProcessLock
from mam.app.jobs.new_job import record_job

OLD, TODAY = (8, 0), (len(schema.STATE_MIGRATIONS), len(schema.STATE_ADDITIONS))
HELD = "the one that was held"


@pytest.fixture(scope="session")
def old_packages(tmp_path_factory):
    return unpack("0.1.0", tmp_path_factory.mktemp("mam-0.1.0"))


@pytest.fixture
def old(home, tmux_server, workspace, old_packages):
    """The command line of mam 0.1.0."""
    return Program(workspace, old_packages)


@pytest.fixture
def new(workspace):
    """The command line of today."""
    return Program(workspace)


def schema_of(path) -> tuple[int, int]:
    connection = sqlite3.connect(path)
    try:
        return database.schema_number(connection)
    finally:
        connection.close()


def copies() -> list[Path]:
    return sorted((Path(os.environ["MAM_STATE_HOME"]) / "backups").glob("*/*.db"))


@pytest.mark.slow
def test_e3_an_upgrade_beside_a_running_agent_and_a_resident(old, new, workspace, until) -> None:
    (workspace / "mam.toml").write_text('resident = "auto"\n', encoding="utf-8")
    lock, db = ProcessLock(str(workspace / ".mam" / "resident.lock")), workspace / ".mam" / "state.db"
    old("create", "--agent", "practice", "--session", "one", "--", "--speed", "20")
    first = until(lock.holder)
    take_over_user_state()
    old("send", "one", "work for long")
    held = json.loads(old.run("send", "one", "--when", "idle", HELD, "--json").stdout)
    assert held["state"] == "held"

    # What only reads leaves the database, and says whose resident runs.
    for words in (("status", "one"), ("inbox", "one"), ("doctor",)):
        new(*words)
    assert new.statuses() == {"one": "running"}
    assert "of an older mam" in new.json("ls")["resident"]["reason"]
    assert (schema_of(db), copies(), lock.holder()["pid"]) == (OLD, [], first["pid"])

    # The first change migrates after a copy. The old resident leaves, and a new one takes its place.
    new("task", "add", "something", "--role", "developer")
    assert schema_of(db) == TODAY
    assert [schema_of(copy) for copy in copies()] == [OLD]
    until(lambda: (lock.holder() or {}).get("version") == mam.__version__, timeout=60)
    assert not is_running(first["pid"])
    second = lock.holder()

    # The old command line goes on beside it, and starts no second resident.
    assert old.statuses() == {"one": "running"}
    with mam.open(str(workspace)) as fleet:
        record_job(fleet._access.context, fleet.caller, "1f00ab42", "the task")
    old("job", "event", "1f00ab42", "--event", "completed", "--detail", "done")
    assert new.json("job", "status", "1f00ab42")["job"]["status"] == "completed"
    assert (
        json.loads(old.run("send", "one", "--when", "idle", "the last", "--json").stdout)["state"] == "held"
    )
    assert lock.holder()["pid"] == second["pid"]

    # What the old mam held, the new one delivers, once.
    with mam.open(str(workspace)) as fleet:
        for text in (HELD, "the last"):
            fleet.messages.interrupt("one")
            until(lambda text=text: text in texts_of(fleet), timeout=60)
        until(lambda: [message["state"] for message in fleet.messages.inbox("one")] == ["submitted"] * 3)
        assert sorted(texts_of(fleet)) == sorted(["work for long", HELD, "the last"])

        # The death of the agent is noticed.
        os.kill(fleet.sessions.get("one").row["pane"]["pid"], signal.SIGKILL)
    until(lambda: old.statuses() == {"one": "terminated"}, timeout=60)


def texts_of(fleet) -> list[str]:
    return [turn["text"] for turn in fleet.sessions.transcript("one")["turns"] if turn["role"] == "user"]


@pytest.mark.promise("P14")
@pytest.mark.slow
def test_e3_the_way_back_to_an_older_mam(old, new, workspace, until) -> None:
    db = workspace / ".mam" / "state.db"
    old("init")
    old("create", "--agent", "practice", "--session", "one", "--", "--speed", "0")
    take_over_user_state()
    old("task", "add", "before the upgrade", "--role", "developer")
    new("task", "add", "after the upgrade", "--role", "developer")
    assert schema_of(db) == TODAY

    # The number counts additions, so the old mam goes on with all of it.
    old("task", "add", "by the old one", "--role", "developer")
    tasks = ["before the upgrade", "after the upgrade", "by the old one"]
    assert [task["text"] for task in old.json("task", "list")["tasks"]] == tasks
    assert [task["text"] for task in new.json("task", "list")["tasks"]] == tasks

    # Today's mam changes the row as well, and its registry file shows that.
    new("stop", "one")

    # A schema that neither can live with is refused by both, whether they read or change.
    connection = sqlite3.connect(db, isolation_level=None)
    connection.execute(f"PRAGMA user_version={TODAY[0] + 1}")
    newest = json.dumps({"version": "9.0.0", "package": "/nowhere"})
    connection.execute("INSERT OR REPLACE INTO meta VALUES('newest_mam', ?)", (newest,))
    connection.close()
    for words in (("ls",), ("task", "add", "no", "--role", "developer")):
        refused = new.run(*words)
        assert refused.returncode == 65, refused
        assert f"was written by mam 9.0.0 (schema {TODAY[0] + 1}.{TODAY[1]}, this one knows" in refused.stderr
        assert "is on PATH" in refused.stderr or "none is on PATH" in refused.stderr
        refused = old.run(*words)
        assert (refused.returncode, "newer" in refused.stderr) == (65, True), refused

    # The steps of the page bring the older mam back.
    (copy,) = copies()
    steps = steps_by_hand().replace("COPY", str(copy))
    subprocess.run(["sh", "-euc", steps], cwd=workspace, check=True)
    assert [task["text"] for task in old.json("task", "list")["tasks"]] == ["before the upgrade"]
    old("task", "add", "again", "--role", "developer")
    assert schema_of(db) == OLD
    assert old.statuses() == {"one": "running"}
    # A pass leaves a row alone on which somebody acted a few seconds ago.
    until(lambda: (old("monitor", "--once"), old.statuses())[1] == {"one": "terminated"}, timeout=60)
    assert len(new.json("task", "list")["tasks"]) == 2


def steps_by_hand() -> str:
    """Return the commands that docs/upgrades.md gives for the way back without `mam restore`."""
    page = Path(__file__).resolve().parents[2] / "docs" / "upgrades.md"
    _, _, section = page.read_text(encoding="utf-8").partition("## Back to an older mam\n")
    return section.partition("```sh\n")[2].partition("```")[0]
