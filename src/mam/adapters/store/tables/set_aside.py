"""The table of what was set aside: items that mam could not work on, each with the reason."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction


class SetAside:
    """One item. `version` is that of the mam that gave up on it, and `data` is what recovery needs."""

    id: int
    kind: str
    key: str
    reason: str
    at: float
    version: str

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table."""
        self.id, self.kind, self.key, self.reason, self.at, self.version, data = values
        try:
            document = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            document = {}
        self.data: dict[str, Any] = document if isinstance(document, dict) else {}


def add(
    transaction: Transaction, kind: str, key: str, reason: str, version: str, data: dict[str, Any]
) -> bool:
    """Set an item aside; tell whether this is news, and not the same item with the same reason."""
    last = transaction.connection.execute(
        "SELECT reason, version FROM set_aside WHERE kind=? AND key=?", (kind, key)
    ).fetchone()
    if last == (reason, version):
        transaction.connection.execute(
            "UPDATE set_aside SET data=? WHERE kind=? AND key=?",
            (json.dumps(data, ensure_ascii=True), kind, key),
        )
        return False
    transaction.connection.execute(
        "INSERT OR REPLACE INTO set_aside(kind, key, reason, at, version, data) VALUES(?, ?, ?, ?, ?, ?)",
        (kind, key, reason, transaction.now, version, json.dumps(data, ensure_ascii=True)),
    )
    return True


def listed(transaction: Transaction, kind: str | None = None) -> list[SetAside]:
    """Return the items, oldest first; of one kind, or all."""
    rows = transaction.connection.execute(
        "SELECT id, kind, key, reason, at, version, data FROM set_aside WHERE ?1 IS NULL OR kind=?1"
        " ORDER BY id",
        (kind,),
    )
    return [SetAside(values) for values in rows]


def remove(transaction: Transaction, item: SetAside) -> None:
    """Remove an item that is worked on again."""
    transaction.connection.execute("DELETE FROM set_aside WHERE id=?", (item.id,))


def take_up(transaction: Transaction, kind: str, key: str) -> None:
    """Remove the item with this key, if it is set aside: mam can work on it again, or it has ended."""
    transaction.connection.execute("DELETE FROM set_aside WHERE kind=? AND key=?", (kind, key))


def mark_tried(transaction: Transaction, item: SetAside, version: str) -> None:
    """Record which version of mam has last decided on an item."""
    transaction.connection.execute("UPDATE set_aside SET version=? WHERE id=?", (version, item.id))


def remove_old(transaction: Transaction, before: float) -> None:
    """Forget the items that were set aside before a time."""
    transaction.connection.execute("DELETE FROM set_aside WHERE at < ?", (before,))


def is_by_another_version(transaction: Transaction, kind: str, version: str) -> bool:
    """Tell whether another version of mam has set such an item aside, with the cheapest query."""
    query = "SELECT 1 FROM set_aside WHERE kind=? AND version!=? LIMIT 1"
    return transaction.connection.execute(query, (kind, version)).fetchone() is not None
