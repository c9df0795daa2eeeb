"""The verb `broadcast`: one text to several sessions, each with its own receipt.

A session that cannot be messaged does not stop the others.
"""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.app.messages.send import send
from mam.core.errors import MamError, Refused, Usage
from mam.core.message_rules import MessageState
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_AT_ONCE = 4


def broadcast(
    context: Context,
    caller: Caller,
    text: str,
    *,
    roles: Sequence[str] = (),
    team: Sequence[str] = (),
    kinds: Sequence[str] = (),
    everyone: bool = False,
    ids: Sequence[str] | None = None,
    when: str = "ready",
    timeout: float = 0.0,
) -> list[dict[str, Any]]:
    """Send a text to every running session that fits all filters; never to the caller.

    With `ids`, only these sessions can be recipients.
    """
    if not (roles or team or kinds or everyone):
        raise Usage(
            "name the recipients: a role, a team, an agent, or all", hint="mam broadcast --role developer …"
        )
    rows = [
        row for row in _recipients(context, caller, roles, team, kinds) if ids is None or row["id"] in ids
    ]
    if not rows:
        raise Refused("no running session fits", hint="mam ls shows them")
    from concurrent.futures import ThreadPoolExecutor

    def send_to(row: Row) -> dict[str, Any]:
        thread_context = context.for_thread()
        try:
            return send(thread_context, caller, row["id"], text, when=when, timeout=timeout)
        except MamError as error:
            return _failed_receipt(row, error)
        finally:
            thread_context.close()

    with ThreadPoolExecutor(min(_AT_ONCE, len(rows))) as pool:
        return list(pool.map(send_to, rows))


def _recipients(
    context: Context, caller: Caller, roles: Sequence[str], team: Sequence[str], kinds: Sequence[str]
) -> list[Row]:
    none: set[str] = set()
    members = context.registry.peek(lambda transaction: _members(transaction, team), none) if team else none
    me = caller.name
    return [
        row
        for row in context.registry.view().rows
        if is_running(row)
        and row.get("id") not in (None, me)
        and (not roles or row.get("role") in roles)
        and (not kinds or row["agent"] in kinds)
        and (not team or row["id"] in members)
        # With --all alone, skip agents whose screen mam cannot read: mam cannot type to them.
        and (roles or team or kinds or context.kind(row["agent"]).reads_screen)
    ]


def _members(transaction: Transaction, names: Sequence[str]) -> set[str]:
    """Return the sessions of open teams, members and masters, by the name or id of the team."""
    chosen = [team for team in teams.listed(transaction) if team.id in names or team.name in names]
    members = {
        member.session_id
        for team in chosen
        for member in teams.members(transaction, team.id)
        if teams.is_open(member)
    }
    return members | {team.master_id for team in chosen if team.master_id}


def _failed_receipt(row: Row, error: MamError) -> dict[str, Any]:
    return {
        "message_id": None,
        "session": row["name"],
        "state": MessageState.FAILED,
        "evidence": None,
        "carrier": None,
        "added": None,
        "attempts": 0,
        "elapsed_ms": 0.0,
        "reason": error.message,
    }
