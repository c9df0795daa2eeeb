"""The newest mam that changed a database: a record in its table `meta`.

It says which mam can read a schema that this one does not know, and it keeps an older mam that is still on
some PATH from starting the resident of the root.
"""

from __future__ import annotations

import os

from mam.adapters.store.database import NEWEST
from mam.core.mam_version import is_newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction


class ThisMam:
    """The mam of this process: its version, and the folder of its package."""

    __slots__ = ("package", "version")

    def __init__(self, version: str, package: str) -> None:
        self.version = version
        self.package = package

    def note(self, transaction: Transaction) -> None:
        """Record this mam, unless one that is as new is recorded and still installed."""
        recorded = transaction.meta(NEWEST)
        if not isinstance(recorded, dict) or not (self._has(recorded) or self._is_outdone_by(recorded)):
            transaction.set_meta(NEWEST, {"version": self.version, "package": self.package})

    def newer(self, transaction: Transaction) -> str | None:
        """Return the version of a newer mam that changed the database and is still installed."""
        recorded = transaction.meta(NEWEST)
        is_outdone = isinstance(recorded, dict) and self._is_outdone_by(recorded)
        return recorded["version"] if is_outdone else None

    def _has(self, recorded: dict[str, Any]) -> bool:
        # Two mams of one version in different folders do not take turns.
        return bool(recorded.get("version") == self.version)

    def _is_outdone_by(self, recorded: dict[str, Any]) -> bool:
        """Tell whether a newer mam is recorded.

        One whose folder is gone, or is now that of this mam, was replaced: somebody went back on purpose.
        """
        version, package = recorded.get("version"), recorded.get("package")
        if not (isinstance(version, str) and isinstance(package, str) and is_newer(version, self.version)):
            return False
        return os.path.isdir(package) and package != self.package
