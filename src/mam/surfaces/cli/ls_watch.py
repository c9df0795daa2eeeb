"""mam ls --watch: repaint the listing on a terminal, or else print one JSON object per change."""

from __future__ import annotations

import os
import sys

from mam.core.safe_text import one_line
from mam.surfaces.cli.output import write_json
from mam.surfaces.cli.style import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation

SECONDS = 1.0
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
_QUIT = (b"q", b"Q", b"\x03", b"\x04")


def watch(call: Invocation, filters: dict[str, Any], *, is_filtered: bool) -> int:
    """Show the listing until the person quits; for a program, print changes until it closes the pipe."""
    on_screen = (
        is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM") not in ("", "dumb")
    )
    if call.as_json or not on_screen:
        for document in call.fleet.sessions.watch(SECONDS, **filters):
            write_json(call.with_warnings(document), one_line=True)
        return 0
    return _repaint(call, filters, is_filtered)


def _repaint(call: Invocation, filters: dict[str, Any], is_filtered: bool) -> int:
    import signal
    import termios
    import tty

    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    # SystemExit runs the `finally` below, which leaves the alternate screen and restores the terminal.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    try:
        tty.setcbreak(terminal)
        sys.stdout.write(_ENTER)
        while True:
            sys.stdout.write(_frame(call, filters, is_filtered))
            sys.stdout.flush()
            if _wants_to_leave(terminal):
                return 0
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(terminal, termios.TCSANOW, settings)


def _frame(call: Invocation, filters: dict[str, Any], is_filtered: bool) -> str:
    from mam.surfaces.cli.render_listing import show

    paint = call.paint()
    # The lines are counted.
    paint.wraps = False
    workspace = call.fleet.workspace
    warnings: list[str] = []
    call.fleet.on_warning(warnings.append)
    lines = show(call.fleet.sessions.ls(**filters), paint, is_filtered=is_filtered, workspace=workspace)
    height = max(3, os.get_terminal_size(sys.stdout.fileno()).lines or 24)
    warned = [paint(one_line(f"warning: {text}", paint.width or 500), "yellow") for text in warnings]
    # Two lines are for the end. The warnings get up to half of the rest.
    warned = _cut(warned, max(1, (height - 2) // 2))
    lines = [*_cut(lines, height - 2 - len(warned)), *warned, "", paint("q quits", "dim")]
    return _HOME + f"{_TO_LINE_END}\n".join(lines) + _TO_LINE_END + _TO_SCREEN_END


def _cut(lines: list[str], most: int) -> list[str]:
    """Return at most so many lines; the last one says how many are missing."""
    if len(lines) <= most:
        return lines
    kept = max(0, most - 1)
    return [*lines[:kept], f"… {len(lines) - kept} more lines"][:most]


def _wants_to_leave(terminal: int) -> bool:
    from select import select

    ready, _, _ = select([terminal], [], [], SECONDS)
    return bool(ready) and (os.read(terminal, 1) or b"q") in _QUIT


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
