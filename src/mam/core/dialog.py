"""What an open dialog asks, taken from its words, and the fingerprint that an answer names. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The shortest part of a fingerprint that names a dialog.
SHORTEST_EXPECTED = 8
# Signs that programs draw before the words of a dialog.
_DECORATION = " \t#$?!*•●○◯☐☑△▲✨⚠→▸›>│┃"
_LONGEST_LINE = 200


class DialogWords:
    """The words of an open dialog: its name, its text with the options, and the options by themselves."""

    __slots__ = ("name", "options", "text")

    def __init__(self, name: str, text: str, options: Sequence[str]) -> None:
        self.name = name
        self.text = text
        self.options = list(options)

    def are(self, other: DialogWords) -> bool:
        """Tell whether these are the words of another one."""
        return (self.name, self.text, self.options) == (other.name, other.text, other.options)


def fingerprint(session_id: str, launch: str, episode: str, words: DialogWords) -> str:
    """Return the fingerprint of one opening of a dialog: of another session or opening it is another one."""
    from hashlib import sha256

    parts = [session_id, launch, episode, words.name, words.text, *words.options]
    # Each part comes with its length, so that no two dialogs have the same parts in a row.
    return sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "replace")).hexdigest()


def summary(words: DialogWords) -> dict[str, str | None]:
    """Return the title of a dialog, the command that it asks about, and its question; None if there is none.

    The command is the line after `$ `, or else the last line before the question of a permission.
    """
    lines = _lines_above_options(words)
    questions = [line for line in lines if line.endswith("?") and not _is_labelled(line)]
    question = questions[-1] if questions else None
    command = next((line for line in lines if line.startswith("$ ")), None)
    if command is None and words.name == "permission":
        before = lines[: lines.index(question)] if question else lines
        # The first line is the title, unless it is all that there is.
        candidates = before if len(before) == 1 and question else before[1:]
        command = candidates[-1] if candidates else None
    title = next((line for line in lines if line != command), None)
    return {
        "title": _plain(title),
        "command": command.removeprefix("$ ")[:_LONGEST_LINE].strip() if command else None,
        "question": _plain(question),
    }


def _lines_above_options(words: DialogWords) -> list[str]:
    lines = [line.strip() for line in words.text.splitlines() if line.strip()]
    first = words.options[0] if words.options else None
    if first is None:
        return lines
    for at, line in enumerate(lines):
        label = line.split(". ", 1)[1].strip() if line[:1].isdigit() and ". " in line else line
        if label.startswith(first):
            return lines[:at]
    return lines


def _is_labelled(line: str) -> bool:
    """Tell whether a line says what it is: `Reason: may I?` quotes the agent, and asks nothing itself."""
    label, colon, _ = line.partition(": ")
    return bool(colon) and " " not in label


def _plain(line: str | None) -> str | None:
    return line.lstrip(_DECORATION)[:_LONGEST_LINE].strip() or None if line else None
