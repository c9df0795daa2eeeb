"""The pause before something that failed is tried again: 1 s at first, then twice as long, at most 10 min."""

from __future__ import annotations

_SHORTEST, _LONGEST, _MOST_DOUBLINGS = 1.0, 600.0, 10


def pause_after(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row, of which there is one at least."""
    return min(_LONGEST, _SHORTEST * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
