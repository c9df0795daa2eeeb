"""Everything a verb may touch, made once per call and opened only when used."""

from __future__ import annotations

import os
import time

from mam.adapters.store import root_paths as places
from mam.adapters.store.registry import Registry
from mam.adapters.store.user_state import UserState, state_home
from mam.app.context.settings import load_settings
from mam.core.errors import InvalidPath
from mam.core.names import parse_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.tmux.client import Tmux
    from mam.core.settings import Settings


class World:
    """One root with its registry, its tmux servers, the kinds, the clock and the caller."""

    def __init__(self, place: RootPaths, workspace: str, environ: Mapping[str, str]) -> None:
        """Take the place as found; nothing is read before it is needed."""
        self.place = place
        self.workspace = workspace
        self.environ = environ
        self.registry = Registry(place, time.time)
        self.host = UserState(state_home(environ), time.time)
        self.progress: Callable[[str], None] = lambda _text: None
        self.warn: Callable[[str], None] = lambda _text: None
        # Who goes along when this root is watched; see resident.ResidentTask.
        self.companions: list[Any] = []
        self._servers: dict[str, Tmux] = {}
        self._settings: Settings | None = None
        # Who calls, once somebody asked; see caller.actor.
        self.known_actor: str | None = None
        # The process that calls: this one, or one that it serves.
        self.pid = os.getpid()
        # Whose settings hold: the caller's own, or of somebody whom the caller cannot deceive.
        self.settings_environ = environ
        # Whether the caller is a session that may start only so many others.
        self.limits_births = False

    def clone(self) -> World:
        """Return the same world with connections of its own, for another thread."""
        twin = World(self.place, self.workspace, self.environ)
        twin.progress = self.progress
        twin.warn = self.warn
        twin.known_actor = self.known_actor
        twin.pid = self.pid
        twin.settings_environ = self.settings_environ
        twin.limits_births = self.limits_births
        return twin

    def close(self) -> None:
        """Let go of everything that is open."""
        self.registry.close()
        self.host.close()

    def now(self) -> float:
        """Return the time of day."""
        return time.time()

    def tmux(self, server: str) -> Tmux:
        """Return the client of one server."""
        found = self._servers.get(server)
        if found is None:
            from mam.adapters.tmux.client import Tmux
            from mam.core.inherited_variables import without_inherited

            found = self._servers[server] = Tmux(server, environ=without_inherited(self.environ))
        return found

    def kind(self, name: str) -> Kind:
        """Return the kind of that name."""
        from mam.adapters.agents.catalogue import kind

        return kind(name)

    def server_name(self, asked: str | None) -> str:
        """Return the tmux server to use: as asked, else by the environment, else by the settings."""
        return parse_server(asked or self.environ.get("TMUX_SERVER_NAME") or self.settings().tmux_server)

    def enter(self, directory: str) -> None:
        """Act as if started in a directory, named from where we are."""
        path = os.path.join(self.workspace, directory)
        if "\0" in path or not os.path.isdir(path):
            raise InvalidPath(f"{directory} is not a directory", hint="name a directory that exists")
        self.workspace = os.path.realpath(path)

    def settings(self) -> Settings:
        """Return the settings in force."""
        if self._settings is None:
            self._settings = load_settings(self.place.root, self.settings_environ)
        return self._settings


def open_world(
    *, workspace: str | None = None, registry: str | None = None, environ: Mapping[str, str] | None = None
) -> World:
    """Find the root that is meant: a named registry, a named workspace, the agent's own, or here."""
    environ = os.environ if environ is None else environ
    here = os.path.realpath(workspace) if workspace else _current_directory(environ)
    if not os.path.isdir(here):
        raise InvalidPath(f"{workspace or here} is not a directory", hint="name a directory that exists")
    file = registry or environ.get("AGENT_SESSIONS_YAML")
    if file:
        return World(places.of_registry(os.path.join(here, file)), here, environ)
    root = environ.get("MAM_ROOT")
    if root and not workspace and os.path.isdir(root):
        return World(places.of_root(os.path.realpath(root)), here, environ)
    return World(places.of_root(places.find_root(here)), here, environ)


def _current_directory(environ: Mapping[str, str]) -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidPath(
            f"the current directory is gone ({environ.get('PWD', 'unknown')})", hint="cd to one that exists"
        ) from None
