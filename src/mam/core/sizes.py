"""Sizes of files and databases, as people read them. Pure."""

from __future__ import annotations


def short_size(count: int) -> str:
    """Return a number of bytes in the unit that fits: 12 KiB, 3.4 MiB, 1.5 GiB."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count / (1 << 20):.1f} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
