"""A command of the user's that decides whether monitoring is still wanted. Without an answer it is."""

from __future__ import annotations

import json
import threading

from mam.adapters.system import program_lookup
from mam.core.monitor_card_comments import verdict_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.kanban.board import Card, Comment
    from mam.app.context.context import Context

_SECONDS = 120.0
_LONGEST_BODY, _MOST_COMMENTS, _LONGEST_COMMENT = 8192, 10, 2048


class Judge:
    """Asks one question at a time, beside the monitor: a slow judge holds up nothing."""

    def __init__(self, context: Context) -> None:
        """Take the command of the settings; without one there is nobody to ask."""
        self._environ = context.environ
        self._command = context.settings().judge_command
        self._thread: threading.Thread | None = None
        self._verdict = ""

    def ask(self, card: Card, comments: Sequence[Comment], note: str) -> None:
        """Ask about a card, unless the last question is still open."""
        if not self._command or (self._thread is not None and self._thread.is_alive()):
            return
        said = [{**one.as_json(), "body": one.body[:_LONGEST_COMMENT]} for one in comments[-_MOST_COMMENTS:]]
        question = {
            "id": card.id,
            "title": card.title,
            "body": (card.body or "")[:_LONGEST_BODY],
            "comments": said,
            "note": note,
        }
        environ = {**self._environ, "MAM_CARD": json.dumps(question), "MAM_CARD_ID": card.id}
        self._thread = threading.Thread(target=self._run, args=(list(self._command), environ), daemon=True)
        self._thread.start()

    def _run(self, argv: list[str], environ: dict[str, str]) -> None:
        done = program_lookup.Running(argv, environ).finish(_SECONDS)
        self._verdict = verdict_of(done.status, done.words)

    def verdict(self) -> str:
        """Return the answer to the last question, once; empty where there is none yet."""
        if self._thread is None or self._thread.is_alive():
            return ""
        self._thread, found = None, self._verdict
        return found
