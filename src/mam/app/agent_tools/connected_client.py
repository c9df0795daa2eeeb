"""Who a client of the MCP server is: a session, or a person's program.

A session is known by its process: it is an ancestor of the client. What a client claims and cannot prove can
only reduce what it may do.
"""

from __future__ import annotations

import os

from mam.adapters.system import private_socket, process
from mam.app.context.context import Context
from mam.core import caller as callers
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from mam.core.caller import Caller
    from mam.core.session_row import Row


class ConnectedClient:
    """The process at the other end, with its directory and environment."""

    def __init__(self, context: Context, line: socket, said: Mapping[str, object]) -> None:
        """`said` is what it tells of itself: `state` (of the root it means), `cwd`, `environ`, `allow`."""
        pid, user = private_socket.peer(line)
        if user != os.geteuid():
            raise NotAllowed("only processes of the same user are let in")
        # A folder that is removed leaves its number, and with it our address, to the next one.
        if said.get("state", context.paths.state) != context.paths.state:
            raise NotAllowed("this is the server of another root")
        cwd, environ, allow = said.get("cwd"), said.get("environ"), said.get("allow")
        self.pid = pid
        self.place = context.paths
        self._host = context.environ
        self._listeners = context.listeners
        is_there = isinstance(cwd, str) and "\0" not in cwd and os.path.isdir(cwd)
        self.cwd = os.path.realpath(str(cwd)) if is_there else context.paths.root
        self.environ = (
            {str(key): str(value) for key, value in environ.items()} if isinstance(environ, dict) else {}
        )
        self.allow = tuple(map(str, allow)) if isinstance(allow, list) else ()
        self._session: Row | None = None

    def context(self) -> Context:
        """Return the context of the client, for one call: its directory and environment."""
        session = self._find_session()
        if session is None:
            return Context(self.place, self.cwd, self.environ, listeners=self._listeners)
        # Some agents start a server with few of their variables; a child of the agent gets them all.
        theirs = process.environment(session["pane"].get("pid") or 0)
        # What a session may do is not read from where the session says.
        return Context(
            self.place,
            self.cwd,
            {**(theirs or {}), **self.environ},
            settings_environ=self._host,
            listeners=self._listeners,
        )

    def _find_session(self) -> Row | None:
        """Return the session that the client runs in, which is known before the client has a context."""
        context = Context(self.place, self.cwd, self.environ)
        try:
            return self.session(context)
        finally:
            context.close()

    def caller(self, context: Context) -> Caller:
        """Return who calls: the session that the client runs in, or a person."""
        session = self.session(context)
        return callers.session(session["id"], self.pid) if session else callers.user(self.pid)

    def session(self, context: Context) -> Row | None:
        """Return the session that the client runs in; None for a person's program."""
        if self._session is None:
            above = [(one.pid, one.start, one.boot) for one in process.ancestors(self.pid)]
            rows = {_identity(row): row for row in context.registry.view().rows}
            self._session = next((rows[one] for one in above if one in rows), None)
        return self._session

    def allowed(self) -> tuple[str, ...]:
        """Return the guarded tools that the operator gives: a session's stand in the settings alone."""
        context = Context(self.place, self.cwd, self.environ)
        try:
            is_session = self.session(context) is not None or bool(self.environ.get("MAM_SESSION"))
            theirs = self._host if is_session else self.environ
            granted: tuple[str, ...] = context.replace(settings_environ=theirs).settings().mcp["allow"]
        finally:
            context.close()
        return granted if is_session else (*granted, *self.allow)

    def check_claim(self, caller: Caller) -> None:
        """Refuse a change by somebody who claims to be a session and is not seen to be it, or not yet."""
        if caller.session_id is None and self.environ.get("MAM_SESSION"):
            raise NotAllowed(
                "this program says that it runs in a session, and it is not seen to",
                hint="a session that has just been started is known in a moment: try again",
            )


def _identity(row: Row) -> tuple[object, object, object]:
    pane = row.get("pane") or {}
    return pane.get("pid"), pane.get("pid_start"), pane.get("boot_id")
