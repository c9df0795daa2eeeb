"""Finding an agent kind by its name: first mam's own, then those of other packages, then any program."""

from __future__ import annotations

import os
import sys

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
# No agent, and so in no list of agents: it runs the command of a job.
_COMMAND = {"exec": "mam.adapters.agents.exec:Exec"}
ENTRY_POINTS = "mam.agents"

_loaded: dict[str, Kind] = {}


def kind(name: str) -> Kind:
    """Return the kind of this name; a name without a kind means a program."""
    loaded = _loaded.get(name)
    if loaded is None:
        reference = BUILT_IN.get(name) or _COMMAND.get(name) or entry_point_kinds().get(name)
        loaded = _load(reference) if reference else Kind(name)
        _loaded[name] = loaded
    return loaded


def entry_point_kinds() -> dict[str, str]:
    """Return the kinds of other installed packages, as name -> module:class."""
    if not _any_package_has_kinds():
        return {}
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


def _any_package_has_kinds() -> bool:
    """Tell whether another package names the entry point; this is far cheaper than importlib.metadata."""
    for folder in sys.path:
        try:
            packages = [
                name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for package in packages:
            if not package.startswith("multi_agent_mux-") and _names_entry_point(
                os.path.join(folder, package)
            ):
                return True
    return False


def _names_entry_point(package: str) -> bool:
    try:
        with open(os.path.join(package, "entry_points.txt"), "rb") as file:
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False


def _load(reference: str) -> Kind:
    module, _, attribute = reference.partition(":")
    try:
        # Not importlib: its import takes longer than that of a kind.
        __import__(module)
        loaded = getattr(sys.modules[module], attribute)()
    except Exception as error:
        raise InvalidSettings(
            f"the agent kind {reference} cannot be loaded: {error}", hint="repair or uninstall that package"
        ) from error
    if not isinstance(loaded, Kind):
        raise InvalidSettings(
            f"{reference} is not an agent kind",
            hint="its class must derive from mam.adapters.agents.kind.Kind",
        )
    return loaded
