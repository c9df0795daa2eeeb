"""Makes the rows of the screen: the header, and the rows around the input box."""

from __future__ import annotations

from . import VERSION
from .editor import Editor
from .input_box import box_rows, suggested_row
from .text_width import cells, clean, shorten, shorten_left

HINT = "? for help"
SPINNER = "·✢✳✶✻✽✻✶✳✢"
FRAME_SECONDS = 0.12
_MOST_QUEUED = 3
_LOGO = ("▗▛▀▜▖", "▐ ◇ ▌", "▝▙▄▟▘")


def header_rows(model: str, folder: str, columns: int) -> list[str]:
    """Return the rows a conversation begins with."""
    room = columns - 10
    facts = (f"Practice agent v{VERSION}", shorten(clean(model), room), shorten_left(clean(folder), room))
    return [shorten(f" {logo}  {fact}", columns - 1) for logo, fact in zip(_LOGO, facts, strict=True)]


def rule(columns: int, name: str = "") -> str:
    """Return an edge of the box over the full width, with a name near its right end."""
    label = f" {shorten(clean(name), columns - 8)} " if name and columns > 12 else ""
    tail = "──" if label else ""
    return "─" * (columns - cells(label) - len(tail)) + label + tail


def spinner_row(status: str, elapsed: float) -> str:
    """Return the row that shows that the agent works; a `status` replaces the clock."""
    if status:
        return status
    glyph = SPINNER[int(elapsed / FRAME_SECONDS) % len(SPINNER)]
    return f"{glyph} Thinking… ({int(elapsed)}s · esc to interrupt)"


def queue_rows(queued: list[str], columns: int) -> list[str]:
    """Return a row for each of the first queued messages, and one for the number of the others."""
    rows = [f"  queued: {clean(' '.join(text.split()))}" for text in queued[:_MOST_QUEUED]]
    if len(queued) > _MOST_QUEUED:
        rows.append(f"  queued: +{len(queued) - _MOST_QUEUED} more")
    return [shorten(row, columns - 1) for row in rows]


def footer_row(permissions: str, notice: str, columns: int) -> str:
    """Return the row below the input box; a notice replaces the hint."""
    return shorten(f"  {notice or f'{HINT} · permissions: {permissions}'}", columns - 1)


def box_region(
    editor: Editor, name: str, footer: str, columns: int, suggestion: str = ""
) -> tuple[list[str], tuple[int, int]]:
    """Return the rows of edges, draft and footer, and the position of the cursor in them."""
    rows, (row, column) = box_rows(editor, columns)
    if suggestion and not editor.text:
        rows = [suggested_row(suggestion, columns)]
    return [rule(columns, name), *rows, rule(columns), footer], (row + 1, column)
