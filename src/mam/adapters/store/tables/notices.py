"""What a person was told about sessions that need them, so that each episode is told once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.transaction import Transaction


def fresh(draft: Transaction, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that nobody was told of yet."""
    told = known(draft)
    return [one for one in now if (one["session_id"], one["kind"]) not in told]


def ended(draft: Transaction, now: list[dict[str, Any]], unsure: Collection[str]) -> bool:
    """Tell whether an episode is over; that of a session in `unsure` lasts."""
    return bool(known(draft) - _lasting(draft, now, unsure))


def keep(draft: Transaction, now: list[dict[str, Any]], unsure: Collection[str]) -> None:
    """Remember what holds now or may still hold, and nothing else: what comes back is told again."""
    kept = _lasting(draft, now, unsure)
    draft.connection.execute("DELETE FROM notices")
    draft.connection.executemany("INSERT OR IGNORE INTO notices VALUES(?, ?)", list(kept))


def _lasting(draft: Transaction, now: list[dict[str, Any]], unsure: Collection[str]) -> set[tuple[str, str]]:
    told = {(one["session_id"], one["kind"]) for one in now}
    return told | {(session_id, kind) for session_id, kind in known(draft) if session_id in unsure}


def known(draft: Transaction) -> set[tuple[str, str]]:
    """Return the sessions of which somebody was told, each with the kind of the notice."""
    return set(draft.connection.execute("SELECT session_id, kind FROM notices"))
