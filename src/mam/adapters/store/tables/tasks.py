"""Tasks of roles. A claim is one change of one row, so of any number who try one succeeds."""

from __future__ import annotations

from mam.core.task import CLAIMED, DONE, PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction

_FIELDS = (
    "seq",
    "team_id",
    "role",
    "text",
    "status",
    "claimed_by",
    "pane",
    "result",
    "report_id",
    "created_by",
    "created_at",
    "claimed_at",
    "done_at",
)
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM tasks"  # noqa: S608  (our names)


class Task:
    """One task as it stands."""

    seq: int
    team_id: str | None
    role: str
    text: str
    status: str
    claimed_by: str | None
    pane: str | None
    result: str | None
    report_id: str | None
    created_by: str
    created_at: float
    claimed_at: float | None
    done_at: float | None

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Take a row of the table."""
        self.__dict__.update(zip(_FIELDS, values, strict=True))


def add(draft: Transaction, *, role: str, text: str, by: str, team_id: str | None = None) -> Task:
    """Record a task that waits for its role; without a team, any team's."""
    done = draft.connection.execute(
        "INSERT INTO tasks(team_id, role, text, status, created_by, created_at) VALUES(?, ?, ?, ?, ?, ?)",
        (team_id, role, text, PENDING, by, draft.now),
    )
    return get(draft, int(done.lastrowid or 0))


def get(draft: Transaction, seq: int) -> Task:
    """Return one task that is known to exist."""
    found = find(draft, seq)
    assert found is not None
    return found


def find(draft: Transaction, seq: int) -> Task | None:
    """Return one task."""
    found = draft.connection.execute(f"{_SELECT} WHERE seq=?", (seq,)).fetchone()
    return Task(found) if found else None


def listed(
    draft: Transaction, *, role: str | None = None, status: str | None = None, team_id: str | None = None
) -> list[Task]:
    """Return tasks in the order in which they came; those of a team, and those of no team, with it."""
    wanted = {"role": role, "status": status}
    known = {key: value for key, value in wanted.items() if value is not None}
    conditions = [f"{key}=?" for key in known]
    values: list[str] = [*known.values()]
    if team_id is not None:
        conditions.append("(team_id IS NULL OR team_id=?)")
        values.append(team_id)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return [Task(one) for one in draft.connection.execute(f"{_SELECT}{where} ORDER BY seq", values)]


def oldest(draft: Transaction, role: str, team_id: str | None) -> Task | None:
    """Return the task that a role of a team does next."""
    return next(iter(listed(draft, role=role, status=PENDING, team_id=team_id or "")), None)


def claim(draft: Transaction, seq: int, who: str, pane: str | None) -> Task:
    """Give a task to somebody; the caller has checked that it may."""
    draft.connection.execute(
        "UPDATE tasks SET status=?, claimed_by=?, pane=?, claimed_at=? WHERE seq=?",
        (CLAIMED, who, pane, draft.now, seq),
    )
    return get(draft, seq)


def claimed(draft: Transaction, who: str) -> list[Task]:
    """Return what somebody is at, oldest first."""
    found = draft.connection.execute(
        f"{_SELECT} WHERE status=? AND claimed_by=? ORDER BY seq", (CLAIMED, who)
    )
    return [Task(one) for one in found]


def finish(draft: Transaction, seq: int, result: str, report_id: str | None) -> Task:
    """Say that a task is done, and which message says so."""
    draft.connection.execute(
        "UPDATE tasks SET status=?, result=?, report_id=coalesce(?, report_id), done_at=? WHERE seq=?",
        (DONE, result, report_id, draft.now, seq),
    )
    return get(draft, seq)


def release(draft: Transaction, who: str) -> list[int]:
    """Give back what somebody was at and did not finish; return the numbers."""
    found = [one.seq for one in claimed(draft, who)]
    draft.connection.execute(
        "UPDATE tasks SET status=?, claimed_by=NULL, pane=NULL, claimed_at=NULL"
        " WHERE status=? AND claimed_by=?",
        (PENDING, CLAIMED, who),
    )
    return found


def remove(draft: Transaction, seq: int) -> None:
    """Drop a task of a spawn that failed."""
    draft.connection.execute("DELETE FROM tasks WHERE seq=?", (seq,))
