"""The verbs of `fleet.messages`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, acting, changing, checked, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Document = dict[str, Any]


class Messages(VerbGroup):
    """Messages, answers to dialogs, and keys for sessions."""

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
        """Send a message to a session; return the receipt, which says what became of it, with the evidence.

        `when="idle"` waits for the end of a turn. `command` sends a slash command of the agent. A
        `message_id` that was sent before is not sent again. A message that cannot be typed now is held, and
        mam types it when the reason ends; `timeout` waits for that. With `conversation` the message is held
        while the session has another conversation open.
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
        """Send a message to every running session that fits the filters; return a receipt for each."""
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

    @checked
    def withdraw(self, message_id: str) -> bool:
        """Withdraw a held or parked message; return False if mam types it already, or it is neither."""
        from mam.app.messages.send import withdraw

        return withdraw(self._context, self._caller, message_id, "the message was withdrawn")

    @changing
    def release(self, *message_ids: str) -> list[Document]:
        """Release parked messages, or without ids all of them, to the sessions as they are now.

        Returns `{message_id, session, state, released, reason}` of each; one that no session could get stays
        parked. Raises NotAllowed if the caller is a session.
        """
        from mam.app.messages.parking import release

        return release(self._context, self._caller, message_ids or None)

    @reading
    def inbox(
        self, target: str | None = None, *, sent: bool = False, parked: bool = False, limit: int = 50
    ) -> list[Document]:
        """Return the last messages to a session, or with `sent` those from it or from the caller.

        With `parked`, return only parked messages; without a target those of every session.
        """
        from mam.app.messages.inbox import inbox

        return inbox(self._context, self._caller, target, sent=sent, parked=parked, limit=limit)

    @reading
    def dialog(self, target: str) -> Document:
        """Return the open dialog, and record it; raise NoDialog where there is none.

        `{session, dialog, title, command, question, fingerprint, text, options, since}`.
        """
        from mam.app.messages.answer import show

        return show(self._context, target)

    @changing
    def answer(self, target: str, words: str, *, expect: str | None = None) -> Document:
        """Answer the open dialog: `allow`, `deny`, an option, or text if the dialog takes text.

        `expect` is the begin of the fingerprint of the dialog that was read, at least 8 digits; raises
        Conflict if another dialog is open.
        Returns `{session, dialog, fingerprint, answer, next}` once the dialog has left the screen.
        """
        from mam.app.messages.answer import answer

        return answer(self._context, self._caller, target, words, expect=expect)

    @acting
    def interrupt(self, target: str) -> Document:
        """Interrupt a session's turn with the keys of its kind; `{session, was, activity, box}`.

        An idle session is not touched. Raises DialogOpen, and DeliveryUnconfirmed if the turn goes on.
        """
        from mam.app.messages.interrupt import interrupt

        return interrupt(self._context, self._caller, target)

    @changing
    def keys(self, target: str, *keys: str) -> Document:
        """Press keys of a fixed list in a session's pane, one after the other; `{session, keys}`.

        Raises DialogOpen before a key that could answer a dialog.
        """
        from mam.app.messages.keys import keys as press

        return press(self._context, self._caller, target, list(keys))

    @changing
    def change_model(self, target: str, model: str) -> Document:
        """Switch a running agent to another model; return the receipt of the command."""
        from mam.app.messages.change_model import change_model

        return change_model(self._context, self._caller, target, model)
