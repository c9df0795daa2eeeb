"""Watches a root, or follows its resident and takes its place when it has ended."""

from __future__ import annotations

from mam.app.context.resident_start_and_lock import lock_holder
from mam.core.errors import ResidentRuns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.app.context.context import Context

# Seconds between checks whether the resident still runs.
NET = 1.0


def watch_or_follow(watch: Callable[[], str], follow: Callable[[], str]) -> str:
    """Watch, or follow until the resident has ended and then watch; return why it ended.

    `follow` returns an empty string once no resident runs.
    """
    while True:
        try:
            return watch()
        except ResidentRuns:
            if reason := follow():
                return reason


def is_watched(context: Context) -> bool:
    """Tell whether a resident runs."""
    return lock_holder(context) is not None
