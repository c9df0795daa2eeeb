"""The result of a verb that changes one session."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.core.session_row import Row


class RowOutcome:
    """The row after a verb, whether the verb changed anything, and an optional note for the user.

    `left_running` is for a stop: the processes that the session detached and that still run.
    """

    __slots__ = ("changed", "left_running", "note", "row")

    def __init__(
        self,
        row: Row,
        changed: bool = True,
        note: str | None = None,
        left_running: list[dict[str, Any]] | None = None,
    ) -> None:
        self.row = row
        self.changed = changed
        self.note = note
        self.left_running = left_running
