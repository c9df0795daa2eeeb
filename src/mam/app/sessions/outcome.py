"""The result of a verb that changes one session."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Row


class RowOutcome:
    """The row after a verb, whether the verb changed anything, and an optional note for the user."""

    __slots__ = ("changed", "note", "row")

    def __init__(self, row: Row, changed: bool = True, note: str | None = None) -> None:
        self.row = row
        self.changed = changed
        self.note = note
