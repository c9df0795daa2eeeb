"""Print answers and errors: JSON as one document on stdout, text for people, errors on stderr."""

from __future__ import annotations

import sys

from mam.core.errors import Broken, MamError, Unavailable
from mam.surfaces.cli.style import Paint, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def write_json(document: Any, *, one_line: bool = False) -> None:
    """Print one document: indented on a terminal, on one line for a program."""
    import json

    # Escaped to ASCII, so that control characters from agents and files cannot reach a terminal.
    indent = 2 if is_terminal(sys.stdout) and not one_line else None
    print(json.dumps(document, indent=indent, ensure_ascii=True).replace("\x7f", "\\u007f"), flush=one_line)


def write_lines(lines: Iterable[str], *, flush: bool = False) -> None:
    """Print lines; the caller has made them safe for a terminal."""
    text = "\n".join(lines)
    if text:
        print(text, flush=flush)


def fail(error: Exception, as_json: bool) -> int:
    """Print an error as JSON or as text, and return its exit code."""
    mam_error = as_mam_error(error)
    if mam_error is not error or isinstance(error, Broken):
        _trace(error)
    if as_json and sys.stdout is not None:
        write_json(mam_error.as_json())
        sys.stdout.flush()
    else:
        print_error(mam_error)
    return mam_error.exit_code


def as_mam_error(error: Exception) -> MamError:
    """Return the error as a MamError: a failed output is Unavailable, any other foreign error a bug."""
    if isinstance(error, MamError):
        return error
    if isinstance(error, OSError) and _is_about_output(error):
        return Unavailable(f"the output could not be written: {error.strerror}")
    return Broken(
        f"a bug in mam: {type(error).__name__}: {error}",
        hint="MAM_DEBUG=1 shows the traceback; please report it",
    )


def print_error(error: MamError) -> None:
    """Print the message of an error and its hint."""
    if sys.stderr is None:
        return
    paint = Paint(sys.stderr)
    print(f"{paint('mam:', 'red')} {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {paint(error.hint, 'dim')}", file=sys.stderr)
    sys.stderr.flush()


def _is_about_output(error: OSError) -> bool:
    """Tell whether the error is a failed write to stdout, for example on a full disk: it has no file name."""
    import errno

    return error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG) and error.filename is None


def _trace(error: Exception) -> None:
    import os

    if os.environ.get("MAM_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
