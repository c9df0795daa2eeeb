"""Runs a program at the same time as mam, without mam's terminal and its signals."""

from __future__ import annotations

from mam.adapters.system import child_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_ANSWER = 4096
_MOST_PRINTED = 1024 * 1024
# For a program that has closed its output and has not ended.
_LAST_SECONDS = 1.0


class Result:
    """How a program ended, and the end of its output; a status of None means that it did not end in time."""

    __slots__ = ("output", "status")

    def __init__(self, status: int | None, output: str) -> None:
        self.status = status
        self.output = output


class Running:
    """A program that runs at the same time as mam, without mam's terminal and signals."""

    def __init__(self, argv: list[str], environ: Mapping[str, str], cwd: str = "/") -> None:
        """Start the program; if that fails, `finish` returns the reason."""
        self._child: child_process.Child | None = None
        self._failure = ""
        try:
            self._child = child_process.start(argv, environ, cwd=cwd, session=True, err=child_process.MERGED)
        except OSError as error:
            self._failure = error.strerror or str(error)

    @property
    def pid(self) -> int | None:
        """The pid of the program, which leads a session of its own; None if it could not be started."""
        return None if self._child is None else self._child.pid

    def cancel(self) -> None:
        """End the program and what it started; nobody wants its answer any more."""
        if self._child is not None:
            self._child.cancel()

    def has_ended(self, seconds: float) -> bool:
        """Tell whether the program ends within so many seconds; do not read its output."""
        if self._child is None:
            return True
        try:
            self._child.wait(seconds)
        except child_process.OutOfTime:
            return False
        return True

    def finish(self, seconds: float) -> Result:
        """Wait for the end; kill the program with its group if it takes too long or prints too much."""
        if self._child is None:
            return Result(None, self._failure)
        try:
            answer = self._child.finish(seconds, most=_MOST_PRINTED, last_seconds=_LAST_SECONDS)
        except child_process.OutOfTime:
            return Result(None, "")
        # Another part of this process reaped it, so the real status is unknown and counts as a failure.
        status = -1 if answer.status is None else answer.status
        return Result(status, answer.out[-_LONGEST_ANSWER:].decode("utf-8", "replace").strip())
