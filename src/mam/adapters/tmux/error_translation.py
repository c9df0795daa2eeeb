"""Turns the error messages of tmux into errors of mam.

PaneGone
  NoServer      no server runs under that name, or one without sessions: certainly it has no pane
  PaneInMode    the pane exists, but somebody scrolls or searches in it
  PaneChanged   the pane exists, but its cursor has moved since mam looked at it
  InTheWay      the pane exists, but a dialog or a draft is in the way (`app/messages/enter_text.py`)
TerminalsDown
  NoAnswer      the server did not answer in time: it may or may not have carried out the request
  ServerEnded   the server ended during the request: the same, and none of its panes exists any more
  ForeignServer the socket is not this user's, so mam sent nothing to it
"""

from __future__ import annotations

from mam.core.errors import MamError, NameTaken, PaneGone, TerminalsDown
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.parse import Pane


class NoServer(PaneGone):
    """No tmux server runs under that name, or it has no session."""


class PaneInMode(PaneGone):
    """Somebody is scrolling or searching in the pane."""

    code = "pane_in_mode"


class PaneChanged(PaneGone):
    """The pane shows something else than when mam looked at it."""

    code = "pane_changed"


class NoAnswer(TerminalsDown):
    """The tmux server does not answer."""


class ServerEnded(TerminalsDown):
    """The tmux server ended during the request."""


class ForeignServer(TerminalsDown):
    """The socket of the tmux server is another user's."""

    retryable = False


# "error connecting" can mean an absent or a forbidden server; the end of the line tells which.
_ABSENT = ("(No such file or directory)", "(Connection refused)")
_GONE = ("can't find pane", "can't find session", "can't find window", "no such pane", "no such session")


def from_stderr(text: str, subcommand: str, server: str) -> MamError:
    """Return the error for the first line of tmux's stderr; the caller raises it."""
    line = text.strip().split("\n", 1)[0]
    connecting = line.startswith("error connecting")
    if line.startswith("no server running") or (connecting and line.endswith(_ABSENT)):
        return NoServer(f"no tmux server {server} is running")
    if line.startswith("no current target"):
        # For a moment a server that is about to end answers although it has no session any more.
        return NoServer(f"tmux server {server} has no session")
    if line.startswith(_GONE):
        return PaneGone(f"tmux: {one_line(line, 200)}")
    if line.startswith("duplicate session"):
        return NameTaken(f"tmux server {server} already has a session of that name")
    reason = one_line(line, 200) or "tmux gave no reason"
    if connecting and line.endswith("(Permission denied)"):
        return TerminalsDown(f"tmux server {server} belongs to another user: {reason}")
    if line.startswith("protocol version mismatch"):
        hint = "the running server is of another tmux version; end it, or put that tmux first on PATH"
        return TerminalsDown(f"tmux server {server}: {reason}", hint=hint)
    if "lost server" in line or line.startswith(("server exited", "[server exited")):
        return ServerEnded(f"tmux server {server} ended during {subcommand}")
    return TerminalsDown(f"tmux {subcommand} on server {server} failed: {reason}")


def no_answer(server: str, subcommand: str, timeout: float) -> NoAnswer:
    """Return the error for a call that ran out of time."""
    hint = "look at its process: it may be stopped (kill -CONT) or busy; mam doctor shows its pid"
    return NoAnswer(f"tmux server {server} does not answer ({subcommand}, {timeout:g} s)", hint=hint)


def refusal(pane: Pane | None, pane_id: str, mark: str, *, is_placed: bool) -> PaneGone:
    """Return why tmux typed nothing into a pane; `is_placed`: the cursor had to be at a position."""
    if pane is None:
        return PaneGone(f"pane {pane_id} does not exist any more")
    if pane.mark != mark:
        return PaneGone(f"pane {pane_id} is not the pane of {mark}")
    if pane.dead:
        return PaneGone(f"the program in pane {pane_id} has ended")
    if is_placed and not pane.in_mode:
        return PaneChanged(f"pane {pane_id} shows something else than a moment ago")
    return PaneInMode(f"somebody is scrolling or searching in pane {pane_id}")
