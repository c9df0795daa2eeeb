"""One verb on several sessions: four at a time, each with its own outcome."""

from __future__ import annotations

from mam.core.errors import Broken, MamError
from mam.surfaces.cli import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.app.api.fleet import Fleet
    from mam.app.api.sessions import Outcome
    from mam.surfaces.cli.invocation import Invocation

    # Does the verb to one session; returns the answer as a document and as a line.
    Work = Callable[[Fleet, str], tuple[dict[str, Any], str]]

AT_ONCE = 4


def run(
    call: Invocation, names: Sequence[str], work: Work, *, several: bool, nothing: str = "nothing to do"
) -> int:
    """Do the work to each session and answer; the exit code is the highest.

    A single session that was named is answered as `{session}` and fails like any verb; several are
    answered as `{results}`, and one that fails stops no other.
    """
    if not several and len(names) == 1:
        return call.say(*work(call.fleet, names[0]))
    if not names:
        return call.say({"results": []}, nothing)
    results, codes = _Crew(call, names, work).run()
    if call.as_json:
        output.write_json({"results": results})
    return max(codes)


class _Crew:
    """The threads and what they have brought home."""

    def __init__(self, call: Invocation, names: Sequence[str], work: Work) -> None:
        self.call = call
        self.work = work
        # Who calls is found out once, not in each thread.
        self.fleet = call.fleet
        self.caller = call.fleet.caller
        self.waiting = list(enumerate(names))[::-1]
        self.results: list[dict[str, Any]] = [{"target": name} for name in names]
        self.codes = [Broken.exit_code] * len(names)

    def run(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Work until nobody is left; Ctrl-C lets no further session begin."""
        from threading import Lock, Thread

        self.lock = Lock()
        # Daemons: Ctrl-C ends the command at once, and what was begun is finished by the next verb.
        threads = [Thread(target=self._labour, daemon=True) for _ in range(min(AT_ONCE, len(self.waiting)))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.waiting.clear()
            raise
        return self.results, self.codes

    def _labour(self) -> None:
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
                self.call.quiet()
                print(line, flush=True)

    def _failed(self, at: int, name: str, error: Exception) -> None:
        ours = output.as_ours(error)
        self.results[at].update(ours.as_json())
        self.codes[at] = ours.exit_code
        with self.lock:
            self.call.quiet()
            if not self.call.as_json:
                output.complain(_named(ours, name))


def _named(error: MamError, name: str) -> MamError:
    """Return the error with the session's name in it, where it does not say it."""
    if name not in error.message:
        error.message = f"{name}: {error.message}"
    return error


def told(done: Outcome, verb: str) -> tuple[dict[str, Any], str]:
    """Return the answer of a verb that changed a session, or found nothing to change."""
    from mam.surfaces.cli.render_sessions import clean, line

    document: dict[str, Any] = {"session": done.session.row}
    if done.note:
        document["note"] = done.note
    if not done.changed:
        return document, f"{clean(done.session.name)}: {clean(done.note or 'nothing to do')}"
    note = f" ({clean(done.note)})" if done.note else ""
    return document, f"{verb}: {line(done.session.row)}{note}"
