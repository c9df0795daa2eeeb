"""The verbs of the API that carry words to sessions."""

from __future__ import annotations

from mam.app.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]


class Messenger(Reader):
    """What can be said to the sessions of one root."""

    def send(
        self,
        target: str,
        text: str,
        *,
        when: str = "ready",
        command: bool = False,
        timeout: float = 0.0,
        message_id: str | None = None,
    ) -> Document:
        """Send words to a session; return the receipt, which says what became of them and what proves it.

        `when="idle"` waits for the end of a turn, `command` sends a slash command of the program's own, and
        a `message_id` that was sent before is not sent again. What cannot be typed now is held, and goes out
        by itself when the reason ends; `timeout` waits so long for that.
        """
        from mam.app.send import send
        from mam.app.settle import settle

        settle(self.world)
        return send(
            self.world,
            target,
            text,
            when=when,
            is_command=command,
            timeout=timeout,
            message_id=message_id,
        )

    def inbox(self, target: str | None = None, *, sent: bool = False, limit: int = 50) -> list[Document]:
        """Return the last messages to a session, or with `sent` those from it or from the caller."""
        from mam.app.inbox import inbox

        return inbox(self.world, target, sent=sent, limit=limit)
