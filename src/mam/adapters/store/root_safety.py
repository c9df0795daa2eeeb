"""Refuses a root that another user could have written, and changes of a root on a network file system.

The setting `safe_roots` names exceptions. It is read only where something would be refused.
"""

from __future__ import annotations

import os

from mam.adapters.store.database import translate_os
from mam.adapters.system import owners
from mam.core.errors import RootOnNetwork, RootUnsafe
from mam.core.owner_rule import OWNER, PRIVATE, is_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mam.adapters.store.root_paths import RootPaths
    from mam.core.errors import RootRefused
    from mam.core.owner_rule import Danger, OwnedPath


def _none() -> Sequence[str]:
    return ()


class RootSafety:
    """The owners and the file system of one root."""

    __slots__ = ("_environ", "_network", "_safe_roots", "paths")

    def __init__(
        self,
        paths: RootPaths,
        safe_roots: Callable[[], Sequence[str]] = _none,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`safe_roots` reads the setting; `environ` tells whether sudo runs this process."""
        self.paths = paths
        self._safe_roots = safe_roots
        self._environ = os.environ if environ is None else environ
        self._network: tuple[str | None] | None = None

    def check(self) -> None:
        """Raise RootUnsafe if another user could have written what mam reads; a link raises NotAllowed."""
        self.paths.check()
        self.check_owners()

    def check_owners(self) -> None:
        """Raise RootUnsafe if another user could have written what mam reads; a file as folder NotAllowed."""
        self.paths.check_state_folder()
        refusal = self._owner_refusal(to_change=False)
        if refusal is not None:
            raise refusal

    def refusal_of_change(self) -> RootRefused | None:
        """Return why mam may not change the root, or make one there; None if it may."""
        return self._owner_refusal(to_change=True) or self._network_refusal()

    def _owner_refusal(self, *, to_change: bool) -> RootUnsafe | None:
        try:
            danger = owners.danger_of(self._owned_paths(to_change))
        except OSError as error:
            raise translate_os(error, self.paths.root) from error
        if danger is None or self._is_named_safe():
            return None
        message, mend = owners.sentence(danger)
        return RootUnsafe(message, hint=self._way_out(danger, mend))

    def _owned_paths(self, to_change: bool) -> Iterator[OwnedPath]:
        """Yield what mam reads in the root, and the folders above if there is anything to read.

        To change the root they count in any case: whoever can write there can replace what mam makes.
        """
        paths, is_there = self.paths, to_change
        hermes = os.path.dirname(paths.yaml)
        for path, role in (
            (paths.state, PRIVATE),
            (paths.yaml, None),
            (hermes if hermes != paths.root else None, None),
            (os.path.join(paths.root, "mam.toml"), None),
        ):
            for found in owners.look_through(path, role) if path else ():
                is_there = True
                yield found
        if is_there:
            root = owners.look(paths.root)
            if root is not None:
                yield root
            yield from owners.folders_above(paths.root)

    def _way_out(self, danger: Danger, mend: str) -> str:
        """Return what a person can do about a danger; `mend` is the command that ends it."""
        exception = f'safe_roots = ["{self.paths.root}"] in config.toml in ~/.config/mam'
        if danger.kind != OWNER:
            return f"{mend}; or, if you trust them: {exception}"
        if os.geteuid() == 0 and self._environ.get("SUDO_USER"):
            return f"run mam without sudo; or, to run it as root here: {exception} of root"
        return (
            f"mam init makes a root in a folder of your own; if this one is yours: {mend}; "
            f"if you trust the owner: {exception}"
        )

    def _is_named_safe(self) -> bool:
        entries = self._safe_roots()
        return is_named(self.paths.root, entries) or is_named(self.paths.root, map(_real, entries))

    def network(self) -> str | None:
        """Return the type of the network file system that the root lies on; None for a local one."""
        if self._network is None:
            from mam.adapters.system.mounts import network_filesystem

            self._network = (network_filesystem(self.paths.root),)
        return self._network[0]

    def _network_refusal(self) -> RootOnNetwork | None:
        kind = self.network()
        if kind is None or self._is_named_safe():
            return None
        root = self.paths.root
        return RootOnNetwork(
            f"{root} is on a network file system ({kind}), where locks may not work",
            hint="use a root on a local disk; or, if only this machine changes it: "
            f'safe_roots = ["{root}"] in config.toml in ~/.config/mam',
        )


def _real(entry: str) -> str:
    folder, star = (entry[:-2], "/*") if entry.endswith("/*") else (entry, "")
    return os.path.realpath(folder or "/").rstrip("/") + star
