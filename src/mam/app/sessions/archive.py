"""Archive an ended session."""

from __future__ import annotations

from mam.app.context import claims
from mam.core import session_transitions
from mam.core.session_row import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def archive(context: Context, caller: Caller, target: str) -> Row:
    """Archive a session that has ended. An archived session stays as it is."""
    result: dict[str, Row] = {}

    def prepare(transaction: Transaction, row: Row) -> dict[str, Any] | None:
        result["row"] = row
        if row["status"] != Status.ARCHIVED:
            action = caller.action("archive", context.now())
            result["row"] = transaction.put(session_transitions.archived(row, action))
            transaction.log(action["by"], "archive", row)
        return None

    with claims.claim_session(context, "archive", target, prepare):
        return result["row"]
