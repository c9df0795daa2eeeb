"""Differences that a monitor found: each episode once, in order, and how far they were printed."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.transaction import Transaction

_CURSOR = "drift_cursor"
# A report is for now; who wants history reads the log.
_KEPT = 1000


def is_known(draft: Transaction, key: str) -> bool:
    """Tell whether this episode was recorded and still lasts."""
    found = draft.connection.execute("SELECT 1 FROM drifts WHERE key=? AND is_open", (key,)).fetchone()
    return found is not None


def has_open(draft: Transaction) -> bool:
    """Tell whether anything was reported that may have ended since."""
    return draft.connection.execute("SELECT 1 FROM drifts WHERE is_open").fetchone() is not None


def record(draft: Transaction, drift: dict[str, Any], *, written: bool) -> None:
    """Keep a difference; one that was written into the registry is over with that."""
    draft.connection.execute(
        "INSERT INTO drifts(key, at, is_open, data) VALUES(?, ?, ?, ?)",
        (drift["id"], draft.now, not written, json.dumps({**drift, "written": written})),
    )
    draft.connection.execute("DELETE FROM drifts WHERE seq <= (SELECT max(seq) FROM drifts) - ?", (_KEPT,))


def close_others(draft: Transaction, keys: Iterable[str], about: Iterable[str]) -> None:
    """End the episodes of these sessions that were not seen any more: the next one is a new one."""
    lasting, sessions = set(keys), set(about)
    found = draft.connection.execute("SELECT seq, key, data FROM drifts WHERE is_open").fetchall()
    for seq, key, data in found:
        if key not in lasting and json.loads(data).get("session") in sessions:
            draft.connection.execute("UPDATE drifts SET is_open=0 WHERE seq=?", (seq,))


def unprinted(draft: Transaction) -> list[dict[str, Any]]:
    """Return what was recorded since the last printed pass, oldest first."""
    return [drift for _, _, drift in since(draft, draft.meta(_CURSOR) or 0)]


def newest(draft: Transaction) -> int:
    """Return the number of the last one."""
    return int(draft.connection.execute("SELECT coalesce(max(seq), 0) FROM drifts").fetchone()[0])


def since(draft: Transaction, number: int) -> list[tuple[int, float, dict[str, Any]]]:
    """Return those after a number, oldest first, each with its own number and time."""
    found = draft.connection.execute("SELECT seq, at, data FROM drifts WHERE seq > ? ORDER BY seq", (number,))
    return [(seq, at, json.loads(data)) for seq, at, data in found]


def set_printed(draft: Transaction) -> None:
    """Remember that everything up to now was printed."""
    last = newest(draft)
    if last != (draft.meta(_CURSOR) or 0):
        draft.set_meta(_CURSOR, last)
