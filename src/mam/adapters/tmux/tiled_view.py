"""Shows several sessions side by side in one window of this terminal until the person detaches."""

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


def show_tiled(tmux: Tmux, session_ids: list[str], environ: Mapping[str, str]) -> int:
    """Show sessions in tiles and return the client's exit status after the person has detached.

    Each tile is a tmux client of its own, so no pane of a session moves. The outer client has this terminal
    and no deadline, so child_process cannot run it. Raises the errors of a tmux call.
    """
    command = tiles(
        session_ids, [tmux.attach_argv(session_id) for session_id in session_ids], _terminal_size()
    )
    session_id = tmux._call(command, env=tmux._whole_environ).decode("ascii", "replace").strip()
    client = tmux.attach_argv(session_id)
    clean = {name: value for name, value in environ.items() if name not in ("TMUX", "TMUX_PANE")}
    pid = os.posix_spawn(client[0], client, clean)
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except KeyboardInterrupt:
            # The person pressed Ctrl-C before tmux had the terminal. tmux decides when the view ends.
            continue


def tiles(session_ids: list[str], clients: list[list[str]], size: tuple[int, int]) -> list[str]:
    """Return the command that opens a window with a client for each session and prints their session."""
    window = f"={NAME}:"
    command: list[str] = []
    for session_id, client in zip(session_ids, clients, strict=True):
        argv.session_target(session_id)
        # tmux refuses to run inside tmux, and detects that by TMUX.
        alone = ["env", "-u", "TMUX", "-u", "TMUX_PANE", *client]
        if command:
            command += ["split-window", "-t", window, "--", *alone, ";"]
        else:
            width, height = map(str, size)
            command += ["new-session", "-d", "-s", NAME, "-x", width, "-y", height, "--", *alone, ";"]
        command += ["select-layout", "-t", window, "tiled", ";"]
    for option, value in _OPTIONS.items():
        command += ["set-option", "-t", window, option, value, ";"]
    command += ["select-pane", "-t", f"{window}.{{top-left}}", ";"]
    return [*command, "display-message", "-p", "-t", window, "#{session_id}"]


def _terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 200, 50
    return size.columns or 200, size.lines or 50
