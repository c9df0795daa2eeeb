"""Identifies a client of the MCP server: it runs in a session, or it is a person's program.

The session is recognised by its process, which is an ancestor of the client. A claim that the client cannot
prove can only reduce its permissions.
"""

from __future__ import annotations

import os

from mam.adapters.system import private_socket, process
from mam.app.context.context import Context
from mam.app.context.liveness import identity_of
from mam.core import caller as callers
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
        """Return the caller: the session that the client runs in, or the user."""
        session = self.session(context)
        return callers.session(session["id"], self.pid) if session else callers.user(self.pid)

    def session(self, context: Context) -> Row | None:
        """Return the session that the client runs in; None for a person's program."""
        if self._session is None:
            rows = {identity_of(row): row for row in context.registry.view().rows}
            self._session = next(
                (rows[identity] for identity in process.ancestors(self.pid) if identity in rows), None
            )
        return self._session

    def allowed(self) -> tuple[str, ...]:
        """Return the guarded tools that the user allows; for a session only the settings count."""
        context = Context(self.paths, self.cwd, self.environ)
        try:
            is_session = self.session(context) is not None or bool(self.environ.get("MAM_SESSION"))
            settings_environ = self._server_environ if is_session else self.environ
            granted: tuple[str, ...] = (
                context.replace(settings_environ=settings_environ).settings().mcp["allow"]
            )
        finally:
            context.close()
        return granted if is_session else (*granted, *self.allow)

    def check_claim(self, caller: Caller) -> None:
        """Refuse a change by a client that claims to be a session and is not recognised as one."""
        if caller.session_id is None and self.environ.get("MAM_SESSION"):
            raise NotAllowed(
                "this program claims to run in a session, but mam cannot find it there",
                hint="try again: mam recognises a new session after a moment",
            )
