"""The table of notices that a person got, so that mam sends each notice once while its cause lasts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction


def unsent(transaction: Transaction, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the notices that mam has not sent yet."""
    sent_notices = sent(transaction)
    return [notice for notice in now if (notice["session_id"], notice["kind"]) not in sent_notices]


def ended(transaction: Transaction, now: list[dict[str, Any]], unsure: Collection[str]) -> bool:
    """Tell whether the cause of a notice has ended; the cause for a session in `unsure` lasts."""
    return bool(sent(transaction) - _lasting(transaction, now, unsure))


def store_lasting(transaction: Transaction, now: list[dict[str, Any]], unsure: Collection[str]) -> None:
    """Keep the notices whose cause lasts or may last; mam can send the others again."""
    lasting = _lasting(transaction, now, unsure)
    transaction.connection.execute("DELETE FROM notices")
    transaction.connection.executemany("INSERT OR IGNORE INTO notices VALUES(?, ?)", list(lasting))


def _lasting(
    transaction: Transaction, now: list[dict[str, Any]], unsure: Collection[str]
) -> set[tuple[str, str]]:
    lasting = {(notice["session_id"], notice["kind"]) for notice in now}
    return lasting | {(session_id, kind) for session_id, kind in sent(transaction) if session_id in unsure}


def sent(transaction: Transaction) -> set[tuple[str, str]]:
    """Return the sessions with a sent notice, each with the kind of the notice."""
    return set(transaction.connection.execute("SELECT session_id, kind FROM notices"))
