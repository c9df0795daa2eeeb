"""Several sessions side by side in one window, shown to the person at this terminal until they come back."""

from __future__ import annotations

import os

from mam.adapters.tmux import argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.tmux.client import Tmux

NAME = "mam-side-by-side"
_HELP = " click an agent and type · Ctrl-b o goes to the next · Ctrl-b d comes back "
_OPTIONS = {"mouse": "on", "status-left": " mam ", "status-right": _HELP, "status-right-length": "80"}


def visit(tmux: Tmux, session_ids: list[str], environ: Mapping[str, str]) -> int:
    """Show sessions in tiles and return the client's exit status once the person has left.

    Each tile is a tmux client of its own, so no pane of a session is moved. The client has this terminal and
    no deadline, so it is no child_process. Raises what a tmux call may raise.
    """
    command = tiles(session_ids, [tmux.attach_argv(one) for one in session_ids], _terminal_size())
    session_id = tmux._call(command).decode("ascii", "replace").strip()
    client = tmux.attach_argv(session_id)
    clean = {name: value for name, value in environ.items() if name not in ("TMUX", "TMUX_PANE")}
    pid = os.posix_spawn(client[0], client, clean)
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except KeyboardInterrupt:
            # Pressed before tmux had the terminal; from now on tmux decides when this ends.
            continue


def tiles(session_ids: list[str], clients: list[list[str]], size: tuple[int, int]) -> list[str]:
    """Return the command that opens a window with a client for each session and shows its session's id."""
    there = f"={NAME}:"
    command: list[str] = []
    for session_id, client in zip(session_ids, clients, strict=True):
        argv.session_target(session_id)
        # tmux refuses to run inside itself unless it does not know.
        alone = ["env", "-u", "TMUX", "-u", "TMUX_PANE", *client]
        if command:
            command += ["split-window", "-t", there, "--", *alone, ";"]
        else:
            width, height = map(str, size)
            command += ["new-session", "-d", "-s", NAME, "-x", width, "-y", height, "--", *alone, ";"]
        command += ["select-layout", "-t", there, "tiled", ";"]
    for option, value in _OPTIONS.items():
        command += ["set-option", "-t", there, option, value, ";"]
    command += ["select-pane", "-t", f"{there}.{{top-left}}", ";"]
    return [*command, "display-message", "-p", "-t", there, "#{session_id}"]


def _terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 200, 50
    return size.columns or 200, size.lines or 50
