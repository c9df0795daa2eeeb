"""Reading from the payload of a hook which tool an agent wants to use, and for what."""

from __future__ import annotations

from mam.adapters.system import json_text as json
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST_TOOL, _LONGEST = 60, 200
# The field of a tool's input that says most about what it will do, the most telling one first.
_TELLING = ("command", "file_path", "path", "url", "pattern", "query", "description")


def tool_request(payload: Mapping[str, Any]) -> str | None:
    """Return `TOOL:WHAT` of a payload with `tool_name` and `tool_input`, in one line; None without a tool."""
    return request_of(payload.get("tool_name"), payload.get("tool_input"))


def request_of(tool: object, purpose: object) -> str | None:
    """Return `TOOL:WHAT` in one line; None if the tool has no name."""
    if not isinstance(tool, str) or not tool.strip():
        return None
    text = _as_text(_telling(purpose))
    name = one_line(tool, _LONGEST_TOOL).strip()
    return one_line(f"{name}:{one_line(text, _LONGEST).strip()}" if text else name, _LONGEST)


def _telling(purpose: object) -> object:
    if isinstance(purpose, dict):
        return next((purpose[key] for key in _TELLING if purpose.get(key)), purpose)
    return purpose


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    try:
        return json.dumps(value, ensure_ascii=False) if value else ""
    except (ValueError, RecursionError):
        return ""
