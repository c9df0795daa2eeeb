"""Several sessions side by side in one window, shown to the person at this terminal until they come back."""

from __future__ import annotations

import os

from mam.adapters.tmux import argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.client import Tmux

NAME = "mam-side-by-side"
_HELP = " click an agent and type · Ctrl-b o goes to the next · Ctrl-b d comes back "


def visit(tmux: Tmux, session_ids: list[str], environ: dict[str, str]) -> int:
    """Show sessions in tiles and return the client's exit status once the person has left.

    Each tile is a tmux client of its own, so no pane of a session is moved. Ctrl-C belongs to the
    sessions meanwhile. Raises what a tmux call may raise.
    """
    tmux._call(tiles(session_ids, [tmux.attach_argv(one) for one in session_ids]))
    command = tmux.attach_argv(
        tmux._call(["display-message", "-p", "-t", f"={NAME}:", "#{session_id}"]).decode().strip()
    )
    clean = {key: value for key, value in environ.items() if key not in ("TMUX", "TMUX_PANE")}
    pid = os.posix_spawn(command[0], command, clean)
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except KeyboardInterrupt:
            # It came before tmux took the terminal over; tmux is what decides when this ends.
            continue


def tiles(session_ids: list[str], clients: list[list[str]]) -> list[str]:
    """Return the command that opens one window with a client for each session in it."""
    there = f"={NAME}:"
    command: list[str] = []
    for session_id, client in zip(session_ids, clients, strict=True):
        argv.session_target(session_id)
        alone = ["env", "-u", "TMUX", "-u", "TMUX_PANE", *client]
        if command:
            command += [
                "split-window",
                "-t",
                there,
                "--",
                *alone,
                ";",
                "select-layout",
                "-t",
                there,
                "tiled",
                ";",
            ]
        else:
            command += ["new-session", "-d", "-s", NAME, "-x", "200", "-y", "50", "--", *alone, ";"]
    for option, value in (
        ("mouse", "on"),
        ("status-left", " mam demo "),
        ("status-right", _HELP),
        ("status-right-length", "80"),
    ):
        command += ["set-option", "-t", there, option, value, ";"]
    return [*command, "select-pane", "-t", there]
