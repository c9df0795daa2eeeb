"""The verbs of the API that carry words to sessions."""

from __future__ import annotations

from mam.app.api.observation import ObservationVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Document = dict[str, Any]


class MessageVerbs(ObservationVerbs):
    """What can be said to the sessions of one root."""

    def _settle(self) -> None:
        """Begin a changing verb: nothing new while something is left half done, or held and could go out."""
        from mam.app.sessions.begin_change import settle_all

        settle_all(self.context, self.caller)

    def send(
        self,
        target: str,
        text: str,
        *,
        when: str = "ready",
        command: bool = False,
        timeout: float = 0.0,
        message_id: str | None = None,
        conversation: str | None = None,
    ) -> Document:
        """Send words to a session; return the receipt, which says what became of them and what proves it.

        `when="idle"` waits for the end of a turn, `command` sends a slash command of the program's own, and
        a `message_id` that was sent before is not sent again. What cannot be typed now is held, and goes out
        by itself when the reason ends; `timeout` waits so long for that. With `conversation` it is held
        while another one than that is open.
        """
        from mam.app.messages.send import send

        self._settle()
        return send(
            self.context,
            self.caller,
            target,
            text,
            when=when,
            is_command=command,
            timeout=timeout,
            message_id=message_id,
            conversation=conversation,
        )

    def broadcast(
        self,
        text: str,
        *,
        role: Sequence[str] = (),
        team: Sequence[str] = (),
        agent: Sequence[str] = (),
        everyone: bool = False,
        ids: Sequence[str] | None = None,
        when: str = "ready",
        timeout: float = 0.0,
    ) -> list[Document]:
        """Send words to every running session that fits, of all or of some; return a receipt for each."""
        from mam.app.messages.broadcast import broadcast

        self._settle()
        return broadcast(
            self.context,
            self.caller,
            text,
            roles=role,
            team=team,
            kinds=agent,
            everyone=everyone,
            ids=ids,
            when=when,
            timeout=timeout,
        )

    def withdraw(self, message_id: str) -> bool:
        """Take back a message that is held; False where somebody has begun to type it, or it has ended."""
        from mam.app.messages.send import withdraw

        return withdraw(self.context, self.caller, message_id, "it was withdrawn")

    def keys(self, target: str, *keys: str) -> Document:
        """Press keys of a closed list in a session's pane, one after the other; `{session, keys}`.

        Raises DialogOpen before a key that could answer a dialog.
        """
        from mam.app.messages.keys import keys as press

        self._settle()
        return press(self.context, self.caller, target, list(keys))

    def interrupt(self, target: str) -> Document:
        """Cut a session's turn short in the way of its kind; `{session, was, activity, box}`.

        One that rests is left as it is. Raises DialogOpen, and DeliveryUnconfirmed where it goes on.
        """
        from mam.app.messages.interrupt import interrupt

        self._settle()
        return interrupt(self.context, self.caller, target)

    def dialog(self, target: str) -> Document:
        """Return the dialog that is open: `{session, dialog, fingerprint, text, options}`; else NoDialog."""
        from mam.app.messages.answer import show

        return show(self.context, target)

    def answer(self, target: str, words: str, *, expect: str | None = None) -> Document:
        """Answer the dialog that is open: `allow`, `deny`, an option, or words where it takes some.

        `expect` is the fingerprint of the dialog that was shown; Conflict where it is another one by now.
        Returns `{session, dialog, fingerprint, answer, next}` once the dialog is seen to be gone.
        """
        from mam.app.messages.answer import answer

        self._settle()
        return answer(self.context, self.caller, target, words, expect=expect)

    def inbox(self, target: str | None = None, *, sent: bool = False, limit: int = 50) -> list[Document]:
        """Return the last messages to a session, or with `sent` those from it or from the caller."""
        from mam.app.messages.inbox import inbox

        return inbox(self.context, self.caller, target, sent=sent, limit=limit)
