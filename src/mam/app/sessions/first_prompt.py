"""The first prompt of a session: a message like any other, except that `create` fails where it must wait."""

from __future__ import annotations

from mam.adapters.system import load_adjusted_clock
from mam.app.messages.send import send, withdraw
from mam.app.observation.versions import untested
from mam.core import message as rules
from mam.core.errors import DeliveryUnconfirmed, DialogOpen, InvalidPrompt, NotReady, Unavailable
from mam.core.safe_text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# Its box may be seen before its own word is heard.
_WORD_SECONDS = 3.0
_NOT_TYPED = "the prompt was not typed"


def check_prompt(prompt: str) -> str:
    """Return the prompt as it can be typed, or refuse it before anything is started."""
    rules.check_size(prompt)
    cleaned = for_paste(prompt).rstrip()
    if not cleaned.strip():
        raise InvalidPrompt("the prompt is empty")
    return cleaned


def refuse_command(kind: Kind, prompt: str) -> None:
    """Refuse words that would not arrive as such."""
    if kind.typed(prompt) is None:
        raise InvalidPrompt(
            f"{kind.name} would take this prompt for a command, or alter it",
            hint="put other words before it, or put it into a file and name the file",
        )


def first_prompt(context: Context, caller: Caller, row: Row, prompt: str) -> None:
    """Submit the prompt and return once it is proven; DeliveryUnconfirmed where it cannot be.

    One that has to wait is withdrawn: whoever is told that it was not typed may send it again.
    """
    if not context.kind(row["agent"]).keeps_indent:
        prompt = prompt.lstrip()
    seconds = load_adjusted_clock.stretched(_WORD_SECONDS)
    done = send(context, caller, row["id"], prompt, timeout=seconds)
    if done["state"] == rules.MessageState.HELD and not withdraw(
        context, caller, done["message_id"], _NOT_TYPED
    ):
        done = send(context, caller, row["id"], prompt, message_id=done["message_id"], timeout=seconds)
    if done["state"] in rules.DELIVERED:
        return
    if done["state"] == rules.MessageState.UNCONFIRMED:
        raise DeliveryUnconfirmed(
            f"the prompt was typed into '{row['name']}', and nothing proves that it was taken",
            hint=f"look: mam read {row['name']}",
            session=row,
        )
    raise _error(context, row, done["reason"])


def _error(context: Context, row: Row, reason: str | None) -> Unavailable:
    if reason == rules.untested(context.kind(row["agent"]).name):
        return untested(row, _NOT_TYPED)
    fits = DialogOpen if rules.is_about_dialog(reason) else NotReady
    return fits(f"'{row['name']}': {reason}; {_NOT_TYPED}", session=row)
