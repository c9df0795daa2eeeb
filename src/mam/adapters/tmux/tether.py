"""What ends a hub's session when its process was killed and could not end it.

tmux has an option for that, `destroy-unattached`, but up to 3.7 it crashes the whole server when the
client leaves while another one does (tmux pull request 5497). So the hub's pane reads from a pipe
that only this process can write to: the kernel closes it, the pane ends, and its session with it.
"""

from __future__ import annotations

import os

from mam.core.errors import TerminalsDown

# Opens the pipe, removes its name, and waits for its end. Opened for writing too at first: where the other
# side is dead already, opening for reading alone would wait for ever.
_WAIT = 'exec 3<>"$0" <"$0" 3>&- && rm -f -- "$0" && exec cat >/dev/null'


class Tether:
    """A named pipe beside the server's socket, which is a place that both sides see."""

    __slots__ = ("_handle", "_path")

    def __init__(self, directory: str, name: str) -> None:
        """Make the pipe, for its owner only, and hold it open."""
        self._path = os.path.join(directory, name)
        try:
            os.mkfifo(self._path, 0o600)
            # For reading too: then it opens at once, and the pane's shell finds a writer.
            self._handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            self._handle = -1  # no directory, no server: the connection says so itself
        except OSError as cause:
            raise TerminalsDown(f"{directory} cannot be written: {cause.strerror}") from cause

    def command(self) -> list[str]:
        """Return what the pane runs."""
        return ["/bin/sh", "-c", _WAIT, self._path]

    def release(self) -> None:
        """Let the pane end; a second time does nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            try:  # noqa: SIM105  (contextlib is dear on the start-up path)
                os.unlink(self._path)
            except FileNotFoundError:
                pass
