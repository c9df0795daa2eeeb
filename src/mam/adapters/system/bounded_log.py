"""A log file of bounded size, with one predecessor. What is written into it is safe to print."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import gmtime, strftime, time

from mam.core.safe_text import for_screen, one_line

# A pipe that somebody has put there is not waited for.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 1 << 20
# So much of the end holds the last lines.
_TAIL = 16384


class BoundedLog:
    """A log that several processes may append to. It also serves as a text stream for stdout and stderr."""

    encoding, errors = "utf-8", "backslashreplace"

    def __init__(self, path: str, largest: int = _LARGEST) -> None:
        """Open nothing yet. A file that is larger than `largest` becomes the predecessor."""
        self.path = path
        self.largest = largest
        self._unfinished = ""

    def prepare(self) -> bool:
        """Make the file, private to the user, if it is missing; tell whether it is there."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            os.close(os.open(self.path, _FLAGS, 0o600))
        except OSError:
            return False
        return True

    def add(self, text: str) -> None:
        """Append lines with the time and the process. A log that cannot be written stops nobody."""
        head = f"{strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time()))} [{os.getpid()}] "
        lines = [head + line for line in for_screen(text).splitlines() if line.strip()]
        if not lines or not self.prepare():
            return
        with suppress(OSError):
            self.turn_over()
            handle = os.open(self.path, _FLAGS, 0o600)
            try:
                os.write(handle, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
            finally:
                os.close(handle)

    def turn_over(self) -> None:
        """Make a file that has grown too large the predecessor; output that goes there follows."""
        try:
            is_large = os.stat(self.path).st_size > self.largest
        except FileNotFoundError:
            return
        if is_large:
            outputs = self._outputs()
            os.replace(self.path, f"{self.path}.1")
            handle = os.open(self.path, _FLAGS, 0o600)
            for number in outputs:
                os.dup2(handle, number)
            os.close(handle)

    def _outputs(self) -> list[int]:
        """Return which of stdout and stderr are this file."""
        facts = os.stat(self.path)
        outputs = []
        for number in (1, 2):
            with suppress(OSError):
                if os.path.samestat(os.fstat(number), facts):
                    outputs.append(number)
        return outputs

    def take_output(self) -> None:
        """Let what this process prints pass through the log, if its stdout and stderr are the file anyway."""
        with suppress(OSError):
            if self._outputs() == [1, 2]:
                sys.stdout = sys.stderr = self

    def write(self, text: str) -> int:
        """Append each line as soon as it is complete."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        if lines:
            self.add("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        """Append a line that is not complete."""
        unfinished, self._unfinished = self._unfinished, ""
        self.add(unfinished)

    def isatty(self) -> bool:
        """Return False: nobody looks at it now."""
        return False

    def last_line(self, limit: int = 300, *, begun_with: str = "") -> str | None:
        """Return the last line, without time and process; None if there is none.

        A line that is indented, such as a hint, belongs to the one before it. `begun_with` is what each
        process writes first: what an earlier one wrote after the last one had begun does not count.
        """
        for path in (self.path, f"{self.path}.1"):
            with suppress(OSError), open(path, "rb", opener=_open_at_once) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                lines = file.read(_TAIL).decode("utf-8", "replace").split("\n")
                if text := _last_text([_parts(line) for line in lines], begun_with):
                    return one_line(text, limit)
        return None

    def changed_at(self) -> float:
        """Return when something was written last; 0.0 if nothing ever was."""
        try:
            return os.stat(self.path).st_mtime
        except OSError:
            return 0.0


def _parts(line: str) -> tuple[str, str]:
    """Return the process of a line and its text; what a process printed before it used the log has none."""
    head, separator, text = line.partition("] ")
    return (head.rpartition("[")[2], text) if separator else ("", line)


def _last_text(lines: list[tuple[str, str]], begun_with: str) -> str | None:
    own = ""
    if begun_with:
        own = next((process for process, text in reversed(lines) if begun_with in text), "")
    for process, text in reversed(lines):
        if text.strip() and text[0] != " " and (not own or process in (own, "")):
            return text
    return None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
