"""Finding a kind by name: ours, then those that other packages offer, then any program."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mam.adapters.agents.kind import Kind
from mam.core.errors import InvalidSettings

BUILT_IN = {
    "agy": "mam.adapters.agents.agy:Agy",
    "claude": "mam.adapters.agents.claude.kind:Claude",
    "codex": "mam.adapters.agents.codex.kind:Codex",
    "gemini": "mam.adapters.agents.gemini.kind:Gemini",
    "hermes": "mam.adapters.agents.hermes.kind:Hermes",
    "opencode": "mam.adapters.agents.opencode.kind:Opencode",
    "practice": "mam.adapters.agents.practice:Practice",
    "human": "mam.adapters.agents.human:Human",
}
ENTRY_POINTS = "mam.agents"

_loaded: dict[str, Kind] = {}


def kind(name: str) -> Kind:
    """Return the kind of that name; a name that nobody claims is a program."""
    found = _loaded.get(name)
    if found is None:
        reference = BUILT_IN.get(name) or offered().get(name)
        found = _load(reference) if reference else Kind(name)
        _loaded[name] = found
    return found


def offered() -> dict[str, str]:
    """Return the kinds that other installed packages offer, as name -> module:class."""
    if not _somebody_offers():
        return {}
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


def _somebody_offers() -> bool:
    """Tell whether any package but ours names the entry point; a look is far cheaper than asking for it."""
    for folder in sys.path:
        try:
            packages = [
                name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for package in packages:
            if not package.startswith("multi_agent_mux-") and _mentions(os.path.join(folder, package)):
                return True
    return False


def _mentions(package: str) -> bool:
    try:
        with open(os.path.join(package, "entry_points.txt"), "rb") as file:
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False


def _load(reference: str) -> Kind:
    module, _, attribute = reference.partition(":")
    try:
        made = getattr(import_module(module), attribute)()
    except Exception as error:
        raise InvalidSettings(
            f"the agent kind {reference} cannot be loaded: {error}", hint="mend or uninstall that package"
        ) from error
    if not isinstance(made, Kind):
        raise InvalidSettings(
            f"{reference} is not an agent kind", hint="it must derive from mam.adapters.agents.kind.Kind"
        )
    return made
