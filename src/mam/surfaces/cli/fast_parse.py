"""Reading a plain line without argparse, whose import takes a third of a listing's time.

A verb that is run all day says in `FLAGS`, `VALUES` and `UNSET` what its parser would return; a test
compares the two. A line with anything else in it goes to the parser.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Options:
    """Options by name, as a parser gives them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        """Say which option is missing."""
        raise AttributeError(f"no option {name!r}")


def read(
    flags: Mapping[str, str],
    unset: Mapping[str, Any],
    words: list[str],
    options: Mapping[str, tuple[str, Callable[[str], Any]]] | None = None,
) -> Options | None:
    """Return the options of a line of flags, and of options with a value each; None for any other line.

    What takes a value says how it is read; one that it does not take (None) is left to the parser.
    """
    values = {
        "json": False,
        "workspace": None,
        "registry": None,
        **dict.fromkeys(flags.values(), False),
        **unset,
    }
    rest = iter(words)
    for word in rest:
        name = "json" if word == "--json" else flags.get(word)
        if name is not None:
            values[name] = True
            continue
        if options is None or word not in options:
            return None
        name, read_value = options[word]
        value = next(rest, "-")
        # What begins with a dash may be an option that lacks its own value.
        found = None if value.startswith("-") or not value else read_value(value)
        if found is None:
            return None
        values[name] = found
    return Options(values)
