"""Checks of options that several verbs share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def refuse_unknown(options: Mapping[str, object]) -> None:
    """Raise TypeError for options that no code popped, as Python does for unknown arguments."""
    if options:
        raise TypeError(f"unknown options: {', '.join(options)}")
