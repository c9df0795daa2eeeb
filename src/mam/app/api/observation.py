"""The verbs of the API that only read: nothing changes in the registry, in tmux or on disk."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]


class ObservationVerbs:
    """What can be asked about the sessions of one root."""

    def __init__(self, context: Context, caller: Caller | None = None, *, child_limit: bool = False) -> None:
        """Use mam.open(). Without a caller it is found out when a verb wants to know."""
        self.context = context
        self._caller = caller
        self._child_limit = child_limit
        self._tasks: list[ResidentTask] = []

    @property
    def caller(self) -> Caller:
        """Who calls: the session that this process runs in, or a person."""
        if self._caller is None:
            from mam.app.context.caller import find_caller

            self._caller = find_caller(self.context, os.getpid())
        return self._caller

    def names(self, *, status: Sequence[str] = ()) -> list[str]:
        """Return the names of the sessions, all or those of some statuses; the cheapest look there is."""
        rows = self.context.registry.view().rows
        return [row["name"] for row in rows if not status or row["status"] in status]

    def ls(
        self,
        *,
        status: Sequence[str] = (),
        agent: Sequence[str] = (),
        role: Sequence[str] = (),
        waiting: bool = False,
        all_roots: bool = False,
    ) -> Document:
        """Return `{schema_version, root, sessions}` with the activity of each; reads only."""
        from mam.app.context.liveness import ask_early

        # tmux answers while the rest of this verb is still being loaded.
        asked = {} if all_roots else ask_early(self.context)
        from mam.app.observation.ls import ls

        filters: dict[str, Any] = {"status": status, "agent": agent, "role": role, "waiting": waiting}
        try:
            return ls(self.context, all_roots=all_roots, asked=asked, **filters)
        except BaseException:
            for collect in asked.values():
                collect()
            raise

    def watch(self, interval: float = 1.0, **filters: Any) -> Iterator[Document]:
        """Yield what `ls` returns, at once and whenever it changes."""
        from mam.app.observation.ls import watch

        return watch(self.context, interval, **filters)

    def status(self, target: str) -> Document:
        """Return one session as `ls` shows it, with the whole row; reads only."""
        from mam.app.observation.status import status

        return status(self.context, target)

    def explain(self, target: str) -> Document:
        """Return every piece of evidence about a session's activity, and the rule that decided."""
        from mam.app.observation.explain import explain

        return explain(self.context, target)

    def read(self, target: str, *, lines: int | None = None, scrollback: bool = False) -> str:
        """Return what a session's pane shows, cleaned for a terminal; for an ended one its last screen."""
        from mam.app.observation.read import read

        return read(self.context, target, lines=lines, scrollback=scrollback)

    def transcript(self, target: str, *, turns: int = 20) -> Document:
        """Return the last turns of a session's conversation as its own record has them, model and tokens.

        `{session, conversation, turns: [{role, text, at}], model, tokens_in, tokens_out, context, window,
        context_percent}`; what the record does not say is None.
        """
        from mam.app.observation.transcript import transcript

        return transcript(self.context, target, turns)

    def wait(self, target: str, condition: str, *, timeout: float | None = None) -> Document:
        """Return the session's status once the condition holds; raise TimedOut.

        Conditions: idle, working, waiting, exited, `text:REGEX`.
        """
        from mam.app.sessions.wait import wait

        return wait(self.context, target, condition, timeout=timeout)

    def kinds(self) -> list[str]:
        """Return the names of the kinds that mam knows; any other name is a program on PATH."""
        from mam.adapters.agents.catalogue import BUILT_IN, offered

        return sorted({*BUILT_IN, *offered()})

    def log(
        self, target: str | None = None, *, limit: int = 50, since: float | None = None
    ) -> list[Document]:
        """Return who did what to which session, and why; oldest first."""
        from mam.app.observation.log import log

        return log(self.context, target, limit=limit, since=since)

    def doctor(self) -> list[Document]:
        """Return the checks of this machine and root: `{check, ok: true|false|null, message, mend}`."""
        from mam.app.monitor.doctor import doctor

        return doctor(self.context)
