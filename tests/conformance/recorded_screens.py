"""Reading the recorded screens: with their styles and their cursor where they were recorded with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mam.adapters.agents.kind import Screen


def facts_of(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return facts


def captured(path: Path) -> str:
    """Return what tmux wrote: with the sequences of the styles if the recording has them."""
    styled = path.with_suffix(".ansi")
    return (styled if styled.exists() else path).read_text(encoding="utf-8")


def screen_of(path: Path, *, cursor: bool = True) -> Screen:
    """Return a recorded screen, with its cursor unless told not to."""
    return Screen(captured(path), *(facts_of(path)["cursor"] if cursor else ()))


def restyled(path: Path, old: str, new: str) -> Screen:
    """Return a recorded screen in which a captured text, sequences included, is replaced by another."""
    text = captured(path)
    assert old in text, f"{old!r} is not in {path.name}"
    return Screen(text.replace(old, new), *facts_of(path)["cursor"])
