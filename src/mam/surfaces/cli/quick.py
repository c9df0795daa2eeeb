"""Reading a line of plain flags without argparse, whose import takes a third of a listing's time.

A verb that people run all day says in `FLAGS` and `UNSET` what its parser would return; a test
compares the two. A line with anything else in it goes to the parser.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Options:
    """Options by name, as a parser gives them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        """Say which option is missing."""
        raise AttributeError(f"no option {name!r}")


def read(flags: Mapping[str, str], unset: Mapping[str, Any], words: list[str]) -> Options | None:
    """Return the options of a line of flags, each known; None for any other line."""
    values = {
        "json": False,
        "workspace": None,
        "registry": None,
        **dict.fromkeys(flags.values(), False),
        **unset,
    }
    for word in words:
        name = "json" if word == "--json" else flags.get(word)
        if name is None:
            return None
        values[name] = True
    return Options(values)
