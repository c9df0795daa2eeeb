"""JSON for the modules that every command imports, without the package json until it is needed.

The package compiles six regular expressions when it is imported, which takes as long as all other work of a
listing on its rows. The scanner written in C, which `json.loads` uses as well, needs none of them.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"


class _Options:
    """What `json.loads` tells the scanner where its caller gives no options."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = {name: float(name) for name in ("NaN", "Infinity", "-Infinity")}.__getitem__


_scan = _json.make_scanner(_Options)  # type: ignore[arg-type]


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text as `json.loads` does, with the same errors."""
    decoded = _decoded(text) if isinstance(text, bytes) else text
    if isinstance(decoded, str):
        try:
            value, end = _scan(decoded, 0)
        except StopIteration:
            pass
        else:
            if end == len(decoded) or not decoded[end:].strip(_SPACE):
                return value
    import json

    return json.loads(text)


def _decoded(text: bytes) -> str | None:
    """Return a text in UTF-8; None for what `json.loads` may know as another encoding."""
    try:
        return text.decode() if b"\0" not in text else None
    except UnicodeDecodeError:
        return None


def dumps(value: object, **options: Any) -> str:
    """Return a value as JSON text, as `json.dumps` does."""
    import json

    return json.dumps(value, **options)
