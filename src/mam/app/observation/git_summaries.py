"""The branch and the number of changed files of the directories of sessions, kept for ten seconds.

`get` answers at once with what is known, and one thread renews what is older, with one git at a time. A
directory that nobody asks for costs nothing.
"""

from __future__ import annotations

import os
from threading import Condition, Lock, Thread
from time import monotonic
from typing import NamedTuple

from mam.adapters.git.summary import summary
from mam.adapters.system import load_adjusted_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mam.adapters.git.summary import Summary

# How long git may take, on a quiet machine.
SECONDS = 1.0
FRESH_SECONDS = 10.0
# An answer that took long is kept so many times as long, and the thread rests so many times as long before it
# renews another one. So git takes two hundredths of the time, however many directories are looked at.
_REST = 50.0
_LONGEST_KEPT, _LONGEST_REST = 60.0, 5.0
# An answer that nobody has wanted to be renewed for so long is forgotten.
_FORGOTTEN_SECONDS = 600.0
# For a thread that waits for a file system.
_END_SECONDS = 5.0


class _Answer(NamedTuple):
    summary: Summary | None
    fresh_until: float


class GitSummaries:
    """The summaries of many directories. Any thread may call it; whoever makes one closes it."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        now: Callable[[], float] = monotonic,
        summarize: Callable[..., Summary | None] = summary,
    ) -> None:
        """Store the environment for git; start nothing yet."""
        self._environ = environ
        self._now = now
        self._summarize = summarize
        # One git at a time, also if several threads call `refresh_now`.
        self._git = Lock()
        # What follows is used with this lock. It is never held while somebody waits for git or a file.
        self._changed = Condition()
        # By the real directory, so that all names of a directory share an answer.
        self._answers: dict[str, _Answer] = {}
        self._real: dict[str, str] = {}
        # The directories that were asked for and are not fresh, in this order.
        self._wanted: dict[str, None] = {}
        self._rest_until = float("-inf")
        self._is_closed = False
        self._thread: Thread | None = None
        # The other end is closed when git is to end.
        self._cancel = -1

    def __enter__(self) -> GitSummaries:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def get(self, directories: Iterable[str]) -> dict[str, Summary | None]:
        """Return what is known of each directory, and have renewed what is older than ten seconds.

        It never waits for git or a file. A directory is None until its first answer, outside of a work tree,
        and if git failed.
        """
        with self._changed:
            known = {}
            for directory in directories:
                answer = self._known(directory)
                known[directory] = answer.summary if answer else None
                if answer is None or not self._is_fresh(answer):
                    self._wanted[directory] = None
            if self._wanted and not self._is_closed:
                self._start()
                self._changed.notify_all()
            return known

    def refresh_now(self, directories: Iterable[str], seconds: float = SECONDS) -> dict[str, Summary | None]:
        """Return the summary of each directory, and run git for those that are older than ten seconds.

        It is for verbs that answer once, and takes at most so many seconds, more on a busy machine. What was
        not reached in this time is as `get` has it.
        """
        deadline = monotonic() + load_adjusted_clock.stretched(seconds)
        named = list(directories)
        for directory in named:
            if not self._git.acquire(timeout=max(0.0, deadline - monotonic())):
                break
            try:
                self._renew(directory, max(0.0, deadline - monotonic()))
            finally:
                self._git.release()
        with self._changed:
            answers = {directory: self._known(directory) for directory in named}
        return {directory: answer.summary if answer else None for directory, answer in answers.items()}

    def close(self) -> None:
        """End the thread, and the git that it runs with what that started. A second call does nothing."""
        with self._changed:
            self._is_closed = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            os.close(self._cancel)
            thread.join(_END_SECONDS)

    def _known(self, directory: str) -> _Answer | None:
        return self._answers.get(self._real.get(directory, directory))

    def _is_fresh(self, answer: _Answer) -> bool:
        return self._now() < answer.fresh_until

    def _start(self) -> None:
        if self._thread is not None:
            return
        try:
            cancel, end = os.pipe()
        except OSError:
            # There may be a descriptor at the next call.
            return
        thread = Thread(target=self._run, args=(cancel,), name="git summaries", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            os.close(cancel)
            os.close(end)
            return
        self._thread, self._cancel = thread, end

    def _run(self, cancel: int) -> None:
        try:
            while (directory := self._next()) is not None:
                with self._git:
                    took = self._renew(directory, load_adjusted_clock.stretched(SECONDS), cancel)
                rest = min(_REST * took, _LONGEST_REST)
                self._rest_until = max(self._rest_until, self._now() + rest)
        finally:
            os.close(cancel)

    def _next(self) -> str | None:
        """Wait for a directory to renew, those without an answer first; None when this is closed."""
        with self._changed:
            while not self._is_closed:
                unknown = (name for name in self._wanted if self._known(name) is None)
                directory = next(unknown, None)
                pause = 0.0
                if directory is None and self._wanted:
                    directory = next(iter(self._wanted))
                    pause = self._rest_until - self._now()
                if directory is not None and pause <= 0:
                    del self._wanted[directory]
                    return directory
                self._changed.wait(None if directory is None else pause)
            return None

    def _renew(self, directory: str, seconds: float, cancel: int | None = None) -> float:
        """Run git for a directory if its answer is not fresh, and return how long that took."""
        if not os.path.isabs(directory):
            return 0.0
        try:
            real = os.path.realpath(directory)
        except (OSError, ValueError):
            return 0.0
        with self._changed:
            self._real[directory] = real
            answer = self._answers.get(real)
            if answer is not None and self._is_fresh(answer):
                return 0.0
        began = self._now()
        found = self._summarize(real, self._environ, seconds=seconds, cancel=cancel)
        ended = self._now()
        kept = min(max(FRESH_SECONDS, _REST * (ended - began)), _LONGEST_KEPT)
        with self._changed:
            self._answers[real] = _Answer(found, ended + kept)
            self._forget(ended - _FORGOTTEN_SECONDS)
        return ended - began

    def _forget(self, before: float) -> None:
        self._answers = {
            real: answer for real, answer in self._answers.items() if answer.fresh_until > before
        }
        self._real = {name: real for name, real in self._real.items() if real in self._answers}
