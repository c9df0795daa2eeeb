"""Whether the process and the pane of a session exist. Pure."""

from __future__ import annotations

from enum import StrEnum


class Liveness(StrEnum):
    """What a look finds of a session.

    `alive`: its process runs in its pane. `dead`: the pane is there, the process has ended.
    `gone`: neither is there, or a stranger is in the pane. `loose`: the process lives without its pane.
    """

    ALIVE = "alive"
    DEAD = "dead"
    GONE = "gone"
    LOOSE = "loose"
    UNKNOWN = "unknown"
