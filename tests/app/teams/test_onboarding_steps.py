"""A member or a team on which mam fails is set aside; the other ones go on."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

import mam
from mam.adapters.store.tables import set_aside, teams
from mam.app.teams import team_page
from mam.app.teams.onboarding_steps import finish_spawns
from mam.core.team_plan import SPAWNING


@pytest.fixture
def context(quick_path, home):
    with mam.open(str(quick_path)) as fleet:
        fleet.init()
        yield fleet._access.context


def add_team(context, team_id: str, *session_ids: str) -> None:
    def work(transaction) -> None:
        teams.add(transaction, id=team_id, server="mam", layout="tiled", by="user")
        for session_id in session_ids:
            teams.add_member(
                transaction,
                team_id=team_id,
                session_id=session_id,
                name=session_id,
                role="dev",
                colour="#000000",
                name_source="auto",
                workspace="/",
                state=SPAWNING,
            )

    context.registry.note(work)


def write(context, statement: str) -> None:
    with closing(sqlite3.connect(context.paths.db)) as connection, connection:
        connection.execute(statement)


def aside(context) -> list[tuple[str, str, str]]:
    return [(item.kind, item.key, item.reason) for item in context.registry.peek(set_aside.listed, [])]


def test_e2_a_broken_member_stops_no_other(context) -> None:
    add_team(context, "t1", "s_00000001", "s_00000002")
    write(context, "UPDATE members SET words='{cut off' WHERE session_id='s_00000001'")
    finish_spawns(context)
    left = context.registry.peek(teams.starting, [])
    assert [member.session_id for member in left] == ["s_00000001"], "the other one was never started"
    assert aside(context) == [("member", "s_00000001", "its record is not readable")]


def test_e2_a_broken_team_stops_no_other(context) -> None:
    add_team(context, "t1", "s_00000001")
    add_team(context, "t2", "s_00000002")
    write(context, "UPDATE teams SET started_at='yesterday' WHERE id='t1'")
    team_page.write(context)
    ((kind, key, reason),) = aside(context)
    assert (kind, key) == ("team", "t1")
    assert reason.startswith("TypeError")
    pages = [name for _, _, names in os.walk(context.paths.root) for name in names if name.endswith(".md")]
    assert [name for name in pages if "t2" in name]
    assert not [name for name in pages if "t1" in name]
