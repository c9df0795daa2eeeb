"""Texts from a file or from stdin, for the verbs that take a prompt or a message."""

from __future__ import annotations

import sys

_LARGEST = 4 * 1024 * 1024


def read_prompt(file: str) -> str:
    """Return the text of a file, or of stdin for `-`, with its line ends unchanged."""
    from mam.core.errors import InvalidPrompt

    try:
        if file == "-":
            data = sys.stdin.buffer.read(_LARGEST)
        else:
            with open(file, "rb") as source:
                data = source.read(_LARGEST)
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidPrompt(f"mam cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidPrompt(f"{file} is not UTF-8 text") from None
