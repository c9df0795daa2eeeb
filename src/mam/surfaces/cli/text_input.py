"""Texts from a file or from stdin, for the verbs that take a prompt, a message, a task or a card."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys

_LARGEST = 4 * 1024 * 1024
# Files that the shell has opened already: stdin, and `<(command)`.
_OPENED = r"/dev/(?:stdin|fd/[0-9]+)\Z|/proc/self/fd/[0-9]+\Z"


def read_argument(text: str) -> str:
    """Return the text of an argument; `-` reads it from stdin."""
    return read_prompt("-") if text == "-" else text


def read_prompt(file: str) -> str:
    """Return the text of a file, or of stdin for `-`, with its line ends unchanged."""
    from mam.core.errors import InvalidPrompt

    data = read_bytes(file, _LARGEST + 1)
    if len(data) > _LARGEST:
        raise InvalidPrompt(
            f"{_name(file)} holds more than {_LARGEST // 1024 // 1024} MB",
            hint="write a short text that names a file which the agent can read",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidPrompt(
            f"{_name(file)} is not UTF-8 text", hint="convert it: iconv -f latin1 -t utf-8 OLD > NEW"
        ) from None


def read_bytes(file: str, most: int) -> bytes:
    """Return the first bytes of a regular file, of a file that the shell has opened, or of stdin for `-`.

    A named pipe or a device is refused: it could keep the command waiting for ever.
    """
    from mam.core.errors import InvalidPrompt

    try:
        if file == "-":
            if sys.stdin is None:
                raise OSError(errno.EBADF, "It is closed")
            return sys.stdin.buffer.read(most)
        with open(file, "rb", opener=None if re.match(_OPENED, file) else _open_regular) as source:
            return source.read(most)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name contains a NUL character"
        raise InvalidPrompt(
            f"mam cannot read {_name(file)}: {reason}",
            hint="name a text file that you can read, or - for stdin",
        ) from None


def _name(file: str) -> str:
    return "stdin" if file == "-" else file


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; raise OSError for anything else, without waiting for a writer of a pipe."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        reason = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "It is not a regular file"
        raise OSError(errno.EINVAL, reason, path)
    return handle
