"""Where the server of a root listens, and who comes in: a session, or a person's program.

A session is known by its process: it is an ancestor of whoever came in. What somebody says of themselves
counts only against them, as long as it is not proven.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from mam.adapters.system import private_socket, process
from mam.app.context import start_resident
from mam.app.context.context import World
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from mam.core.session_row import Row


def address(world: World) -> str:
    """Return the socket of a root's server."""
    return private_socket.address(world.place.state)


class Listener:
    """Where this root's server listens; only the resident has it, who holds the root's lock."""

    def __init__(self, world: World) -> None:
        """Listen."""
        self.path = address(world)
        self._socket = private_socket.listen(self.path)
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def fileno(self) -> int:
        """Return what can be read when somebody stands there."""
        return self._socket.fileno()

    def accept(self) -> socket | None:
        """Return who stands there; None if nobody does, or nobody more can be let in."""
        try:
            return self._socket.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._turn_away()
            return None

    def _turn_away(self) -> None:
        """Close the door on one visitor for whom no descriptor is left; unheard it would knock for ever."""
        os.close(self._spare)
        try:
            with suppress(OSError):
                self._socket.accept()[0].close()
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def is_there(self) -> bool:
        """Tell whether it can still be found; somebody may have cleaned /tmp."""
        return os.path.exists(self.path)

    def close(self) -> None:
        """Listen no longer."""
        os.close(self._spare)
        self._socket.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def enter(world: World) -> socket | None:
    """Return a connection to the server of a root; None if none listens, or not yet."""
    return private_socket.connect(address(world))


def is_hosted(world: World) -> bool:
    """Tell whether a resident serves this root, or may be started to."""
    if not world.place.exists():
        return False
    return world.settings().resident != "off" or start_resident.lock(world).holder() is not None


class Visitor:
    """Who came in: the process at the other end, with its directory and environment."""

    def __init__(self, world: World, line: socket, said: Mapping[str, object]) -> None:
        """`said` is what it tells of itself: `state` (of the root it means), `cwd`, `environ`, `allow`."""
        pid, user = private_socket.peer(line)
        if user != os.geteuid():
            raise NotAllowed("only processes of the same user are let in")
        # A folder that is removed leaves its number, and with it our address, to the next one.
        if said.get("state", world.place.state) != world.place.state:
            raise NotAllowed("this is the server of another root")
        cwd, environ, allow = said.get("cwd"), said.get("environ"), said.get("allow")
        self.pid = pid
        self.place = world.place
        self._host = world.environ
        is_there = isinstance(cwd, str) and "\0" not in cwd and os.path.isdir(cwd)
        self.cwd = os.path.realpath(str(cwd)) if is_there else world.place.root
        self.environ = (
            {str(key): str(value) for key, value in environ.items()} if isinstance(environ, dict) else {}
        )
        self.allow = tuple(map(str, allow)) if isinstance(allow, list) else ()
        self._session: Row | None = None

    def world(self) -> World:
        """Return the world as the visitor sees it, for one call: its directory, environment and name."""
        environ = self.environ
        world = World(self.place, self.cwd, environ)
        world.pid = self.pid
        session = self.session(world)
        if session is not None:
            # Some agents start a server with few of their variables; a child of the agent gets them all.
            theirs = process.environment(session["pane"].get("pid") or 0)
            world.environ = {**(theirs or {}), **environ}
            # What a session may do is not read from where the session says.
            world.settings_environ = self._host
            world.known_actor = session["id"]
        else:
            world.known_actor = "user"
        return world

    def session(self, world: World) -> Row | None:
        """Return the session that the visitor runs in; None for a person's program."""
        if self._session is None:
            above = [(one.pid, one.start, one.boot) for one in process.ancestors(self.pid)]
            rows = {_identity(row): row for row in world.registry.view().rows}
            self._session = next((rows[one] for one in above if one in rows), None)
        return self._session

    def allowed(self) -> tuple[str, ...]:
        """Return the guarded tools that the operator gives: a session's stand in the settings alone."""
        world = World(self.place, self.cwd, self.environ)
        try:
            is_session = self.session(world) is not None or bool(self.environ.get("MAM_SESSION"))
            world.settings_environ = self._host if is_session else self.environ
            granted: tuple[str, ...] = world.settings().mcp["allow"]
        finally:
            world.close()
        return granted if is_session else (*granted, *self.allow)

    def check_claim(self, world: World) -> None:
        """Refuse a change by somebody who claims to be a session and is not seen to be it, or not yet."""
        if self.session(world) is None and self.environ.get("MAM_SESSION"):
            raise NotAllowed(
                "this program says that it runs in a session, and it is not seen to",
                hint="a session that has just been started is known in a moment: try again",
            )


def _identity(row: Row) -> tuple[object, object, object]:
    pane = row.get("pane") or {}
    return pane.get("pid"), pane.get("pid_start"), pane.get("boot_id")
