"""The verbs of `fleet.messages`."""

from __future__ import annotations

from mam.app.api.access import Group, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Document = dict[str, Any]


class Messages(Group):
    """Words, answers and keys for sessions."""

    __slots__ = ()

    @changing
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

        return send(
            self._context,
            self._caller,
            target,
            text,
            when=when,
            is_command=command,
            timeout=timeout,
            message_id=message_id,
            conversation=conversation,
        )

    @changing
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

        return broadcast(
            self._context,
            self._caller,
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

        return withdraw(self._context, self._caller, message_id, "it was withdrawn")

    def inbox(self, target: str | None = None, *, sent: bool = False, limit: int = 50) -> list[Document]:
        """Return the last messages to a session, or with `sent` those from it or from the caller."""
        from mam.app.messages.inbox import inbox

        return inbox(self._context, self._caller, target, sent=sent, limit=limit)

    def dialog(self, target: str) -> Document:
        """Return the dialog that is open: `{session, dialog, fingerprint, text, options}`; else NoDialog."""
        from mam.app.messages.answer import show

        return show(self._context, target)

    @changing
    def answer(self, target: str, words: str, *, expect: str | None = None) -> Document:
        """Answer the dialog that is open: `allow`, `deny`, an option, or words where it takes some.

        `expect` is the fingerprint of the dialog that was shown; Conflict where it is another one by now.
        Returns `{session, dialog, fingerprint, answer, next}` once the dialog is seen to be gone.
        """
        from mam.app.messages.answer import answer

        return answer(self._context, self._caller, target, words, expect=expect)

    @changing
    def interrupt(self, target: str) -> Document:
        """Cut a session's turn short in the way of its kind; `{session, was, activity, box}`.

        One that rests is left as it is. Raises DialogOpen, and DeliveryUnconfirmed where it goes on.
        """
        from mam.app.messages.interrupt import interrupt

        return interrupt(self._context, self._caller, target)

    @changing
    def keys(self, target: str, *keys: str) -> Document:
        """Press keys of a closed list in a session's pane, one after the other; `{session, keys}`.

        Raises DialogOpen before a key that could answer a dialog.
        """
        from mam.app.messages.keys import keys as press

        return press(self._context, self._caller, target, list(keys))

    @changing
    def change_model(self, target: str, model: str) -> Document:
        """Have a running agent go on with another model; returns the receipt of the command."""
        from mam.app.messages.change_model import change_model

        return change_model(self._context, self._caller, target, model)
