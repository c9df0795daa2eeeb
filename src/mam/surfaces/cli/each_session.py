"""Run one verb on each named session: one directly, several four at a time, each with its own outcome."""

from __future__ import annotations

from mam.core.errors import Broken, MamError, RootRefused
from mam.surfaces.cli import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.app.api.sessions import Outcome
    from mam.surfaces.cli.invocation import Invocation

    # Runs the verb on one session; returns the answer as a document and as a line.
    Work = Callable[[Fleet, str], tuple[dict[str, Any], str]]

AT_ONCE = 4


def run(
    call: Invocation, names: Sequence[str], work: Work, *, several: bool, nothing: str = "nothing to do"
) -> int:
    """Run the work on each session and print the answers; return the highest exit code.

    For a single named session the answer is `{session}`, and a failure raises. For several sessions the
    answer is `{results}`, and a failure of one session does not stop the others.
    """
    if not several and len(names) == 1:
        return call.say(*work(call.fleet, names[0]))
    if not names:
        return call.say({"results": []}, nothing)
    results, codes = _Batch(call, names, work).run()
    if call.as_json:
        output.write_json(call.with_warnings({"results": results}))
    return max(codes)


class _Batch:
    """The threads of a batch and their results."""

    def __init__(self, call: Invocation, names: Sequence[str], work: Work) -> None:
        self.call = call
        self.work = work
        # Identify the caller once, before the threads start.
        self.fleet = call.fleet
        self.caller = call.fleet.caller
        self.waiting = list(enumerate(names))[::-1]
        self.results: list[dict[str, Any]] = [{"target": name} for name in names]
        self.codes = [Broken.exit_code] * len(names)
        self.said_of_root: set[str] = set()

    def run(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Work on all sessions; after Ctrl-C no further session begins."""
        from threading import Lock, Thread

        self.lock = Lock()
        # Daemon threads: Ctrl-C ends the command at once. The next verb finishes what they began.
        threads = [Thread(target=self._work, daemon=True) for _ in range(min(AT_ONCE, len(self.waiting)))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.waiting.clear()
            raise
        return self.results, self.codes

    def _work(self) -> None:
        fleet = self.fleet.for_thread()
        try:
            while self.waiting:
                try:
                    at, name = self.waiting.pop()
                except IndexError:
                    return
                self._do(fleet, at, name)
        finally:
            fleet.close()

    def _do(self, fleet: Fleet, at: int, name: str) -> None:
        try:
            document, line = self.work(fleet, name)
        except Exception as error:
            self._failed(at, name, error)
            return
        self.results[at].update(document)
        self.codes[at] = 0
        with self.lock:
            if not self.call.as_json:
                self.call.clear_progress()
                print(line, flush=True)

    def _failed(self, at: int, name: str, error: Exception) -> None:
        mam_error = output.as_mam_error(error)
        self.results[at].update(mam_error.as_json())
        self.codes[at] = mam_error.exit_code
        with self.lock:
            self.call.clear_progress()
            if self.call.as_json:
                return
            if not isinstance(mam_error, RootRefused):
                output.print_error(_named(mam_error, name))
            elif mam_error.message not in self.said_of_root:
                # It is not about one session.
                self.said_of_root.add(mam_error.message)
                output.print_error(mam_error)


def _named(error: MamError, name: str) -> MamError:
    """Return the error with the session's name in its message."""
    if name not in error.message:
        error.message = f"{name}: {error.message}"
    return error


def answer(outcome: Outcome, verb: str) -> tuple[dict[str, Any], str]:
    """Return the answer of a verb that may have changed a session, as a document and as a line."""
    from mam.surfaces.cli.render_sessions import clean, line

    document: dict[str, Any] = {"session": outcome.session.row}
    if outcome.note:
        document["note"] = outcome.note
    if outcome.left_running is not None:
        document["left_running"] = outcome.left_running
    if not outcome.changed:
        return document, f"{clean(outcome.session.name)}: {clean(outcome.note or 'nothing to do')}"
    note = f" ({clean(outcome.note)})" if outcome.note else ""
    return document, f"{verb}: {line(outcome.session.row)}{note}"
