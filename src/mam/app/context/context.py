"""What every verb is given, made once per call and opened only when used."""

from __future__ import annotations

import os
import time

from mam.adapters.store import root_paths as places
from mam.adapters.store.registry import Registry
from mam.adapters.store.user_state import UserState, state_home
from mam.app.context.settings import load_settings
from mam.core.errors import InvalidPath, NoRegistry
from mam.core.names import parse_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypedDict, Unpack

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.transaction import Transaction
    from mam.adapters.tmux.client import Tmux
    from mam.core.session_event import SessionEvent
    from mam.core.settings import Settings

    Listener = Callable[["Context", Transaction, SessionEvent], None]

    class Fields(TypedDict, total=False):
        """What `replace` may change."""

        paths: RootPaths
        workspace: str
        environ: Mapping[str, str]
        settings_environ: Mapping[str, str]
        resources: Resources
        clock: Callable[[], float]
        progress: Callable[[str], None]
        warn: Callable[[str], None]


def _say_nothing(_text: str) -> None:
    return


class Resources:
    """What is opened on the way, and closed at the end: the registry, the user's state, clients of tmux.

    Nothing is opened before it is used. One thread has one.
    """

    __slots__ = ("_environ", "_servers", "registry", "user_state")

    def __init__(
        self, paths: RootPaths, environ: Mapping[str, str], clock: Callable[[], float] = time.time
    ) -> None:
        self.registry = Registry(paths, clock)
        self.user_state = UserState(state_home(environ), clock)
        self._environ = environ
        self._servers: dict[str, Tmux] = {}

    def tmux(self, server: str) -> Tmux:
        """Return the client of one server."""
        found = self._servers.get(server)
        if found is None:
            from mam.adapters.tmux.client import Tmux
            from mam.core.inherited_variables import without_inherited

            found = self._servers[server] = Tmux(server, environ=without_inherited(self._environ))
        return found

    def close(self) -> None:
        """Let go of everything that is open."""
        self.registry.close()
        self.user_state.close()


class Context:
    """What every verb is given: one root, where the caller stands, its environment, and the clock.

    It never changes. `replace` makes another one, `for_thread` one with resources of its own.
    """

    __slots__ = (
        "_settings",
        "clock",
        "environ",
        "listeners",
        "paths",
        "progress",
        "resources",
        "settings_environ",
        "warn",
        "workspace",
    )

    paths: RootPaths
    workspace: str
    environ: Mapping[str, str]
    # Whose settings hold: the caller's own, or of somebody whom the caller cannot deceive.
    settings_environ: Mapping[str, str]
    resources: Resources
    clock: Callable[[], float]
    # Where long work tells what it is doing, and what deserves attention and stops nothing.
    progress: Callable[[str], None]
    warn: Callable[[str], None]
    # Who is told, inside the transaction, what happens to a session.
    listeners: tuple[Listener, ...]
    _settings: dict[str, Settings]

    def __init__(
        self,
        paths: RootPaths,
        workspace: str,
        environ: Mapping[str, str],
        *,
        settings_environ: Mapping[str, str] | None = None,
        resources: Resources | None = None,
        clock: Callable[[], float] = time.time,
        progress: Callable[[str], None] = _say_nothing,
        warn: Callable[[str], None] = _say_nothing,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        """Take the paths as found; nothing is read before it is needed."""
        fields = {
            "paths": paths,
            "workspace": workspace,
            "environ": environ,
            "settings_environ": environ if settings_environ is None else settings_environ,
            "resources": resources or Resources(paths, environ, clock),
            "clock": clock,
            "progress": progress,
            "warn": warn,
            "listeners": listeners,
            "_settings": {},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: what a verb was given stays as it is."""
        raise AttributeError(f"a context does not change: {name}")

    def replace(self, **changes: Unpack[Fields]) -> Context:
        """Return this context with other fields; resources are shared unless they are among them.

        Resources belong to one root and to one environment: a change of these needs others.
        """
        if ("paths" in changes or "environ" in changes) and "resources" not in changes:
            raise ValueError("another root or environment needs resources of its own")
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "_settings"}
        context = Context(**{**fields, **changes})
        if context.paths is self.paths and context.settings_environ is self.settings_environ:
            context._settings.update(self._settings)
        return context

    def for_thread(self) -> Context:
        """Return the same context with connections of its own, for another thread."""
        return self.replace(resources=Resources(self.paths, self.environ, self.clock))

    def close(self) -> None:
        """Let go of everything that is open."""
        self.resources.close()

    @property
    def registry(self) -> Registry:
        """The registry of the root."""
        return self.resources.registry

    @property
    def user_state(self) -> UserState:
        """What belongs to the user and not to one root."""
        return self.resources.user_state

    def now(self) -> float:
        """Return the time of day."""
        return self.clock()

    def publish(self, draft: Transaction, event: SessionEvent) -> None:
        """Tell the listeners what happens to a session, inside the transaction that records it."""
        for listener in self.listeners:
            listener(self, draft, event)

    def require_registry(self) -> None:
        """Refuse a root without a registry."""
        if not self.paths.exists():
            raise NoRegistry.in_root(self.paths.root)

    def tmux(self, server: str) -> Tmux:
        """Return the client of one server."""
        return self.resources.tmux(server)

    def kind(self, name: str) -> Kind:
        """Return the kind of that name."""
        from mam.adapters.agents.catalogue import kind

        return kind(name)

    def server_name(self, asked: str | None) -> str:
        """Return the tmux server to use: as asked, else by the environment, else by the settings."""
        return parse_server(asked or self.environ.get("TMUX_SERVER_NAME") or self.settings().tmux_server)

    def in_directory(self, directory: str) -> Context:
        """Return this context as if started in a directory, named from where we are."""
        path = os.path.join(self.workspace, directory)
        if "\0" in path or not os.path.isdir(path):
            raise InvalidPath(f"{directory} is not a directory", hint="name a directory that exists")
        return self.replace(workspace=os.path.realpath(path))

    def settings(self) -> Settings:
        """Return the settings in force."""
        if not self._settings:
            self._settings["found"] = load_settings(self.paths.root, self.settings_environ)
        return self._settings["found"]


def open_context(
    *,
    workspace: str | None = None,
    registry: str | None = None,
    environ: Mapping[str, str] | None = None,
    listeners: tuple[Listener, ...] = (),
) -> Context:
    """Find the root that is meant: a named registry, a named workspace, the agent's own, or here."""
    environ = os.environ if environ is None else environ
    here = os.path.realpath(workspace) if workspace else _current_directory(environ)
    if not os.path.isdir(here):
        raise InvalidPath(f"{workspace or here} is not a directory", hint="name a directory that exists")
    file = registry or environ.get("AGENT_SESSIONS_YAML")
    if file:
        return Context(places.of_registry(os.path.join(here, file)), here, environ, listeners=listeners)
    root = environ.get("MAM_ROOT")
    if root and not workspace and os.path.isdir(root):
        return Context(places.of_root(os.path.realpath(root)), here, environ, listeners=listeners)
    return Context(places.of_root(places.find_root(here)), here, environ, listeners=listeners)


def open_all_contexts(
    environ: Mapping[str, str] | None = None, listeners: tuple[Listener, ...] = ()
) -> list[Context]:
    """Return one context for each root that is recorded for this user, whether it is still there or not."""
    environ = os.environ if environ is None else environ
    user_state = UserState(state_home(environ), time.time)
    try:
        roots = user_state.roots()
    finally:
        user_state.close()
    return [Context(places.of_registry(file), root, environ, listeners=listeners) for root, file in roots]


def _current_directory(environ: Mapping[str, str]) -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidPath(
            f"the current directory is gone ({environ.get('PWD', 'unknown')})", hint="cd to one that exists"
        ) from None
