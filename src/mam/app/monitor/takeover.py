"""Watching a root, or going along with who does: when that one has ended, this process takes its place."""

from __future__ import annotations

from mam.app.context.start_resident import lock
from mam.core.errors import ResidentRuns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.app.context.context import Context

# Seconds between looks whether the resident is still there.
NET = 1.0


def watch_or_follow(watch: Callable[[], str], go_along: Callable[[], str]) -> str:
    """Watch, or go along until the resident has ended and then watch; return why it ended.

    `go_along` returns nothing once nobody watches any more.
    """
    while True:
        try:
            return watch()
        except ResidentRuns:
            if why := go_along():
                return why


def is_watched(context: Context) -> bool:
    """Tell whether a resident is awake."""
    return lock(context).holder() is not None
