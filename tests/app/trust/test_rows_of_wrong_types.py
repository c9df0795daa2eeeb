"""Rows that SQLite takes and no mam writes: somebody else's are left out, and one's own are damage."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest

import mam
from mam.adapters.store.tables import jobs, messages, teams
from mam.core.errors import Refused, RegistryCorrupt
from mam.core.job_file_format import DEFAULTS
from mam.core.session_row import with_all_fields

# A restore asks tmux for the panes of the root.
pytestmark = pytest.mark.starts
DIGITS = "1" * 5000
DEEP = "[" * 100_000
# Rows that SQLite takes, and that no mam writes: each with the verb that shows the table.
ODD = [
    "UPDATE sessions SET data=json_set(data, '$.own', json('DIGITS'))",
    "UPDATE sessions SET data='DEEP'",
    "UPDATE sessions SET data=x'ff', written=x'ff'",
    "UPDATE log SET detail='[1]'",
    "UPDATE log SET detail='5'",
    "UPDATE log SET at='text', detail='DIGITS'",
    "UPDATE log SET at=x'00', actor=x'ff', reason=x'00'",
    "UPDATE tasks SET created_at='text', role=x'ff'",
    "UPDATE tasks SET created_at=x'00', text='DIGITS'",
    "UPDATE board_tasks SET created_at='text', priority='x'",
    "UPDATE board_tasks SET claim_expires='text', claim_lock=x'00', skills='DEEP'",
    "UPDATE board_comments SET created_at=x'00', body=x'ff'",
    "UPDATE jobs SET session_id=x'ff', status=x'00'",
    "UPDATE jobs SET data='DIGITS', created_at='text'",
    "UPDATE messages SET text=x'ff', created_at='text', before='x'",
    "UPDATE messages SET owner='DIGITS', looked=x'00', typed='DEEP'",
    "UPDATE teams SET started_at='text', server=x'ff'",
    "UPDATE members SET spawned_at='text', role=x'ff'",
    "UPDATE meta SET value='DIGITS' WHERE key IN ('servers', 'identities', 'file')",
    "UPDATE meta SET value=x'ff' WHERE key IN ('servers', 'identities', 'file')",
    "INSERT INTO forgotten VALUES('DIGITS'), (x'ff'), ('[1]')",
    "INSERT INTO intents VALUES('s_1', x'ff', 5, 'DIGITS', 'text', '[1]')",
    "INSERT INTO evidence VALUES('s_1', 'hook', 'text', 'DIGITS')",
    "INSERT INTO drifts(key, at, is_open, data) VALUES('k', 'text', 1, 'DIGITS')",
    "INSERT INTO set_aside(kind, key, reason, at, version, data)"
    " VALUES('k', 'k', x'ff', 'text', 5, 'DIGITS')",
]


def readings(fleet):
    """Return what each verb that only reads shows."""
    return {
        "ls": fleet.sessions.ls,
        "log": fleet.sessions.log,
        "status": lambda: fleet.sessions.status("one"),
        "inbox": lambda: fleet.messages.inbox("one"),
        "tasks": fleet.tasks.list,
        "jobs": fleet.jobs.list,
        "teams": fleet.teams.list,
        "cards": fleet.boards.list,
        "cards of a status": lambda: fleet.boards.list(status="ready"),
    }


@pytest.fixture
def full(home, tmux_server, workspace):
    """A root with a row in each table that a verb shows."""
    session = {"id": "s_1f00ab42", "name": "one", "agent": "practice", "status": "stopped"}
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        fleet.tasks.add("task", role="dev")
        card = fleet.boards.create("card", key="k")["card"]["id"]
        fleet.boards.comment(card, "words")

        def work(transaction) -> None:
            transaction.add(with_all_fields({**session, "tmux_server": "mam-none"}))
            facts = {"id": "m_1", "session_id": session["id"], "sender": "user", "text": "x"}
            state = {"wanted": "ready", "state": "held", "reason": None, "conversation": None}
            messages.add(transaction, {**facts, **state, "is_command": False})
            jobs.add(transaction, "00ab12cd", "do it", dict(DEFAULTS))
            teams.add(transaction, id="team", name="team", server="mam-none", layout="tiled", by="user")
            member = {"team_id": "team", "session_id": session["id"], "name": "one", "role": "dev"}
            more = {"colour": "red", "name_source": "auto", "workspace": "/", "state": "active"}
            teams.add_member(transaction, **member, **more)

        fleet._access.context.registry.change(work)


@pytest.fixture
def another_user_state(full, tmp_path, monkeypatch):
    """Let mam be used with another user state, as in a container with a home of its own."""
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "another-state"))


def damage(workspace, statement: str) -> None:
    with sqlite3.connect(workspace / ".mam" / "state.db") as database:
        database.execute(statement.replace("DIGITS", DIGITS).replace("DEEP", DEEP))
    database.close()


@pytest.mark.parametrize("statement", ODD)
def test_rows_of_wrong_types_in_a_foreign_root_are_left_out_and_said(
    full, workspace, another_user_state, statement
) -> None:
    damage(workspace, statement)
    warnings: list[str] = []
    with mam.open(str(workspace)) as fleet:
        fleet.on_warning(warnings.append)
        for verb in readings(fleet).values():
            with suppress(Refused):
                verb()
        assert fleet.sessions.ls()["root_state"] == "foreign"
    assert "your mam did not make the state" in warnings[0]
    quiet = ("claim_expires", "owner='DIGITS'")
    assert any(word in statement for word in quiet) or "cannot have written" in warnings[1]


@pytest.mark.parametrize("statement", ODD)
def test_rows_of_wrong_types_in_an_own_root_are_damage_and_mended(full, workspace, statement) -> None:
    with mam.open(str(workspace)) as fleet:
        fleet.monitor.backup()
        names = list(readings(fleet))
    damage(workspace, statement)
    for name in names:
        try:
            with mam.open(str(workspace)) as fleet:
                readings(fleet)[name]()
        except RegistryCorrupt as error:
            assert "mam restore" in error.hint, name
        except Refused:
            pass
    with mam.open(str(workspace)) as fleet:
        assert fleet.restore()["source"] == "salvage"
    with mam.open(str(workspace)) as fleet:
        for verb in readings(fleet).values():
            verb()
        with pytest.raises(Refused, match="is sound"):
            fleet.restore()
