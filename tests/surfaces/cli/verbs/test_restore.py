"""What a person reads who restores a root."""

from __future__ import annotations

import pytest
from tests.app.sessions.test_init_ways import plain_fleet
from tests.app.sessions.test_restore import copy_now, damage, lose, page_of, restored

import mam


@pytest.fixture
def copied(run, workspace):
    """A root with an ended session, a held message and an open job; return a copy of it, and the job."""
    job = plain_fleet(workspace)
    with mam.open(str(workspace)) as fleet:
        return copy_now(fleet), job


def test_a_lost_state_comes_back_with_one_command(run, copied, workspace) -> None:
    copy, job = copied
    lose(workspace)
    would = run("restore", "--dry-run")
    assert would.out.startswith(f"this root would be restored from {copy}, a copy of ")
    assert not (workspace / ".mam").exists()
    answer = run("restore")
    assert answer.code == 0
    assert answer.out.splitlines()[1:] == [
        "brought back: 1 sessions, 1 messages, 1 jobs, 0 tasks",
        "messages still held: m_held",
        f"parked jobs (mam job release ID…, or all): {job}",
    ]
    refused = run("restore")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("mam: the state of this root is sound")


def test_going_back_asks_a_person(run, terminal, copied, workspace) -> None:
    copy, _job = copied
    assert run("rename", "one", "renamed").code == 0
    refused = run("restore", str(copy))
    assert refused.code == 64
    assert "repeat with --yes" in refused.err
    asked = terminal("restore", str(copy))
    asked.sees("Go back? [y/N]")
    asked.type("n\n")
    asked.sees("mam has not changed anything")
    answer = run("restore", str(copy), "--yes", "--json").json
    assert (answer["changed"], answer["source"], answer["taken"]["sessions"]) == (True, "copy", 1)
    assert run("ls", "--names").out == "one\n"


def test_a_damaged_database_says_what_came_from_where(run, copied, workspace) -> None:
    copy, _job = copied
    damage(workspace, page_of(workspace, "sessions"))
    damaged = run("create", "--agent", "practice")
    assert damaged.code == 65
    assert "mam restore brings back what it still holds" in damaged.err
    answer = run("restore")
    assert answer.code == 0, answer
    assert answer.out.startswith("this root is restored from its damaged database\n")
    assert "sessions: 0 from the damaged database, 1 from the copy" in answer.out or (
        "sessions: 1 from the damaged database" in answer.out
    )
    assert "\npage " in answer.out
    assert f"the copy: {restored(copy)} of " in answer.out
    assert "the former state is kept in " in answer.out
