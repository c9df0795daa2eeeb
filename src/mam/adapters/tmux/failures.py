"""What tmux says when it fails, as our errors.

PaneGone
  NoServer      no server runs under that name: every pane of it is absent, and that is certain
  PaneInMode    the pane is there, but somebody scrolls or searches in it
  PaneChanged   the pane is there, but its cursor is not where it was seen
TerminalsDown
  NoAnswer      the server did not answer in time: the request may or may not have been carried out
  ServerEnded   the server ended while it was asked: the same, and every pane of it is absent by now
"""

from __future__ import annotations

from mam.core.errors import MamError, NameTaken, PaneGone, TerminalsDown
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.parse import Pane


class NoServer(PaneGone):
    """No tmux server runs under that name."""


class PaneInMode(PaneGone):
    """Somebody is scrolling or searching in the pane."""

    code = "pane_in_mode"


class PaneChanged(PaneGone):
    """What the pane shows has changed since it was looked at."""

    code = "pane_changed"


class NoAnswer(TerminalsDown):
    """The tmux server does not answer."""


class ServerEnded(TerminalsDown):
    """The tmux server ended while it was asked."""


# Looked for in this order: "error connecting" names both an absent server and a forbidden one.
_ABSENT = ("(No such file or directory)", "(Connection refused)")
_GONE = ("can't find pane", "can't find session", "can't find window", "no such pane", "no such session")


def from_stderr(text: str, subcommand: str, server: str) -> MamError:
    """Return the error that the first line of tmux's stderr stands for; the caller raises it."""
    line = text.strip().split("\n", 1)[0]
    connecting = line.startswith("error connecting")
    if line.startswith("no server running") or (connecting and line.endswith(_ABSENT)):
        return NoServer(f"no tmux server {server} is running")
    if line.startswith(_GONE):
        return PaneGone(f"tmux: {one_line(line, 200)}")
    if line.startswith("duplicate session"):
        return NameTaken(f"tmux server {server} already has a session of that name")
    said = one_line(line, 200) or "no reason given"
    if connecting and line.endswith("(Permission denied)"):
        return TerminalsDown(f"tmux server {server} belongs to somebody else: {said}")
    if line.startswith("protocol version mismatch"):
        hint = "the running server is of another tmux version; end it, or put that tmux first on PATH"
        return TerminalsDown(f"tmux server {server}: {said}", hint=hint)
    if "lost server" in line or line.startswith(("server exited", "[server exited")):
        return ServerEnded(f"tmux server {server} ended during {subcommand}")
    return TerminalsDown(f"tmux {subcommand} on server {server} failed: {said}")


def no_answer(server: str, subcommand: str, timeout: float) -> NoAnswer:
    """Return the error for a call that ran out of time."""
    hint = "look at its process: it may be stopped (kill -CONT) or busy; mam doctor shows its pid"
    return NoAnswer(f"tmux server {server} does not answer ({subcommand}, {timeout:g} s)", hint=hint)


def refusal(pane: Pane | None, pane_id: str, mark: str, *, is_placed: bool) -> PaneGone:
    """Return why nothing was typed into a pane, as it looks now; `is_placed`: its cursor had a place."""
    if pane is None:
        return PaneGone(f"pane {pane_id} is not there any more")
    if pane.mark != mark:
        return PaneGone(f"pane {pane_id} is not the pane of {mark}")
    if pane.dead:
        return PaneGone(f"the program in pane {pane_id} has ended")
    if is_placed and not pane.in_mode:
        return PaneChanged(f"pane {pane_id} shows something else than a moment ago")
    return PaneInMode(f"somebody is scrolling or searching in pane {pane_id}")
