"""Passes on each new event of a job from the ledger, whichever process has recorded it. Reads only."""

from __future__ import annotations

from mam.adapters.store.tables import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.tables.jobs import Entry
    from mam.app.context.context import Context


class JobEventNews:
    """A resident task that passes on each event that was recorded after this object was made.

    An event has a number. The other entries of a log, such as a refusal, have none.
    """

    def __init__(self, context: Context, tell: Callable[[dict[str, Any]], None]) -> None:
        """`tell` gets `{event}` for each event, in the order of the ledger."""
        self._context = context
        self._tell = tell
        self._last = context.registry.peek(jobs.newest, 0)

    def due(self) -> float:
        """Return never: each commit leads to a pass, and each pass to a tick."""
        return float("inf")

    def handles(self) -> tuple[int, ...]:
        """Return no handles."""
        return ()

    def is_needed(self) -> bool:
        """Return False: this task keeps no resident running."""
        return False

    def tick(self) -> str:
        """Pass on the new events; never end the resident."""
        none: list[Entry] = []
        for entry in self._context.registry.peek(
            lambda transaction: jobs.since(transaction, self._last), none
        ):
            self._last = entry.number
            if entry.document["seq"]:
                self._tell({"event": entry.document})
        return ""
