"""What a person was told about sessions that need them, so that each episode is told once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.draft import Draft


def fresh(draft: Draft, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that nobody was told of yet."""
    known = _known(draft)
    return [one for one in now if (one["session_id"], one["kind"]) not in known]


def ended(draft: Draft, now: list[dict[str, Any]]) -> bool:
    """Tell whether an episode is over."""
    return bool(_known(draft) - {(one["session_id"], one["kind"]) for one in now})


def keep(draft: Draft, now: list[dict[str, Any]]) -> None:
    """Remember what holds now and nothing else: what comes back is told again."""
    draft.connection.execute("DELETE FROM notices")
    draft.connection.executemany(
        "INSERT OR IGNORE INTO notices VALUES(?, ?)", [(one["session_id"], one["kind"]) for one in now]
    )


def _known(draft: Draft) -> set[tuple[str, str]]:
    return set(draft.connection.execute("SELECT session_id, kind FROM notices"))
