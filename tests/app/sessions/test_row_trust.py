"""A registry that came with a repository of somebody else runs no commands of its own."""

from __future__ import annotations

import json
import sqlite3

import pytest

import mam
from mam.core.errors import NotAllowed

QUICK = ["--speed", "0"]


@pytest.fixture
def cloned(fleet, workspace, home):
    """Return a function that makes an ended session, as a person sees it who copied the directory."""

    def end(**options):
        session = fleet.sessions.create("practice", name="one", prompt="hello", **{"args": QUICK, **options})
        session.stop()
        fleet.close()
        with sqlite3.connect(fleet._access.context.user_state.path) as database:
            database.execute("DELETE FROM launches")
        return session

    return end


def edit(workspace, old, new):
    path = workspace / ".hermes" / "agent-sessions.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_row_with_its_own_command_is_refused(cloned, fleet, workspace, tmp_path) -> None:
    cloned()
    marker = tmp_path / "ran"
    edit(workspace, "start_command: [practice, --speed, '0']", f"start_command: [sh, -c, touch {marker}]")
    for verb in (
        lambda: fleet.sessions.resume("one"),
        lambda: fleet.sessions.create("practice", name="one"),
        lambda: fleet.sessions.create(None, name="one"),
        lambda: fleet.sessions.fork("one"),
    ):
        with pytest.raises(NotAllowed, match="never started by mam on this machine"):
            verb()
    assert not marker.exists()
    assert fleet.sessions.get("one").row["status"] == "stopped"
    assert fleet._access.context.registry.view().intents == []


def test_a_plain_row_is_resumed(cloned, fleet) -> None:
    cloned(args=[])
    assert fleet.sessions.resume("one").session.row["status"] == "running"


@pytest.mark.parametrize(
    ("field", "value"), [("permissions", "skip"), ("stores", {"XDG_DATA_HOME": "/somewhere/else"})]
)
def test_a_row_with_other_permissions_or_stores_is_refused(cloned, fleet, workspace, field, value) -> None:
    session = cloned(args=[])
    with sqlite3.connect(fleet._access.context.paths.db) as database:
        database.execute(
            f"UPDATE sessions SET data=json_set(data, '$.{field}', json(?))", [json.dumps(value)]
        )
    with pytest.raises(NotAllowed):
        fleet.sessions.resume(session.id)


def test_a_trusted_row_runs_and_stays_trusted(cloned, fleet) -> None:
    cloned()
    session = fleet.sessions.resume("one", run_recorded=True).session
    session.stop()
    assert fleet.sessions.resume("one").session.row["status"] == "running"


def test_a_row_started_on_this_machine_is_trusted(fleet, workspace) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.stop()
    with mam.open(str(workspace)) as another:
        another.sessions.resume(session.id)
