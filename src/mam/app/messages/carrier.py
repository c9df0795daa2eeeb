"""How a message is carried: typed as it is, or as a file in the workspace with a line that points to it."""

from __future__ import annotations

import contextlib
import os

from mam.adapters.system import atomic_file
from mam.core import message as rules
from mam.core.errors import NotAllowed
from mam.core.message import FILE, INLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.session_row import Row

MAIL = ".mam-mail"


class Load:
    """What is typed (None where the program would take any words for a command), how, and what was added."""

    __slots__ = ("added", "carrier", "words")

    def __init__(self, words: str | None, carrier: str, added: str | None = None) -> None:
        self.words = words
        self.carrier = carrier
        self.added = added


def load(context: Context, row: Row, message: Message) -> Load:
    """Return what is typed for a message; what the program would alter is put into a file."""
    kind = context.kind(row["agent"])
    if message.is_command:
        return Load(message.text, INLINE)
    signed = _signed(context, message, message.text)
    if rules.is_plain(message.text, kind.longest_text) and kind.keeps(signed):
        words = kind.typed(signed)
        if words is not None:
            return Load(words, INLINE, rules.added(words, signed))
    pointer = rules.pointer(_write_mail(row, message, signed), message.id)
    # Who writes is said before somebody follows the line, unless the program would alter that.
    line = _signed(context, message, pointer)
    return Load(kind.typed(line if kind.keeps(line) else pointer), FILE)


def _signed(context: Context, message: Message, words: str) -> str:
    """Return words with a line that says who writes; a person's words arrive as they are."""
    if message.sender == "user":
        return words
    sender = context.registry.view().by_id(message.sender)
    name, role = (sender["name"], sender.get("role")) if sender else (message.sender, None)
    return f"{rules.header(message.id, name, role)}\n{words}"


def _write_mail(row: Row, message: Message, text: str) -> str:
    """Put a message into a file that its agent may read; return its path from the workspace."""
    folder = os.path.join(row["workspace"], MAIL)
    with contextlib.suppress(FileExistsError):
        # Not its parents: a workspace that was removed stays removed.
        os.mkdir(folder, mode=0o700)
    if os.path.islink(folder):
        raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam makes its own")
    name = f"{message.id}.md"
    for one, content in ((".gitignore", "*\n"), (name, text)):
        _write_whole(os.path.join(folder, one), content.encode("utf-8", "surrogateescape"))
    return f"{MAIL}/{name}"


def _write_whole(path: str, content: bytes) -> None:
    """Write a file that is not there yet, whole or not at all, whenever this process dies."""
    if os.path.lexists(path):
        return
    atomic_file.replace(path, content, flushed=True)
