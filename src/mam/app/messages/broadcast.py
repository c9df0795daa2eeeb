"""The same words to several sessions, each with a receipt of its own; one that fails stops no other."""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.app.messages.send import send
from mam.core.errors import MamError, Refused, Usage
from mam.core.message import MessageState
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.transaction import Transaction
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
    """Send words to every running session that fits all that is named; never to the caller.

    `ids` are those among whom the others choose.
    """
    if not (roles or team or kinds or everyone):
        raise Usage("say to whom: by role, team or agent, or to all", hint="mam broadcast --role developer …")
    rows = [row for row in _chosen(context, caller, roles, team, kinds) if ids is None or row["id"] in ids]
    if not rows:
        raise Refused("no running session fits", hint="mam ls shows them")
    from concurrent.futures import ThreadPoolExecutor

    def tell(row: Row) -> dict[str, Any]:
        twin = context.for_thread()
        try:
            return send(twin, caller, row["id"], text, when=when, timeout=timeout)
        except MamError as error:
            return _failed(row, error)
        finally:
            twin.close()

    with ThreadPoolExecutor(min(_AT_ONCE, len(rows))) as crew:
        return list(crew.map(tell, rows))


def _chosen(
    context: Context, caller: Caller, roles: Sequence[str], team: Sequence[str], kinds: Sequence[str]
) -> list[Row]:
    nobody: set[str] = set()
    members = context.registry.peek(lambda draft: _members(draft, team), nobody) if team else nobody
    me = caller.name
    return [
        row
        for row in context.registry.view().rows
        if is_running(row)
        and row.get("id") not in (None, me)
        and (not roles or row.get("role") in roles)
        and (not kinds or row["agent"] in kinds)
        and (not team or row["id"] in members)
        # Who is meant only as one of all, and cannot be written to, is not meant.
        and (roles or team or kinds or context.kind(row["agent"]).reads_screen)
    ]


def _members(draft: Transaction, names: Sequence[str]) -> set[str]:
    """Return the sessions of teams that are up, by the name or id of the team."""
    found = [one for one in teams.listed(draft) if one.id in names or one.name in names]
    members = {one.session_id for up in found for one in teams.members(draft, up.id) if teams.is_open(one)}
    return members | {one.master_id for one in found if one.master_id}


def _failed(row: Row, error: MamError) -> dict[str, Any]:
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
