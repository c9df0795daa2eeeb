"""The socket of a tmux server: its path, and whether it is this user's.

A tmux client sends its environment to whoever listens, and a row of a registry can name any path.
"""

from __future__ import annotations

import os

from mam.adapters.system import owners
from mam.adapters.tmux.error_translation import ForeignServer
from mam.core.owner_rule import ABOVE, LINK, OWNER, Danger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.core.owner_rule import OwnedPath

# The sockets that this process has found to be this user's, in folders where nobody else can write.
_own: set[str] = set()
_HINT = "name a tmux server of your own with --tmux-server, TMUX_SERVER_NAME or the setting tmux_server"


def socket_path(prefix: list[str], environ: Mapping[str, str]) -> str:
    """Return the socket path of the server of `-L NAME` or `-S PATH`."""
    option, value = prefix
    if option == "-S":
        return value
    folder = environ.get("TMUX_TMPDIR")
    if not folder or not os.path.isdir(folder):
        folder = "/tmp"  # noqa: S108  (tmux chooses this path)
    return f"{folder}/tmux-{os.getuid()}/{value}"


def check_socket(path: str, server: str) -> None:
    """Raise ForeignServer if another user owns the socket, or could put another one in its place."""
    if path in _own:
        return
    try:
        found, folder = owners.look(path), owners.look(os.path.dirname(path), ABOVE)
        danger = _danger(found, folder)
        if danger is None and found is not None and found.role == LINK:
            target = os.path.realpath(path)
            danger = _danger(owners.look(target), owners.look(os.path.dirname(target), ABOVE))
    except OSError:
        # The kernel does not connect to a path that it cannot look at; tmux says why.
        return
    if danger is not None:
        message, mend = owners.sentence(danger)
        hint = _HINT if danger.kind == OWNER else f"{mend}; or {_HINT}"
        raise ForeignServer(f"mam does not use the tmux server {server}: {message}", hint=hint)
    is_plain = found is not None and found.role != LINK
    if is_plain and folder is not None and not folder.is_writable_by_others:
        _own.add(path)


def _danger(socket: OwnedPath | None, folder: OwnedPath | None) -> Danger | None:
    """Return what is wrong with a socket, or with its folder, also where there is no socket yet."""
    if socket is not None and socket.uid != os.geteuid():
        return Danger(OWNER, socket)
    return owners.danger_of([folder]) if folder is not None else None
