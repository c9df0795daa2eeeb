"""Parse simple command lines without argparse, whose import takes a third of the time of `mam ls`.

A verb that runs often declares in `FLAGS` and `UNSET` what its parser would return; a test compares the
two. The parser handles every other command line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Options:
    """Options as attributes, like those of an argparse namespace."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        """Name the missing option."""
        raise AttributeError(f"no option {name!r}")


def read(
    flags: Mapping[str, str],
    unset: Mapping[str, Any],
    arguments: list[str],
    options: Mapping[str, tuple[str, Callable[[str], Any]]] | None = None,
) -> Options | None:
    """Return the options of a line that holds only these flags and options; None for any other line.

    `options` maps an option to its name and a function that reads its value. If the function returns None,
    the line is left to the parser.
    """
    values = {
        "json": False,
        "workspace": None,
        "registry": None,
        **dict.fromkeys(flags.values(), False),
        **unset,
    }
    rest = iter(arguments)
    for word in rest:
        name = "json" if word == "--json" else flags.get(word)
        if name is not None:
            values[name] = True
            continue
        if options is None or word not in options:
            return None
        name, read_value = options[word]
        value = next(rest, "-")
        # A value that begins with a dash may be the next option.
        parsed = None if value.startswith("-") or not value else read_value(value)
        if parsed is None:
            return None
        values[name] = parsed
    return Options(values)
