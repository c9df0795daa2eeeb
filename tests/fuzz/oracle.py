"""What every reader of input owes: a value or one of mam's own errors, within bounds, and nothing changed.

The bounds are of this process: seconds of its own processor time, which the load of the machine does not
change, and bytes that it may ask for beyond what it has.
"""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mam.core.errors import Broken, MamError

CPU_SECONDS, MORE_BYTES = 20.0, 768 * 1024 * 1024
_LONGEST_MESSAGE = 2000


class TookTooLong(BaseException):
    """The reader used up its processor time. No `except Exception` of the code under test hides it."""


def read(reader: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a reader; return its value, or the error that mam raised. Anything else fails the test."""
    with bounded():
        try:
            return reader(*arguments, **named)
        except MamError as error:
            check_error(error)
            return error


def check_error(error: MamError) -> None:
    """Check that an error is no bug, and that a terminal and a program can be given what it says."""
    assert not isinstance(error, Broken), error
    assert error.message, f"{type(error).__name__} says nothing"
    for text in (error.message, error.hint or ""):
        assert is_plain(text), f"an error holds what a terminal acts on: {text!r}"
        assert len(text) <= _LONGEST_MESSAGE
        text.encode()
    json.dumps(error.as_json()).encode()


def is_plain(text: str) -> bool:
    """Tell whether a text is one line without control characters."""
    return not any(sign < " " or "\x7f" <= sign <= "\x9f" for sign in text)


def is_printable_screen(text: str) -> bool:
    """Tell whether lines have no control character but their line ends."""
    return is_plain(text.replace("\n", ""))


@contextmanager
def bounded(seconds: float = CPU_SECONDS, more_bytes: int = MORE_BYTES) -> Iterator[None]:
    """Bound the processor time and the memory of what runs in this block, in the main thread."""

    def give_up(_number: int, _frame: object) -> None:
        raise TookTooLong(f"more than {seconds:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        with _memory_bounded(more_bytes):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _memory_bounded(more_bytes: int) -> Iterator[None]:
    """Let an allocation beyond the bound raise MemoryError. Only Linux holds a process to it."""
    if sys.platform != "linux":
        yield
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def unchanged(*places: Path) -> Iterator[None]:
    """Check that the block leaves files, and every file below folders, byte for byte as they are."""
    before = _digests(places)
    yield
    assert _digests(places) == before


def _digests(places: tuple[Path, ...]) -> dict[str, str]:
    files = [path for place in places for path in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}
