"""Whether a process may be one that a session has detached: `setsid -f mam answer worker allow`. Pure.

A process whose parent ends gets another parent, its **reaper**: an ancestor that collects orphans, mostly
init or `systemd --user`. A tmux server is such an orphan itself, so the ancestors of the server are the only
processes that can become the parent of what a session detaches.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Protocol, TypeVar

    class Process(Protocol):
        """The facts of a process; `session` is the id of its terminal session, as setsid makes one."""

        pid: int
        parent: int
        start: int
        session: int

    ProcessT = TypeVar("ProcessT", bound=Process)


def below_reaper(lineage: Sequence[ProcessT], reapers: Collection[int]) -> Sequence[ProcessT]:
    """Return the part of a lineage (a process, its parent, and so on) that is below the first reaper."""
    for position, process in enumerate(lineage):
        if process.pid in reapers:
            return lineage[:position]
    return lineage


def may_be_orphan_of(
    top: Process, reaper: Process | None, leader: Process | None, session_start: int
) -> bool:
    """Tell whether a descendant of a session's process may have become this child of a reaper.

    `reaper` is None if its facts are hidden, as they may be for processes of other users. `leader` is the
    leader of the terminal session of `top`, None if it has ended. The process of a session
    leads a terminal session of its own. So its descendants are in that one or in a later one, and never in
    that of the reaper, or in one that is older than they.
    """
    if top.start < session_start or (reaper is not None and top.session == reaper.session):
        return False
    return leader is None or leader.start >= session_start
