"""mam starts, watches and stops AI coding agents in tmux.

import mam

with mam.open() as fleet:
    session = fleet.sessions.create("practice", role="developer")
    session.wait("idle")
    session.stop()
"""

from __future__ import annotations

__all__ = ["Fleet", "Fleets", "MamError", "Outcome", "Session", "__version__", "open", "open_all"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.api.fleet_object import Fleet, Fleets, open_all
    from mam.app.api.fleet_object import open_fleet as open
    from mam.app.api.sessions import Outcome, Session
    from mam.core.errors import MamError
    from mam.core.mam_version import VERSION as __version__

_HOMES = {
    "Fleet": ("mam.app.api.fleet_object", "Fleet"),
    "Fleets": ("mam.app.api.fleet_object", "Fleets"),
    "MamError": ("mam.core.errors", "MamError"),
    "Outcome": ("mam.app.api.sessions", "Outcome"),
    "Session": ("mam.app.api.sessions", "Session"),
    "__version__": ("mam.core.mam_version", "VERSION"),
    "open": ("mam.app.api.fleet_object", "open_fleet"),
    "open_all": ("mam.app.api.fleet_object", "open_all"),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that importing mam costs nothing."""
    import sys

    if name not in _HOMES:
        raise AttributeError(f"module 'mam' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    # Not importlib: it imports as much as ten modules of mam, for each command.
    __import__(module)
    return getattr(sys.modules[module], attribute)
