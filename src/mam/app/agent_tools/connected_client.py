"""Identifies a client of the MCP server: it runs in a session, or it is a person's program, or unknown.

The server reads the launch secret in the client's place: who knows the random path of its file has it from
the environment of the session.
"""

from __future__ import annotations

import os

from mam.adapters.store.user_state import VARIABLE
from mam.adapters.system import private_socket, process
from mam.app.context.caller import calling_row, find_caller
from mam.app.context.context import Context
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from mam.core.caller import Caller
    from mam.core.session_row import Row


class ConnectedClient:
    """The client process, with its directory and environment."""

    def __init__(self, context: Context, line: socket, introduction: Mapping[str, object]) -> None:
        """`introduction` comes from the client: `state` (folder of its root), `cwd`, `environ`, `allow`."""
        pid, user = private_socket.peer(line)
        if user != os.geteuid():
            raise NotAllowed("only processes of the same user may connect")
        # The address of the socket contains the inode of the state folder. A new folder may get the inode of
        # a removed one, so a client may reach the server of another root.
        if introduction.get("state", context.paths.state) != context.paths.state:
            raise NotAllowed("this is the server of another root")
        cwd, environ, allow = introduction.get("cwd"), introduction.get("environ"), introduction.get("allow")
        self.pid = pid
        self.paths = context.paths
        self._server_environ = context.environ
        self._listeners = context.listeners
        is_there = isinstance(cwd, str) and "\0" not in cwd and os.path.isdir(cwd)
        self.cwd = os.path.realpath(str(cwd)) if is_there else context.paths.root
        self.environ = (
            {str(key): str(value) for key, value in environ.items()} if isinstance(environ, dict) else {}
        )
        # The user state is that of the server: with another one its own root would be foreign to it.
        self.environ.pop(VARIABLE, None)
        if context.environ.get(VARIABLE):
            self.environ[VARIABLE] = context.environ[VARIABLE]
        self.allow = tuple(map(str, allow)) if isinstance(allow, list) else ()
        self._session: Row | None = None

    def context(self) -> Context:
        """Return a context for one call, with the client's directory and environment."""
        session = self._find_session()
        if session is None:
            return Context(self.paths, self.cwd, self.environ, listeners=self._listeners)
        # Some agents start MCP servers with only a few of their variables. A child that the call creates
        # should inherit all of them, and tmux is found by them.
        agent_environ = process.environment(session["pane"].get("pid") or 0)
        # A session must not choose the settings that limit it, so they come from the server's environment.
        return Context(
            self.paths,
            self.cwd,
            {**(agent_environ or {}), **self.environ},
            settings_environ=self._server_environ,
            listeners=self._listeners,
        )

    def _find_session(self) -> Row | None:
        """Return the session that the client runs in; the client's own context is made after that."""
        context = Context(self.paths, self.cwd, self.environ)
        try:
            return self.session(context)
        finally:
            context.close()

    def caller(self, context: Context) -> Caller:
        """Return the caller: the session that the client runs in, the user, or unknown."""
        # Whether a client counts as unknown is not for its own settings to say.
        return find_caller(context.replace(settings_environ=self._server_environ), self.pid)

    def session(self, context: Context) -> Row | None:
        """Return the session that the client runs in; None for another client."""
        if self._session is None:
            self._session = calling_row(context, self.caller(context))
        return self._session

    def allowed(self) -> tuple[str, ...]:
        """Return the guarded tools that the user allows; only for the user's own client it may name more."""
        context = Context(self.paths, self.cwd, self.environ)
        try:
            is_user = self.caller(context).is_user
            settings_environ = self.environ if is_user else self._server_environ
            granted: tuple[str, ...] = (
                context.replace(settings_environ=settings_environ).settings().mcp["allow"]
            )
        finally:
            context.close()
        return (*granted, *self.allow) if is_user else granted
