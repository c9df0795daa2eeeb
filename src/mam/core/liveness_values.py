"""The liveness of a session: whether its process and its pane exist. Pure."""

from __future__ import annotations

from mam.core.string_enum import StrEnum


class Liveness(StrEnum):
    """Whether a session's process and pane exist.

    `alive`: its process runs in its pane. `dead`: its pane exists, but the process has ended.
    `gone`: neither exists, or another process is in the pane. `loose`: the process runs without its pane.
    """

    ALIVE = "alive"
    DEAD = "dead"
    GONE = "gone"
    LOOSE = "loose"
    UNKNOWN = "unknown"
