"""Strategies for input that somebody has damaged or made up: mostly valid examples with something wrong.

Random bytes rarely get past the first check of a reader. A real example with one strange value does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as some

# The number of examples that says that this run is a deep one: --hypothesis-profile deep
_DEEP = 1000
DEPTH = 10_000
KIB64 = 64 * 1024


def examples(number: int) -> settings:
    """Return the settings of a test: so many examples, and in a deep run those of its profile."""
    default = settings().max_examples
    return settings(max_examples=default if default >= _DEEP else number)


# What has broken a parser of somebody, as pieces of text. "\ud800" is half of a surrogate pair.
TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\n",
    "\r\n",
    "\0",
    "a\0b",
    "\t",
    "\x07",
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\u202e\u2066gnp.exe",
    "\u200b\u200d\ufeff",
    "\ud800",
    "\udcff",
    "\U0001f600",
    "e\u0301",
    "²",
    "\u0663",
    "٣" * 30,
    "-",
    "--",
    "-1",
    "+1",
    "1_000",
    "0x10",
    "1e999",
    "NaN",
    "9" * 400,
    "9" * 5000,
    "null",
    "true",
    "../../etc/passwd",
    "/",
    "~",
    "C:\\",
    "#(touch hit)",
    "#{pane_id}",
    "$(touch hit)",
    "`touch hit`",
    ";",
    "'",
    '"',
    "\\",
    "%s%n",
    "{0}",
    "*" * 100,
    "[" * 100,
    "(" * 100,
    "a" * 1000,
    "1970-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T25:61:61Z",
    "2026-11-15T08:00:00.999999999999Z",
)
_NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    10**400,
    0.5,
    -0.0,
    1e15,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
)


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


texts = some.sampled_from(TEXTS) | some.text(max_size=30)
# Half as deep as Python reads by itself: what is read well, and may be too deep for who writes it again.
_DEEP_VALUES = (_deep(90), _deep(400), {"a": {"b": _deep(200)}})
values = (
    some.sampled_from([None, True, False, [], {}, [[]], [None], {"": None}, {"a": 1}, ["x", 1], [{}]])
    | some.sampled_from(_NUMBERS)
    | texts
    | some.sampled_from(_DEEP_VALUES)
    | some.integers()
    | some.floats()
)
# What is written into bytes at any place.
PIECES: tuple[bytes, ...] = (
    *(text.encode("utf-8", "surrogatepass") for text in TEXTS),
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\x00" * 64,
    b"[" * DEPTH,
    b'{"a":' * DEPTH,
    b"[" * DEPTH + b"]" * DEPTH,
    b"x" * KIB64,
    b" " * KIB64,
    b"\n" * KIB64,
    b'"' + b"\\ud800" + b'"',
    b"1" * 5000,
    b"-" * 200,
    b": ",
    b",",
    b"}",
    b"]",
    b'{"a":1,"a":2}',
)


@some.composite
def damaged(draw: some.DrawFn, known: Sequence[bytes]) -> bytes:
    """Draw a valid example with one to four damages: a flip, a cut, a repetition, a strange piece."""
    data = draw(some.sampled_from(known))
    for _ in range(draw(some.integers(1, 4))):
        data = _DAMAGES[draw(some.integers(0, len(_DAMAGES) - 1))](draw, data, known)
    return data


def _place(draw: some.DrawFn, data: bytes) -> int:
    return draw(some.integers(0, len(data)))


def _flip(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = draw(some.integers(0, len(data) - 1))
    return data[:at] + bytes([data[at] ^ (1 << draw(some.integers(0, 7)))]) + data[at + 1 :]


def _cut(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    return data[: _place(draw, data)]


def _leave_out(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    first, last = sorted((_place(draw, data), _place(draw, data)))
    return data[:first] + data[last:]


def _repeat(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    first, last = sorted((_place(draw, data), _place(draw, data)))
    return data[:last] + data[first:]


def _insert(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(some.sampled_from(PIECES)) + data[at:]


def _overwrite(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    at, piece = _place(draw, data), draw(some.sampled_from(PIECES))
    return data[:at] + piece + data[at + len(piece) :]


def _join(draw: some.DrawFn, data: bytes, known: Sequence[bytes]) -> bytes:
    other = draw(some.sampled_from(known))
    return data[: _place(draw, data)] + other[_place(draw, other) :]


def _double_line(draw: some.DrawFn, data: bytes, _known: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = draw(some.integers(0, len(lines) - 1))
    return b"\n".join([*lines[: at + 1], *lines[at:]])


_DAMAGES: tuple[Callable[[some.DrawFn, bytes, Sequence[bytes]], bytes], ...] = (
    _flip,
    _cut,
    _leave_out,
    _repeat,
    _insert,
    _overwrite,
    _join,
    _double_line,
)


@some.composite
def strange_documents(draw: some.DrawFn, known: Sequence[Any]) -> Any:
    """Draw a JSON document of the right form in which one to three values are not what they should be."""
    document = draw(some.sampled_from(known))
    for _ in range(draw(some.integers(1, 3))):
        document = _with_strange(draw, document)
    return document


def _with_strange(draw: some.DrawFn, value: Any) -> Any:
    if isinstance(value, (dict, list)) and value and draw(some.integers(0, 5)):
        if isinstance(value, list):
            at = draw(some.integers(0, len(value) - 1))
            return [*value[:at], _with_strange(draw, value[at]), *value[at + 1 :]]
        key = draw(some.sampled_from(list(value)))
        way = draw(some.integers(0, 7))
        if way == 0:
            return {other: inner for other, inner in value.items() if other != key}
        if way == 1:
            return {**value, draw(texts): value[key]}
        return {**value, key: _with_strange(draw, value[key])}
    return draw(values)


def as_json(document: Any) -> bytes:
    """Return a document as a lenient program writes it: with NaN, and with halves of surrogate pairs."""
    return json.dumps(document).encode()


def json_texts(known: Sequence[Any]) -> some.SearchStrategy[bytes]:
    """Draw the bytes of a JSON file: of the right form with strange values, or damaged."""
    whole = [as_json(document) for document in known]
    return some.one_of(
        strange_documents(known).map(as_json), strange_documents(known).map(_twice), damaged(whole)
    )


def _twice(document: Any) -> bytes:
    """Return an object with each of its keys twice."""
    text = as_json(document)
    if not isinstance(document, dict) or not document:
        return text
    return text[:-1] + b"," + text[1:]


def json_lines(known: Sequence[Any]) -> some.SearchStrategy[bytes]:
    """Draw the bytes of a file with one JSON object per line, some of them strange or damaged."""
    line = some.one_of(some.sampled_from(known).map(as_json), json_texts(known))
    lines = some.lists(line, min_size=1, max_size=5)
    return some.tuples(lines, some.sampled_from([b"\n", b"", b"\r\n", b"\n\n"])).map(
        lambda drawn: b"\n".join(drawn[0]) + drawn[1]
    )
