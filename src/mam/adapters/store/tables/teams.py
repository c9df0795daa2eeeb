"""The tables of teams, members, and lines about undelivered messages, which the team pages show."""

from __future__ import annotations

import json

from mam.core import record_limits
from mam.core.team_plan import CLOSED, SPAWNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

_TEAM = (
    "id",
    "name",
    "server",
    "server_pid",
    "window_id",
    "master_pane",
    "master_id",
    "layout",
    "by",
    "started_at",
    "ended_at",
)
_MEMBER = (
    "team_id",
    "session_id",
    "name",
    "role",
    "colour",
    "name_source",
    "pane",
    "window_id",
    "workspace",
    "state",
    "owner",
    "words",
    "conversation",
    "report_id",
    "reported_at",
    "spawned_at",
    "closed_at",
    "unfinished",
)
_JSON = ("owner", "words")
_TEAMS = f"SELECT {', '.join(_TEAM)} FROM teams"  # noqa: S608  (names of columns)
_MEMBERS = f"SELECT {', '.join(_MEMBER)} FROM members"  # noqa: S608  (names of columns)


class Team:
    """One team. `window_id` is None before the first pane, `master_pane` if the master is not in tmux."""

    id: str
    name: str | None
    server: str
    server_pid: int | None
    window_id: str | None
    master_pane: str | None
    master_id: str | None
    layout: str
    by: str
    started_at: float
    ended_at: float | None

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table."""
        self.__dict__.update(zip(_TEAM, values, strict=True))


class Member:
    """One session in one team. `words` are the first messages to the member, each with its id.

    A member with a `flaw` has a record that mam does not write: neither owner nor words are known.
    """

    team_id: str
    session_id: str
    name: str
    role: str
    colour: str
    name_source: str
    pane: str | None
    window_id: str | None
    workspace: str
    state: str
    owner: dict[str, Any] | None
    words: list[dict[str, Any]]
    conversation: str | None
    report_id: str | None
    reported_at: float | None
    spawned_at: float
    closed_at: float | None
    # How many tasks it had not finished when it was closed.
    unfinished: int | None

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table."""
        facts = dict(zip(_MEMBER, values, strict=True))
        self.flaw: str | None = None
        try:
            facts["owner"] = json.loads(facts["owner"]) if facts["owner"] else None
            facts["words"] = json.loads(facts["words"]) if facts["words"] else []
        except (ValueError, TypeError, RecursionError):
            facts["owner"], facts["words"], self.flaw = None, [], "its record is not readable"
        self.__dict__.update(facts)


def add(transaction: Transaction, **facts: Any) -> Team:
    """Record a team."""
    facts["started_at"] = transaction.now
    _insert(transaction, "teams", _TEAM, facts)
    team = find(transaction, facts["id"])
    assert team is not None
    return team


def find(transaction: Transaction, team_id: str) -> Team | None:
    """Return one team."""
    row = transaction.connection.execute(f"{_TEAMS} WHERE id=?", (team_id,)).fetchone()
    return Team(row) if row else None


def disown_all(transaction: Transaction) -> None:
    """Record that no process onboards a member any more, so that the next change goes on with it."""
    transaction.connection.execute("UPDATE members SET owner=NULL WHERE owner IS NOT NULL")


def end_all(transaction: Transaction) -> None:
    """End every team and close every member, in the record only: sessions and panes stay as they are."""
    transaction.connection.execute("UPDATE teams SET ended_at=? WHERE ended_at IS NULL", (transaction.now,))
    _close_members(transaction, "true")


def end(transaction: Transaction, team_id: str) -> None:
    """End a team and close its members, in the record only."""
    change(transaction, team_id, ended_at=transaction.now)
    _close_members(transaction, "team_id=?", team_id)


def _close_members(transaction: Transaction, condition: str, *values: str) -> None:
    transaction.connection.execute(
        f"UPDATE members SET state=?, closed_at=?, owner=NULL, words=NULL WHERE state!=? AND {condition}",  # noqa: S608
        (CLOSED, transaction.now, CLOSED, *values),
    )


def listed(transaction: Transaction, *, ended: bool = False) -> list[Team]:
    """Return the teams that have not ended, or with `ended` all teams, oldest first."""
    where = "" if ended else " WHERE ended_at IS NULL"
    return [Team(row) for row in transaction.connection.execute(f"{_TEAMS}{where} ORDER BY started_at, id")]


def change(transaction: Transaction, team_id: str, **facts: Any) -> None:
    """Change fields of a team."""
    record_limits.check(**facts)
    names = ", ".join(f"{name}=?" for name in facts)
    transaction.connection.execute(
        f"UPDATE teams SET {names} WHERE id=?",  # noqa: S608  (names of columns)
        (*facts.values(), team_id),
    )


def remove(transaction: Transaction, team_id: str) -> None:
    """Delete a team without members."""
    transaction.connection.execute(
        "DELETE FROM teams WHERE id=? AND NOT EXISTS(SELECT 1 FROM members WHERE team_id=?)",
        (team_id, team_id),
    )


def add_member(transaction: Transaction, **facts: Any) -> Member:
    """Record a member."""
    facts["spawned_at"] = transaction.now
    _insert(transaction, "members", _MEMBER, facts)
    joined = member(transaction, facts["session_id"])
    assert joined is not None
    return joined


def member(transaction: Transaction, session_id: str) -> Member | None:
    """Return the membership that a session has now, or had last."""
    row = transaction.connection.execute(
        f"{_MEMBERS} WHERE session_id=? ORDER BY closed_at IS NOT NULL, seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    return Member(row) if row else None


def members(transaction: Transaction, team_id: str) -> list[Member]:
    """Return the members of a team, oldest first."""
    rows = transaction.connection.execute(f"{_MEMBERS} WHERE team_id=? ORDER BY seq", (team_id,))
    return [Member(row) for row in rows]


def starting(transaction: Transaction) -> list[Member]:
    """Return the members whose spawn is not complete."""
    return [
        Member(row)
        for row in transaction.connection.execute(f"{_MEMBERS} WHERE state=? ORDER BY seq", (SPAWNING,))
    ]


def update(transaction: Transaction, membership: Member, **facts: Any) -> Member:
    """Change fields of a member."""
    for name in _JSON:
        if name in facts:
            facts[name] = json.dumps(facts[name]) if facts[name] else None
    record_limits.check(**{name: value for name, value in facts.items() if name not in _JSON})
    names = ", ".join(f"{name}=?" for name in facts)
    transaction.connection.execute(
        f"UPDATE members SET {names} WHERE team_id=? AND session_id=? AND spawned_at=?",  # noqa: S608
        (*facts.values(), membership.team_id, membership.session_id, membership.spawned_at),
    )
    updated = member(transaction, membership.session_id)
    assert updated is not None
    return updated


def remove_member(transaction: Transaction, membership: Member) -> None:
    """Delete a member of a spawn that failed."""
    transaction.connection.execute(
        "DELETE FROM members WHERE team_id=? AND session_id=? AND spawned_at=?",
        (membership.team_id, membership.session_id, membership.spawned_at),
    )


def is_open(member: Member) -> bool:
    """Tell whether a member is not closed yet."""
    return member.state != CLOSED


def note(transaction: Transaction, team_id: str, message_id: str, line: str) -> bool:
    """Store a line about a message for the team page; False if the line exists already."""
    line = record_limits.sentence(line)
    cursor = transaction.connection.execute(
        "INSERT OR IGNORE INTO team_lines(team_id, message_id, at, line) VALUES(?, ?, ?, ?)",
        (team_id, message_id, transaction.now, line),
    )
    return cursor.rowcount == 1


def remove_note(transaction: Transaction, message_id: str) -> None:
    """Remove the lines about a message that has arrived after all."""
    transaction.connection.execute("DELETE FROM team_lines WHERE message_id=?", (message_id,))


def lines(transaction: Transaction, team_id: str) -> list[tuple[float, str]]:
    """Return the lines about messages of a team, oldest first."""
    rows = transaction.connection.execute(
        "SELECT at, line FROM team_lines WHERE team_id=? ORDER BY at, message_id", (team_id,)
    )
    return [(float(at), str(line)) for at, line in rows]


def _insert(transaction: Transaction, table: str, columns: tuple[str, ...], facts: dict[str, Any]) -> None:
    for name in _JSON:
        if facts.get(name) is not None:
            facts[name] = json.dumps(facts[name])
    record_limits.check(**{name: value for name, value in facts.items() if name not in _JSON})
    names = [name for name in columns if name in facts]
    transaction.connection.execute(
        f"INSERT INTO {table}({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
        tuple(facts[name] for name in names),
    )
