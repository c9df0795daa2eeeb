"""Has the resident of an older mam finish what it does and leave, so that the new one takes its place."""

from __future__ import annotations

import signal

from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.system.process import Identity
from mam.app.context.resident_start_and_lock import is_older
from mam.core.errors import Unavailable
from mam.core.message_rules import MessageState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.process_lock import ProcessLock
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

# Seconds for what the older resident is typing, and then for its end. One of mam 0.1 ends within a second.
_TYPING_SECONDS, _END_SECONDS = 20.0, 10.0
_STEP = 0.05


def take_over(context: Context, lock: ProcessLock, take: Callable[[], bool]) -> bool:
    """Take the lock of a resident of an older mam; False if the holder is not of an older one.

    Raises Unavailable if the older resident does not leave.
    """
    holder = lock.holder()
    if holder is None:
        return take()
    older = Identity.from_json(holder)
    if older is None or not is_older(holder):
        return False
    typing_ends = Deadline(_TYPING_SECONDS)
    while context.registry.peek(lambda transaction: _is_typing(transaction, holder), False):
        if not typing_ends.pause(_STEP):
            break
    process.signal(older, signal.SIGTERM)
    ends = Deadline(_END_SECONDS)
    while not take():
        # It says nothing while the older one ends, and in the moment in which another one takes the lock.
        current = Identity.from_json(lock.holder())
        if current is not None and current != older:
            return False
        if not ends.pause(_STEP):
            raise Unavailable(
                f"the resident of mam {holder.get('version', '0.1')}, process {older.pid}, does not leave",
                hint=f"end it: kill -KILL {older.pid}",
            )
    return True


def _is_typing(transaction: Transaction, holder: dict[str, Any]) -> bool:
    """Tell whether a process is typing a message: the proof that the agent has it is worth the wait."""
    return any(
        message.state == MessageState.TYPING and (message.owner or {}).get("pid") == holder["pid"]
        for message in messages.open_of(transaction)
    )
