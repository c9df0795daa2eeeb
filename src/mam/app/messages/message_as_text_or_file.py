"""The carrier of a message: typed as it is, or a file in the workspace and a typed line that names it."""

from __future__ import annotations

import contextlib
import os

from mam.adapters.system import atomic_file
from mam.core import message_rules as rules
from mam.core.errors import NotAllowed
from mam.core.message_rules import FILE, INLINE, MAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.session_row import Row


class CarriedText:
    """The text to type for a message, the carrier, and the spaces that were added to the text.

    `text` is None where the program would take any such text for a command.
    """

    __slots__ = ("added", "carrier", "text")

    def __init__(self, text: str | None, carrier: str, added: str | None = None) -> None:
        self.text = text
        self.carrier = carrier
        self.added = added


def prepare(context: Context, row: Row, message: Message) -> CarriedText:
    """Return the text to type for a message, with the header that names a sending session.

    A text that the program would alter is written into a file, and the text to type names the file.
    """
    sender = context.registry.view().by_id(message.sender) if message.sender != "user" else None
    carried = carried_text(context.kind(row["agent"]), message, sender)
    if carried.carrier == FILE:
        _write_file(row, message, _with_header(message, sender, message.text))
    return carried


def carried_text(kind: Kind, message: Message, sender: Row | None) -> CarriedText:
    """Return what is typed for a message; `sender` is the row of the sending session, if it has one."""
    if message.is_command:
        return CarriedText(message.text, INLINE)
    signed = _with_header(message, sender, message.text)
    if rules.is_plain(message.text, kind.longest_text) and kind.keeps_unchanged(signed):
        text = kind.text_to_type(signed)
        if text is not None:
            return CarriedText(text, INLINE, rules.added_spaces(text, signed))
    pointer = rules.pointer(rules.file_of(message.id), message.id)
    # The header names the sender before the agent opens the file. It is left out where the program would
    # alter it.
    line = _with_header(message, sender, pointer)
    return CarriedText(kind.text_to_type(line if kind.keeps_unchanged(line) else pointer), FILE)


def _with_header(message: Message, sender: Row | None, text: str) -> str:
    """Return the text below a line that names the sending session; a person's text stays as it is."""
    if message.sender == "user":
        return text
    name, role = (sender["name"], sender.get("role")) if sender else (message.sender, None)
    return f"{rules.header(message.id, name, role)}\n{text}"


def _write_file(row: Row, message: Message, text: str) -> None:
    """Put a message into a file that the agent may read."""
    folder = os.path.join(row["workspace"], MAIL)
    with contextlib.suppress(FileExistsError):
        # No makedirs: a workspace that was removed stays removed.
        os.mkdir(folder, mode=0o700)
    if os.path.islink(folder):
        raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam makes the folder itself")
    files = ((".gitignore", "*\n"), (os.path.basename(rules.file_of(message.id)), text))
    for file_name, content in files:
        _write_once(os.path.join(folder, file_name), content.encode("utf-8", "surrogateescape"))


def _write_once(path: str, content: bytes) -> None:
    """Write a file unless it exists: whole or not at all, even if this process dies."""
    if os.path.lexists(path):
        return
    atomic_file.replace(path, content, flushed=True)
