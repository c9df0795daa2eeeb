"""Reads YAML into values with line numbers, and writes values as YAML.

The reader uses PyYAML's events and not its constructor, because mam must refuse what YAML accepts:
duplicate keys, tags, aliases that expand without end, and a depth at which PyYAML overflows the C stack.
Timestamps stay text.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

from mam.core.errors import RegistryCorrupt

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

WAY_OUT = "correct the line, or move the file away; mam then writes a new one from its database"
_MOST_VALUES = 2_000_000
_LONGEST_NUMBER = 40
_DEEPEST = 100
LARGEST = 64 * 1024 * 1024
_MERGE = "tag:yaml.org,2002:merge"
_NO_TAG = (None, "!")
_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_TEXT = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp")
_TRUE = frozenset(("yes", "true", "on"))


class Mapping(dict[str, Any]):
    """A mapping that knows the line of each of its keys and of its own start, counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class Unusable(RegistryCorrupt):
    """The file is not a registry."""

    def __init__(self, line: int | None, reason: str, path: str) -> None:
        """Begin the message with the path and the line, where the person has to look."""
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {reason}", hint=WAY_OUT)
        self.line = line


def parse(text: bytes, path: str) -> Any:
    """Return the document in text as values; mappings carry their lines."""
    if len(text) > LARGEST:
        raise Unusable(None, f"larger than {LARGEST // 1024 // 1024} MB", path)
    try:
        return _Reader(text, path).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not valid YAML"
        raise Unusable(mark.line + 1 if mark else None, str(problem), path) from None
    except (RecursionError, ValueError) as error:
        raise Unusable(None, f"not readable as YAML ({type(error).__name__})", path) from None


class _Reader:
    """Builds values from the parser's events, and checks depth and size before they can do harm."""

    def __init__(self, text: bytes, path: str) -> None:
        self.loader = Loader(text)
        self.path = path
        self.count = 0
        self.anchors: dict[str, tuple[Any, int]] = {}
        # The anchors whose values have begun, and may not be complete yet.
        self.begun: set[str] = set()

    def document(self) -> Any:
        """Return the only document; None for a stream without one."""
        self.loader.get_event()
        if self.loader.check_event(yaml.StreamEndEvent):
            return None
        self.loader.get_event()
        document = self.value(self.loader.get_event(), 0)
        self.loader.get_event()
        event = self.loader.get_event()
        if not isinstance(event, yaml.StreamEndEvent):
            raise Unusable(_line(event), "a second document begins here", self.path)
        return document

    def value(self, event: Any, depth: int) -> Any:
        self.count += 1
        self._check_size(event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if not event.anchor:
            return self._fresh(event, depth)
        if event.anchor in self.begun:
            # PyYAML, with which other programs read the file, refuses it.
            raise Unusable(_line(event), f"the anchor &{event.anchor} is here twice", self.path)
        self.begun.add(event.anchor)
        before = self.count
        value = self._fresh(event, depth)
        self.anchors[event.anchor] = (value, self.count - before)
        return value

    def _check_size(self, event: Any, depth: int) -> None:
        if self.count > _MOST_VALUES or depth > _DEEPEST:
            raise Unusable(_line(event), "nested or repeated beyond any registry", self.path)

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise Unusable(_line(event), f"the alias *{event.anchor} names nothing before it", self.path)
        value, size = self.anchors[event.anchor]
        self.count += size
        self._check_size(event, 0)
        return value

    def _fresh(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if event.tag not in _NO_TAG:
            raise Unusable(_line(event), f"the tag {event.tag} is not allowed", self.path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth)
        items = []
        while not isinstance(item := self.loader.get_event(), yaml.SequenceEndEvent):
            items.append(self.value(item, depth + 1))
        return items

    def _mapping(self, start: Any, depth: int) -> Mapping:
        mapping = Mapping(_line(start))
        while not isinstance(event := self.loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or self._is_merge(event):
                raise Unusable(_line(event), "a key must be plain text", self.path)
            key = event.value
            if key in mapping:
                raise Unusable(_line(event), f"the key '{key}' is here twice", self.path)
            mapping[key] = self.value(self.loader.get_event(), depth + 1)
            mapping.lines[key] = _line(event)
        return mapping

    def _is_merge(self, event: Any) -> bool:
        # Resolving the tag of every key would take a third of the reading time.
        return (event.value == "<<" or event.tag not in _NO_TAG) and self._tag(event) == _MERGE

    def _tag(self, event: Any) -> str:
        if event.tag in _NO_TAG:
            tag: str = self.loader.resolve(yaml.ScalarNode, event.value, event.implicit)
            return tag
        return str(event.tag)

    def _scalar(self, event: Any) -> Any:
        tag, text = self._tag(event), event.value
        if tag in _TEXT:
            return text
        if tag == _NULL:
            return None
        if tag == _BOOL:
            return text.lower() in _TRUE
        try:
            if tag == _INT:
                return _integer(text)
            if tag == _FLOAT:
                return _float(text)
        except ValueError:
            return text
        raise Unusable(_line(event), f"the tag {tag} is not allowed", self.path)


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("no number of a registry is that long")
    plain = text.replace("_", "")
    if len(plain) > 1 and plain.lstrip("+-").startswith("0") and plain.lstrip("+-")[1:2].isdigit():
        return int(plain, 8)
    return int(plain, 0)


def _float(text: str) -> float:
    number = float(text.replace("_", ""))
    if number in (math.inf, -math.inf):
        raise ValueError(text)  # JSON has no such number, and `.inf` and `.nan` stay text as well
    return number


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def dump_row(row: Any) -> str:
    """Return one session as an item of the file's list."""
    return _dump([row])


def dump_top(values: dict[str, Any]) -> str:
    """Return top-level keys as lines of the file."""
    # PyYAML would write a mapping of plain values in braces.
    return "".join(
        _dump({key: value}, flow=None if isinstance(value, (dict, list)) else False)
        for key, value in values.items()
    )


def _dump(value: Any, flow: bool | None = None) -> str:
    text: str = yaml.dump(
        value, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=4096
    )
    return text
