"""Runs the user's judge command, which decides whether monitoring goes on. Without an answer it does."""

from __future__ import annotations

import json
import threading

from mam.adapters.system import concurrent_program
from mam.core.monitor_card_comments import verdict_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.kanban.board import Card, Comment
    from mam.app.context.context import Context

_SECONDS = 120.0
_LONGEST_BODY, _MOST_COMMENTS, _LONGEST_COMMENT = 8192, 10, 2048


class Judge:
    """Runs one judge command at a time in a thread, so that a slow command does not delay the monitor."""

    def __init__(self, context: Context) -> None:
        """Read the command from the settings; without a command `ask` does nothing."""
        self._environ = context.environ
        self._command = context.settings().judge_command
        self._thread: threading.Thread | None = None
        self._verdict = ""

    def ask(self, card: Card, comments: Sequence[Comment], note: str) -> None:
        """Start the command for a card, unless the previous one still runs."""
        if not self._command or (self._thread is not None and self._thread.is_alive()):
            return
        recent = [
            {**comment.as_json(), "body": comment.body[:_LONGEST_COMMENT]}
            for comment in comments[-_MOST_COMMENTS:]
        ]
        question = {
            "id": card.id,
            "title": card.title,
            "body": (card.body or "")[:_LONGEST_BODY],
            "comments": recent,
            "note": note,
        }
        environ = {**self._environ, "MAM_CARD": json.dumps(question), "MAM_CARD_ID": card.id}
        self._thread = threading.Thread(target=self._run, args=(list(self._command), environ), daemon=True)
        self._thread.start()

    def _run(self, argv: list[str], environ: dict[str, str]) -> None:
        result = concurrent_program.Running(argv, environ).finish(_SECONDS)
        self._verdict = verdict_of(result.status, result.output)

    def verdict(self) -> str:
        """Return the verdict of the last command once; an empty string if there is none yet."""
        if self._thread is None or self._thread.is_alive():
            return ""
        self._thread, verdict = None, self._verdict
        return verdict
