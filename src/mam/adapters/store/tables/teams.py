"""Teams, their members, and lines about messages that did not arrive: what the team pages show."""

from __future__ import annotations

import json

from mam.core.team import CLOSED, SPAWNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction

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
)
_JSON = ("owner", "words")
_TEAMS = f"SELECT {', '.join(_TEAM)} FROM teams"  # noqa: S608  (our names)
_MEMBERS = f"SELECT {', '.join(_MEMBER)} FROM members"  # noqa: S608  (our names)


class Team:
    """One team. `window_id` is None until its first pane stands, `master_pane` where nobody sits in tmux."""

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
        """Take a row of the table."""
        self.__dict__.update(zip(_TEAM, values, strict=True))


class Member:
    """One session in one team. `words` are the messages that it is greeted with, each with its id."""

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

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Take a row of the table."""
        facts = dict(zip(_MEMBER, values, strict=True))
        facts["owner"] = json.loads(facts["owner"]) if facts["owner"] else None
        facts["words"] = json.loads(facts["words"]) if facts["words"] else []
        self.__dict__.update(facts)


def add(draft: Transaction, **facts: Any) -> Team:
    """Record a team."""
    facts["started_at"] = draft.now
    _insert(draft, "teams", _TEAM, facts)
    found = find(draft, facts["id"])
    assert found is not None
    return found


def find(draft: Transaction, team_id: str) -> Team | None:
    """Return one team."""
    found = draft.connection.execute(f"{_TEAMS} WHERE id=?", (team_id,)).fetchone()
    return Team(found) if found else None


def listed(draft: Transaction, *, ended: bool = False) -> list[Team]:
    """Return the teams that are up, or with `ended` all, oldest first."""
    where = "" if ended else " WHERE ended_at IS NULL"
    return [Team(one) for one in draft.connection.execute(f"{_TEAMS}{where} ORDER BY started_at, id")]


def change(draft: Transaction, team_id: str, **facts: Any) -> None:
    """Change what is known of a team."""
    names = ", ".join(f"{name}=?" for name in facts)
    draft.connection.execute(
        f"UPDATE teams SET {names} WHERE id=?",  # noqa: S608  (our names)
        (*facts.values(), team_id),
    )


def remove(draft: Transaction, team_id: str) -> None:
    """Drop a team that never had a member."""
    draft.connection.execute(
        "DELETE FROM teams WHERE id=? AND NOT EXISTS(SELECT 1 FROM members WHERE team_id=?)",
        (team_id, team_id),
    )


def join(draft: Transaction, **facts: Any) -> Member:
    """Record a member."""
    facts["spawned_at"] = draft.now
    _insert(draft, "members", _MEMBER, facts)
    found = member(draft, facts["session_id"])
    assert found is not None
    return found


def member(draft: Transaction, session_id: str) -> Member | None:
    """Return the membership that a session has now, or had last."""
    found = draft.connection.execute(
        f"{_MEMBERS} WHERE session_id=? ORDER BY closed_at IS NOT NULL, seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    return Member(found) if found else None


def members(draft: Transaction, team_id: str) -> list[Member]:
    """Return the members of a team in the order in which they came."""
    found = draft.connection.execute(f"{_MEMBERS} WHERE team_id=? ORDER BY seq", (team_id,))
    return [Member(one) for one in found]


def starting(draft: Transaction) -> list[Member]:
    """Return the members that nobody has greeted to the end."""
    return [
        Member(one) for one in draft.connection.execute(f"{_MEMBERS} WHERE state=? ORDER BY seq", (SPAWNING,))
    ]


def update(draft: Transaction, one: Member, **facts: Any) -> Member:
    """Change what is known of a member."""
    for name in _JSON:
        if name in facts:
            facts[name] = json.dumps(facts[name]) if facts[name] else None
    names = ", ".join(f"{name}=?" for name in facts)
    draft.connection.execute(
        f"UPDATE members SET {names} WHERE team_id=? AND session_id=? AND spawned_at=?",  # noqa: S608
        (*facts.values(), one.team_id, one.session_id, one.spawned_at),
    )
    found = member(draft, one.session_id)
    assert found is not None
    return found


def leave(draft: Transaction, one: Member) -> None:
    """Drop a member of a spawn that failed."""
    draft.connection.execute(
        "DELETE FROM members WHERE team_id=? AND session_id=? AND spawned_at=?",
        (one.team_id, one.session_id, one.spawned_at),
    )


def is_open(one: Member) -> bool:
    """Tell whether a member's pane is still to be closed."""
    return one.state != CLOSED


def note(draft: Transaction, team_id: str, message_id: str, line: str) -> bool:
    """Keep a line about a message for a team's page; False if it is there already."""
    done = draft.connection.execute(
        "INSERT OR IGNORE INTO team_lines(team_id, message_id, at, line) VALUES(?, ?, ?, ?)",
        (team_id, message_id, draft.now, line),
    )
    return done.rowcount == 1


def lines(draft: Transaction, team_id: str) -> list[tuple[float, str]]:
    """Return the lines about messages of a team, oldest first."""
    found = draft.connection.execute(
        "SELECT at, line FROM team_lines WHERE team_id=? ORDER BY at, message_id", (team_id,)
    )
    return [(float(at), str(line)) for at, line in found]


def _insert(draft: Transaction, table: str, known: tuple[str, ...], facts: dict[str, Any]) -> None:
    for name in _JSON:
        if facts.get(name) is not None:
            facts[name] = json.dumps(facts[name])
    names = [name for name in known if name in facts]
    draft.connection.execute(
        f"INSERT INTO {table}({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
        tuple(facts[name] for name in names),
    )
