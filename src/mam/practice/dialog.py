"""The dialogs, which replace the input box until they are answered.

As with the real agents, Enter takes the highlighted option, whatever was typed before it. So text that is
sent to an open dialog is lost, and the Enter after it approves something.
"""

from __future__ import annotations

from .text_width import clean_lines, shorten, wrap

CANCEL = -1
_MOST_BODY_ROWS = 6


class Dialog:
    """A list of options, one of them highlighted."""

    def __init__(self, head: list[str], options: list[str], hint: str, *, numbered: bool = True) -> None:
        self.head = head
        self.options = options
        self.hint = hint
        self.numbered = numbered
        self.at = 0

    def key(self, name: str, text: str) -> int | None:
        """Return the option taken, CANCEL, or None while the dialog stays open."""
        if name == "enter":
            return self.at
        if name in ("escape", "ctrl-c"):
            return CANCEL
        if name in ("up", "down"):
            self.at = (self.at + (1 if name == "down" else -1)) % len(self.options)
        elif name == "text" and self.numbered and text in _digits(len(self.options)):
            return int(text) - 1
        return None

    def rows(self, columns: int) -> list[str]:
        """Return the rows of the dialog on the screen."""
        rows = [" " + row for line in self.head for row in wrap(line, columns - 2)]
        for index, option in enumerate(self.options):
            mark = "❯" if index == self.at else " "
            number = f"{index + 1}. " if self.numbered else ""
            rows.append(f" {mark} {number}{option}")
        rows.append(" " + self.hint)
        return [shorten(row, columns - 1) for row in rows]


def _digits(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def permission(command: str) -> Dialog:
    """Ask whether a command may run."""
    lines = clean_lines(command)
    if len(lines) > _MOST_BODY_ROWS:
        lines = [*lines[: _MOST_BODY_ROWS - 1], f"… +{len(lines) - _MOST_BODY_ROWS + 1} lines"]
    return Dialog(
        ["Bash command", *(f"  {shorten(line, 300)}" for line in lines), "Do you want to proceed?"],
        ["Yes", "Yes, and don't ask again", "No, and tell the agent what to do differently (esc)"],
        "Enter to confirm · Esc to cancel",
    )


def question(title: str, text: str, options: list[str]) -> Dialog:
    """Ask the person to choose."""
    return Dialog([f"☐ {title}", text], options, "Enter to select · ↑/↓ to navigate · Esc to cancel")


def trust(folder: str) -> Dialog:
    """Ask whether the folder is safe to work in; the highlighted option exits."""
    return Dialog(
        [
            "Accessing workspace:",
            *clean_lines(folder),
            "Quick safety check: Is this a project you created or one you trust?",
        ],
        ["No, exit", "Yes, I trust this folder"],
        "Enter to confirm · Esc to cancel",
        numbered=False,
    )


def limit() -> Dialog:
    """Ask what to do when the usage limit is reached."""
    return Dialog(
        ["What do you want to do?"],
        ["Stop and wait for the limit to reset", "Upgrade your plan"],
        "Enter to confirm · Esc to cancel",
    )
