"""The table of tasks. A claim is one change of one row, so only one of several members succeeds."""

from __future__ import annotations

from mam.core import record_limits
from mam.core.task_format import CLAIMED, DONE, PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

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
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM tasks"  # noqa: S608  (names of columns)


class Task:
    """One task."""

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
        """Store the values of a row of the table."""
        self.__dict__.update(zip(_FIELDS, values, strict=True))


def add(transaction: Transaction, *, role: str, text: str, by: str, team_id: str | None = None) -> Task:
    """Record a task for a role; without a team_id, any team may claim it."""
    record_limits.check(team_id=team_id, role=role, text=text, created_by=by)
    cursor = transaction.connection.execute(
        "INSERT INTO tasks(team_id, role, text, status, created_by, created_at) VALUES(?, ?, ?, ?, ?, ?)",
        (team_id, role, text, PENDING, by, transaction.now),
    )
    return get(transaction, int(cursor.lastrowid or 0))


def get(transaction: Transaction, seq: int) -> Task:
    """Return one task that is known to exist."""
    task = find(transaction, seq)
    assert task is not None
    return task


def find(transaction: Transaction, seq: int) -> Task | None:
    """Return one task."""
    row = transaction.connection.execute(f"{_SELECT} WHERE seq=?", (seq,)).fetchone()
    return Task(row) if row else None


def listed(
    transaction: Transaction,
    *,
    role: str | None = None,
    status: str | None = None,
    team_id: str | None = None,
) -> list[Task]:
    """Return tasks, oldest first; with a team_id those of this team and those of no team."""
    filters = {key: value for key, value in (("role", role), ("status", status)) if value is not None}
    conditions = [f"{key}=?" for key in filters]
    values: list[str] = [*filters.values()]
    if team_id is not None:
        conditions.append("(team_id IS NULL OR team_id=?)")
        values.append(team_id)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return [Task(row) for row in transaction.connection.execute(f"{_SELECT}{where} ORDER BY seq", values)]


def oldest(transaction: Transaction, role: str, team_id: str | None) -> Task | None:
    """Return the next task for a role of a team."""
    return next(iter(listed(transaction, role=role, status=PENDING, team_id=team_id or "")), None)


def claim(transaction: Transaction, seq: int, member: str, pane: str | None) -> Task:
    """Record that a member claims a task; the caller of this function has checked that it may."""
    transaction.connection.execute(
        "UPDATE tasks SET status=?, claimed_by=?, pane=?, claimed_at=? WHERE seq=?",
        (CLAIMED, member, pane, transaction.now, seq),
    )
    return get(transaction, seq)


def claimed(transaction: Transaction, member: str) -> list[Task]:
    """Return the tasks that a member has claimed and not finished, oldest first."""
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE status=? AND claimed_by=? ORDER BY seq", (CLAIMED, member)
    )
    return [Task(row) for row in rows]


def has_finished(transaction: Transaction, member: str, *, since: float, until: float | None) -> bool:
    """Tell whether a task that a member had claimed was finished in this time."""
    row = transaction.connection.execute(
        "SELECT 1 FROM tasks WHERE status=? AND claimed_by=? AND done_at BETWEEN ? AND ? LIMIT 1",
        (DONE, member, since, transaction.now if until is None else until),
    ).fetchone()
    return row is not None


def finish(transaction: Transaction, seq: int, result: str, report_id: str | None) -> Task:
    """Record that a task is done, and which message reports it."""
    record_limits.check(result=result, report_id=report_id)
    transaction.connection.execute(
        "UPDATE tasks SET status=?, result=?, report_id=coalesce(?, report_id), done_at=? WHERE seq=?",
        (DONE, result, report_id, transaction.now, seq),
    )
    return get(transaction, seq)


def reported_by(transaction: Transaction, message_id: str) -> Task | None:
    """Return the task that a message reports."""
    row = transaction.connection.execute(f"{_SELECT} WHERE report_id=?", (message_id,)).fetchone()
    return Task(row) if row else None


def release(transaction: Transaction, member: str) -> list[int]:
    """Give back the unfinished tasks of a member; return their numbers."""
    numbers = [task.seq for task in claimed(transaction, member)]
    transaction.connection.execute(
        "UPDATE tasks SET status=?, claimed_by=NULL, pane=NULL, claimed_at=NULL"
        " WHERE status=? AND claimed_by=?",
        (PENDING, CLAIMED, member),
    )
    return numbers


def remove(transaction: Transaction, seq: int) -> None:
    """Delete a task of a spawn that failed."""
    transaction.connection.execute("DELETE FROM tasks WHERE seq=?", (seq,))
