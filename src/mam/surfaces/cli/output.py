"""Where answers and errors go: JSON as one document on stdout, words for people, errors on stderr."""

from __future__ import annotations

import sys

from mam.core.errors import Broken, MamError, Unavailable
from mam.surfaces.cli.style import Paint, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def write_json(document: Any, *, one_line: bool = False) -> None:
    """Print one document: indented for a person who looks, on one line for a program that reads."""
    import json

    # Escaped to ASCII: what agents and files say cannot reach a terminal as a control.
    indent = 2 if is_terminal(sys.stdout) and not one_line else None
    print(json.dumps(document, indent=indent, ensure_ascii=True).replace("\x7f", "\\u007f"), flush=one_line)


def write_lines(lines: Iterable[str], *, flush: bool = False) -> None:
    """Print lines that are clean already."""
    text = "\n".join(lines)
    if text:
        print(text, flush=flush)


def fail(error: Exception, as_json: bool) -> int:
    """Show an error in the form that was asked for and return its exit code."""
    ours = as_ours(error)
    if ours is not error or isinstance(error, Broken):
        _trace(error)
    if as_json and sys.stdout is not None:
        write_json(ours.as_json())
        sys.stdout.flush()
    else:
        complain(ours)
    return ours.exit_code


def as_ours(error: Exception) -> MamError:
    """Return the error as one of our tree; what nobody foresaw is a bug, except that output failed."""
    if isinstance(error, MamError):
        return error
    if isinstance(error, OSError) and _is_about_output(error):
        return Unavailable(f"the answer could not be written: {error.strerror}")
    return Broken(
        f"a bug in mam: {type(error).__name__}: {error}", hint="MAM_DEBUG=1 shows where; please report it"
    )


def complain(error: MamError) -> None:
    """Tell a person what went wrong, and the way out."""
    if sys.stderr is None:
        return
    paint = Paint(sys.stderr)
    print(f"{paint('mam:', 'red')} {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {paint(error.hint, 'dim')}", file=sys.stderr)
    sys.stderr.flush()


def _is_about_output(error: OSError) -> bool:
    """A full disk behind a redirected stdout is no bug; only the last flush raises it without a file name."""
    import errno

    return error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG) and error.filename is None


def _trace(error: Exception) -> None:
    import os

    if os.environ.get("MAM_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
