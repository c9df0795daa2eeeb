"""Events of sessions, to which jobs and teams react.

A verb publishes an event inside its own transaction, so that all reactions are committed with it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Row


class SessionEvent:
    """Something happened to a session; `row` is its row afterwards."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row


class Stopping(SessionEvent):
    """A stop of the session begins."""

    __slots__ = ()


class Stopped(SessionEvent):
    """Somebody stopped the session."""

    __slots__ = ("reason",)

    def __init__(self, row: Row, reason: str | None) -> None:
        super().__init__(row)
        self.reason = reason


class Died(SessionEvent):
    """The session's process is gone, and nobody stopped it."""

    __slots__ = ("exit_status",)

    def __init__(self, row: Row, exit_status: int | None) -> None:
        super().__init__(row)
        self.exit_status = exit_status


class Renamed(SessionEvent):
    """The session has another name."""

    __slots__ = ("before",)

    def __init__(self, row: Row, before: str) -> None:
        super().__init__(row)
        self.before = before


class Resumed(SessionEvent):
    """A resume continued the session's conversation in another pane."""

    __slots__ = ()
