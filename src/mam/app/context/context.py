"""The context of a verb: the root, the environment, the settings and the resources that it works with.

A call makes one context. Each resource is opened when it is first used.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress

import mam
from mam.adapters.store import root_paths
from mam.adapters.store.newest_mam import ThisMam
from mam.adapters.store.registry import Registry
from mam.adapters.store.root_identity import RootIdentity
from mam.adapters.store.root_safety import RootSafety
from mam.adapters.store.user_state import UserState, former_file, state_home
from mam.core.errors import Damaged, InvalidPath, MamError, NoRegistry, Unavailable
from mam.core.names import parse_server
from mam.core.root_mark import ID_LENGTH, root_mark
from mam.core.root_state import RootState
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypedDict, Unpack

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.registry import Confirm, View
    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.rows_and_log import Transaction
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


THIS_MAM = ThisMam(mam.__version__, os.path.dirname(os.path.realpath(mam.__file__)))


def _say_nothing(_text: str) -> None:
    return


class Resources:
    """What a context opens and closes: the registry, the user state and the tmux clients.

    Nothing is opened before it is used. Threads do not share resources.
    """

    __slots__ = ("_environ", "_servers", "registry", "root", "safety", "user_state")

    def __init__(
        self,
        paths: RootPaths,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        settings_environ: Mapping[str, str] | None = None,
        user_state: UserState | None = None,
    ) -> None:
        """`settings_environ` tells where the user's settings lie, if `environ` does not.

        `user_state` is one that the caller has opened already.
        """
        from mam.app.context.settings import load_user_settings

        config = environ if settings_environ is None else settings_environ
        self.safety = RootSafety(paths, lambda: load_user_settings(config).safe_roots, environ)
        self.user_state = user_state or UserState(state_home(environ), clock, former_file(environ))
        self.root = RootIdentity(paths, self.user_state, clock, self.safety)
        self.registry = Registry(paths, clock, self.root, self.safety, THIS_MAM)
        self._environ = environ
        self._servers: dict[str, Tmux] = {}

    def tmux(self, server: str) -> Tmux:
        """Return the client of one tmux server."""
        client = self._servers.get(server)
        if client is None:
            from mam.adapters.tmux.client import Tmux
            from mam.core.inherited_variables import without_inherited

            client = self._servers[server] = Tmux(server, environ=without_inherited(self._environ))
        return client

    def close(self) -> None:
        """Close everything that is open."""
        self.registry.close()
        self.user_state.close()


class Context:
    """What every verb receives: one root, the caller's directory, its environment, and the clock.

    A context never changes. `replace` makes another context, `for_thread` one with separate resources.
    """

    __slots__ = (
        "_memory",
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
    # The environment that tells where the user's settings lie. It differs from `environ` where the caller
    # must not be able to choose the settings.
    settings_environ: Mapping[str, str]
    resources: Resources
    clock: Callable[[], float]
    # `progress` takes what a long verb is doing now; `warn` takes problems that do not stop the verb.
    progress: Callable[[str], None]
    warn: Callable[[str], None]
    # They are called, inside the transaction, with what happens to a session.
    listeners: tuple[Listener, ...]
    _settings: dict[str, Settings]
    # What this context has done already and does only once.
    _memory: dict[str, bool]

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
        """Make a context; nothing is read before it is needed."""
        fields = {
            "paths": paths,
            "workspace": workspace,
            "environ": environ,
            "settings_environ": environ if settings_environ is None else settings_environ,
            "resources": resources or Resources(paths, environ, clock, settings_environ),
            "clock": clock,
            "progress": progress,
            "warn": warn,
            "listeners": listeners,
            "_settings": {},
            "_memory": {},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse every assignment: a context never changes."""
        raise AttributeError(f"a context does not change: {name}")

    def replace(self, **changes: Unpack[Fields]) -> Context:
        """Return a context with other fields; it shares the resources unless `changes` has others.

        Resources belong to one root and one environment, so a change of either needs other resources.
        """
        if ("paths" in changes or "environ" in changes) and "resources" not in changes:
            raise ValueError("another root or environment needs resources of its own")
        fields = {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}
        context = Context(**{**fields, **changes})
        if context.paths is self.paths and context.settings_environ is self.settings_environ:
            context._settings.update(self._settings)
        return context

    def for_thread(self) -> Context:
        """Return the same context with separate resources, for another thread."""
        resources = Resources(self.paths, self.environ, self.clock, self.settings_environ)
        return self.replace(resources=resources)

    def close(self) -> None:
        """Close everything that is open."""
        self.resources.close()

    @property
    def registry(self) -> Registry:
        """The registry of the root."""
        return self.resources.registry

    @property
    def user_state(self) -> UserState:
        """What belongs to the user and not to one root."""
        return self.resources.user_state

    @property
    def root(self) -> RootIdentity:
        """What the root is to this user's mam."""
        return self.resources.root

    @property
    def root_id(self) -> str | None:
        """The id of the root; None before the first change of a root."""
        return self.resources.root.verdict().id

    @property
    def root_mark(self) -> str:
        """The mark of the panes of this root. A copy has none of the panes that its original started."""
        verdict = self.resources.root.verdict()
        return root_mark("0" * ID_LENGTH if verdict.state == RootState.COPY else verdict.id, self.paths.root)

    def now(self) -> float:
        """Return the time of day."""
        return self.clock()

    def tell_listeners(self, transaction: Transaction, event: SessionEvent) -> None:
        """Call the listeners with what happens to a session, inside the transaction that records it."""
        for listener in self.listeners:
            listener(self, transaction, event)

    def view_to_show(self) -> View:
        """Return the registry for a verb that only looks: an edit that mam refuses is a warning."""
        self.warn_of_root()
        view = self.registry.view_to_show()
        if view.problem is not None:
            self._warn_of_file(view.problem)
        return view

    def _warn_of_file(self, problem: MamError) -> None:
        self.warn(
            f"{problem.message}; mam shows its own records and refuses changes"
            + (f" ({problem.hint})" if problem.hint else "")
        )

    def judge_status_edits(self, view: View, confirm: Confirm) -> None:
        """Warn of a status that a person wrote into the file and that is not what was observed."""
        if view.status_edits is not None and view.problem is None:
            view.problem = view.status_edits.refusal(confirm)
            if view.problem is not None:
                self._warn_of_file(view.problem)

    def warn_of_root(self) -> None:
        """Warn once of a root that mam may not change."""
        if "warned" not in self._memory and (refusal := self.root.refusal()) is not None:
            self._memory["warned"] = True
            self.warn(f"{refusal.message}; mam shows its records and changes nothing ({refusal.hint})")
            self._warn_of_unfit_rows()

    def _warn_of_unfit_rows(self) -> None:
        """Warn of rows of somebody else that are not shown. Where nothing can be read, the verb says why."""
        with suppress(MamError):
            self.registry.reader()
        report = self.registry.left_out
        if report is None or not report.left_out_count:
            return
        first = report.left_out[0]
        row = one_line(f"{first['table']} {first['key']}: {first['reason']}", 200)
        count = report.left_out_count
        rows, them = ("1 row is", "it") if count == 1 else (f"{count} rows are", "them")
        self.warn(f"{rows} not shown, because mam cannot have written {them} ({row})")

    def warn_once(self, text: str) -> None:
        """Warn of a problem that several parts of a verb may meet."""
        if text not in self._memory:
            self._memory[text] = True
            self.warn(text)

    @property
    def may_look(self) -> bool:
        """Whether verbs look at what the rows name: tmux servers, files. A foreign root may name anything."""
        return self.root.verdict().is_ours or "may_look" in self._memory

    def for_own_pane(self) -> Context:
        """Return this context for a pane in a foreign root that is known to be this user's own."""
        context = self.replace()
        context._memory["may_look"] = True
        return context

    def require_own_root(self) -> None:
        """Raise RootRefused where a verb would look at what a root of somebody else names."""
        if not self.may_look:
            self.root.check()

    def require_state(self) -> None:
        """Raise RootMissing if the state of the root is gone; for verbs that wait for what happens there."""
        if self.root.verdict().state == RootState.MISSING:
            self.root.check()

    @contextmanager
    def noticing_lost_state(self) -> Iterator[None]:
        """Raise RootMissing in the place of any other error, if the state of the root is gone by then.

        A row is missing because everything is, or a database was moved while it was opened.
        """
        try:
            yield
        except MamError:
            self.require_state()
            raise

    def require_registry(self) -> None:
        """Raise NoRegistry for a root without a registry; RootMissing if it had one."""
        if not self.paths.exists():
            self.require_state()
            raise NoRegistry.in_root(self.paths.root)

    def tmux(self, server: str) -> Tmux:
        """Return the client of one tmux server; raise RootRefused in a root of somebody else."""
        self.require_own_root()
        return self.resources.tmux(server)

    def kind(self, name: str) -> Kind:
        """Return the agent kind of that name."""
        from mam.adapters.agents.catalogue import kind

        return kind(name)

    def server_name(self, name: str | None) -> str:
        """Return the tmux server to use: by this name, else by the environment, else by the settings."""
        return parse_server(name or self.environ.get("TMUX_SERVER_NAME") or self.settings().tmux_server)

    def in_directory(self, directory: str) -> Context:
        """Return this context with another workspace; a relative path starts at the present workspace."""
        path = os.path.join(self.workspace, directory)
        if "\0" in path or not os.path.isdir(path):
            raise InvalidPath(f"{directory} is not a directory", hint="name a directory that exists")
        return self.replace(workspace=os.path.realpath(path))

    def settings(self) -> Settings:
        """Return the settings in force."""
        from mam.app.context.settings import load_settings

        if not self._settings:
            self.resources.safety.check()
            self._settings["loaded"] = load_settings(self.paths.root, self.settings_environ, self.warn)
        return self._settings["loaded"]

    def with_default_settings(self) -> Context:
        """Return this context with default settings, for a verb that goes on where yours are not valid."""
        from mam.core.settings import Settings

        context = self.replace()
        context._settings["loaded"] = Settings()
        return context


def open_context(
    *,
    workspace: str | os.PathLike[str] | None = None,
    registry: str | None = None,
    environ: Mapping[str, str] | None = None,
    listeners: tuple[Listener, ...] = (),
) -> Context:
    """Open the root that is meant: of the named registry, of the named workspace, of the calling agent, or
    of the current directory; the first of these that applies.
    """
    environ = os.environ if environ is None else environ
    workspace = os.fspath(workspace) if workspace else None
    is_path = workspace is None or "\0" not in workspace
    directory = os.path.realpath(workspace) if workspace and is_path else _current_directory(environ)
    if not is_path or not os.path.isdir(directory):
        raise InvalidPath(f"{workspace or directory} is not a directory", hint="name a directory that exists")
    file = registry or environ.get("AGENT_SESSIONS_YAML")
    root = environ.get("MAM_ROOT")
    user_state = UserState(state_home(environ), time.time, former_file(environ))
    if file:
        paths = root_paths.of_registry(os.path.join(directory, file))
    elif root and not workspace and os.path.isdir(root):
        paths = root_paths.of_root(os.path.realpath(root))
    else:
        paths = root_paths.of_root(root_paths.find_root(directory, lambda: _directories_of_roots(user_state)))
    resources = Resources(paths, environ, user_state=user_state)
    return Context(paths, directory, environ, resources=resources, listeners=listeners)


def _directories_of_roots(user_state: UserState) -> set[str]:
    """Return the directories of this user's roots; none if the user state cannot be read.

    Whoever needs to know what the root is raises that error. Doctor must be able to show it.
    """
    try:
        return user_state.directories_of_roots()
    except (Damaged, Unavailable):
        return set()


def open_all_contexts(
    environ: Mapping[str, str] | None = None, listeners: tuple[Listener, ...] = ()
) -> list[Context]:
    """Return one context for each root in the user state, even where the root does not exist any more."""
    environ = os.environ if environ is None else environ
    user_state = UserState(state_home(environ), time.time, former_file(environ))
    try:
        roots = user_state.roots()
    finally:
        user_state.close()
    return [Context(root_paths.of_registry(file), root, environ, listeners=listeners) for root, file in roots]


def _current_directory(environ: Mapping[str, str]) -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidPath(
            f"the current directory is gone ({environ.get('PWD', 'unknown')})", hint="cd to one that exists"
        ) from None
