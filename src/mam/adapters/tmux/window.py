"""A tmux window of several panes: adding a pane, arranging the panes, and labelling their borders.

The layouts are those with one main pane; `tiled` would move it. Colours and labels are options of panes and
of the window, because a program may overwrite its title.
"""

from __future__ import annotations

from mam.adapters.tmux import argv
from mam.adapters.tmux.client import new_nonce
from mam.adapters.tmux.error_translation import ServerEnded
from mam.core.errors import PaneGone, TerminalsDown, Usage
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane

LAYOUTS = ("main-vertical", "main-horizontal")
_FACTS = ("window_width", "window_height", "window_zoomed_flag", "pane_id", "pane_active", "pane_dead")
_SHOWN = ",".join(f"#{{{fact}}}" for fact in ("window_id", *_FACTS))
# Up to tmux 3.5 the border's style is an option of the window, and tmux expands it for each pane.
_WINDOW_OPTIONS = {
    "pane-border-status": "top",
    "pane-border-style": "fg=#{?@mam_colour,#{@mam_colour},default}",
}
_LABEL = " #[fg=#{@mam_colour}]#{@mam_label}-#{pane_id}#[default] "


class Window:
    """A window at one moment: its size and its panes in order, the main pane first."""

    __slots__ = ("active", "height", "id", "is_zoomed", "panes", "width")

    def __init__(self, window_id: str, answer: bytes) -> None:
        """Read the answer to `list-panes`, one line of numbers and ids for each pane."""
        self.id = window_id
        self.width = self.height = 0
        self.is_zoomed = False
        self.active = ""
        self.panes: list[str] = []
        for line in answer.decode("ascii", "replace").splitlines():
            fields = line.split(",")
            if len(fields) != len(_FACTS) + 1 or fields[0] != window_id:
                continue
            _, width, height, zoomed, pane_id, is_active, _ = fields
            size = whole_number(width), whole_number(height)
            if size[0] is None or size[1] is None:
                continue
            self.width, self.height, self.is_zoomed = size[0], size[1], zoomed == "1"
            self.panes.append(pane_id)
            if is_active == "1":
                self.active = pane_id


def target(window_id: str) -> str:
    """Return a window id that may stand in a command."""
    if not argv.is_id(window_id, "@"):
        raise PaneGone(f"not a window id: {window_id}")
    return window_id


def show(tmux: Tmux, window_id: str) -> Window | None:
    """Return the window, or None if it does not exist. Raises TerminalsDown if that is unknown."""
    try:
        answer = tmux._call(["list-panes", "-t", target(window_id), "-F", _SHOWN])
    except PaneGone:
        return None
    window = Window(window_id, answer)
    return window if window.panes else None


def split(tmux: Tmux, window_id: str, launch: list[str], *, cwd: str, session_id: str, root: str) -> Pane:
    """Start launch in a new marked pane, the last one of the window; the active pane stays active.

    Raises PaneGone if the window does not exist, TerminalsDown if it has no room.
    """
    tmux.require_version()
    nonce = new_nonce()
    answer = tmux._call(split_command(window_id, launch, session_id, root, nonce), cwd=cwd)
    # rpartition, because the name of a session, which stands before, may hold the same text.
    row, _, is_ours = answer.rpartition(f"{nonce}ours".encode())
    pane = tmux._require_pane(row, nonce)
    if is_ours.strip() == b"1":
        return pane
    return tmux._find_started(target(window_id), launch[-1], pane, session_id, root)


def split_command(window_id: str, launch: list[str], session_id: str, root: str, nonce: str) -> list[str]:
    """Return the command of split; the new pane is active until tmux has marked and shown it."""
    window = target(window_id)
    return argv.in_turn(
        ["split-window", "-h", "-f", "-t", window, "--", *launch],
        argv.set_pane_options(window, session_id, root),
        ["display-message", "-p", "-t", window, argv.row_format(nonce)],
        ["display-message", "-p", "-t", window, f"{nonce}ours{argv.was_started_with(launch[-1])}"],
        ["select-pane", "-l", "-t", window],
    )


def arrange(tmux: Tmux, window_id: str, *, layout: str, main: str | None) -> Window:
    """Put the main pane first, give it half of the window, and return the arranged window.

    Raises PaneGone.
    """
    if layout not in LAYOUTS:
        raise Usage(f"a layout is one of {', '.join(LAYOUTS)}")
    before = show(tmux, window_id)
    if before is None:
        raise PaneGone(f"window {window_id} does not exist any more")
    command: list[str] = []
    first = before.panes[0]
    if main in before.panes and first != main:
        command += ["swap-pane", "-d", "-s", argv.pane_target(main or ""), "-t", first, ";"]
        first = main or first
    command += ["select-layout", "-t", window_id, layout, ";"]
    # Not with the option main-pane-width, because it belongs to the user.
    half = ["-x", str(before.width // 2)] if layout == LAYOUTS[0] else ["-y", str(before.height // 2)]
    command += ["resize-pane", "-t", argv.pane_target(first), *half, ";"]
    if before.is_zoomed and before.active in before.panes:
        command += ["resize-pane", "-Z", "-t", argv.pane_target(before.active), ";"]
    return Window(window_id, tmux._call([*command, "list-panes", "-t", window_id, "-F", _SHOWN]))


def label_pane(tmux: Tmux, pane_id: str, window_id: str, *, label: str, colour: str) -> None:
    """Write a label in a colour (`#rrggbb`) on a pane's border; keep the options that the window has."""
    if not argv.is_name(label) or not _is_colour(colour):
        raise Usage("not a label and a colour that may stand in a format")
    pane = argv.pane_target(pane_id)
    command: list[str] = []
    for option, value in (
        ("@mam_label", label),
        ("@mam_colour", colour),
        ("pane-border-format", _LABEL),
    ):
        command += ["set-option", "-p", "-t", pane, option, value, ";"]
    for option, value in _WINDOW_OPTIONS.items():
        command += ["set-option", "-w", "-q", "-o", "-t", target(window_id), option, value, ";"]
    tmux._call(command[:-1])


def remove_labels(tmux: Tmux, window_id: str, pane_ids: list[str]) -> None:
    """Remove mam's options from a window and these panes; keep options that another changed.

    A server ends with its last pane, perhaps at this moment. Then there is nothing to remove.
    """
    try:
        _remove_labels(tmux, window_id, pane_ids)
    except ServerEnded:
        return


def _remove_labels(tmux: Tmux, window_id: str, pane_ids: list[str]) -> None:
    for option, value in _WINDOW_OPTIONS.items():
        try:
            answer = tmux._call(["show-options", "-w", "-v", "-q", "-t", target(window_id), option])
        except PaneGone:
            return
        if answer.decode("utf-8", "replace").rstrip("\n") == value:
            tmux._call(["set-option", "-w", "-u", "-t", window_id, option])
    for pane_id in pane_ids:
        for option in ("@mam_label", "@mam_colour", "pane-border-format"):
            try:
                tmux._call(["set-option", "-p", "-u", "-q", "-t", argv.pane_target(pane_id), option])
            except PaneGone:
                break


def _is_colour(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and not text[1:].strip("0123456789abcdef")


def pane_of(tmux: Tmux, pane_id: str) -> Pane | None:
    """Return a pane with its window, or None if it does not exist. Raises TerminalsDown without an answer."""
    listing = tmux.panes()
    if not listing.confirmed:
        raise TerminalsDown(listing.error or "")
    return next((pane for pane in listing.panes if pane.id == pane_id), None)
