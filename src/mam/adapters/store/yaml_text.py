"""YAML in and out: the registry file as values with line numbers, and single rows as text.

Parsing goes through the node graph rather than PyYAML's own constructor, because a registry
must refuse what YAML silently accepts: duplicate keys, tags, and aliases that unfold without end.
Timestamps stay text.
"""

from __future__ import annotations

from typing import Any

import yaml

from mam.core.errors import RegistryCorrupt

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

WAY_OUT = "mend the line, or move the file away: mam writes what it recorded into a new one"
_MOST_VALUES = 2_000_000
_DEEPEST = 100
_LARGEST = 64 * 1024 * 1024
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
        """Name the place first: it is what the person has to look at."""
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {reason}", hint=WAY_OUT)
        self.line = line


def parse(text: bytes, path: str) -> Any:
    """Return the document in text as values; mappings carry their lines."""
    if len(text) > _LARGEST:
        raise Unusable(None, f"larger than {_LARGEST // 1024 // 1024} MB", path)
    try:
        node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not valid YAML"
        raise Unusable(mark.line + 1 if mark else None, str(problem), path) from None
    except (RecursionError, UnicodeDecodeError) as error:
        raise Unusable(None, f"not readable as YAML ({type(error).__name__})", path) from None
    if node is None:
        return None
    return _Reader(path).value(node, 0)


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0

    def value(self, node: Any, depth: int) -> Any:
        self.count += 1
        if self.count > _MOST_VALUES or depth > _DEEPEST:
            raise Unusable(_line(node), "nested or repeated beyond any registry", self.path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self._scalar(node)

    def _mapping(self, node: Any, depth: int) -> Mapping:
        found = Mapping(_line(node))
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key, str) or key_node.tag == "tag:yaml.org,2002:merge":
                raise Unusable(_line(key_node), "a key must be plain text", self.path)
            if key in found:
                raise Unusable(_line(key_node), f"the key '{key}' stands here twice", self.path)
            found[key] = self.value(value_node, depth + 1)
            found.lines[key] = _line(key_node)
        return found

    def _scalar(self, node: Any) -> Any:
        tag, text = node.tag, node.value
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
                return float(text.replace("_", ""))
        except ValueError:
            return text
        raise Unusable(_line(node), f"the tag {tag} is not allowed", self.path)


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    if len(plain) > 1 and plain.lstrip("+-").startswith("0") and plain.lstrip("+-")[1:2].isdigit():
        return int(plain, 8)
    return int(plain, 0)


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def dump_row(row: Any) -> str:
    """Return one session as an item of the file's list."""
    return _dump([row])


def dump_top(values: dict[str, Any]) -> str:
    """Return top-level keys as lines of the file."""
    return _dump(values) if values else ""


def _dump(value: Any) -> str:
    text: str = yaml.dump(
        value, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=4096
    )
    return text
