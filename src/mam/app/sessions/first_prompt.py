"""The first prompt of a session: a message like any other, except that `create` fails if it would be held."""

from __future__ import annotations

from mam.adapters.system import load_adjusted_clock
from mam.app.messages.displayed_reason import reason_code
from mam.app.messages.send import send, withdraw
from mam.app.observation.versions import untested_error
from mam.core import message_rules as rules
from mam.core.errors import DeliveryUnconfirmed, DialogOpen, InvalidPrompt, NotReady, Unavailable
from mam.core.message_rules import ReasonCode
from mam.core.safe_text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# The screen may show the input box before the first hook of the agent arrives.
_SEND_SECONDS = 3.0
_NOT_TYPED = "the prompt was not typed"


def check_prompt(prompt: str) -> str:
    """Return the prompt in a form that can be typed, or refuse it before anything starts."""
    return rules.check_text(for_paste(rules.check_text(prompt, "prompt")).rstrip(), "prompt")


def refuse_command(kind: Kind, prompt: str) -> None:
    """Refuse a prompt that the program would take for a command or change."""
    if kind.text_to_type(prompt) is None:
        raise InvalidPrompt(
            f"{kind.name} would take this prompt for a command, or alter it",
            hint="begin it with other words, or put it into a file and name the file",
        )


def first_prompt(context: Context, caller: Caller, row: Row, prompt: str) -> None:
    """Send the prompt and return once its delivery is proven. Raise DeliveryUnconfirmed where it is not.

    A held prompt is withdrawn, so that a caller who reads "not typed" may safely send it again.
    """
    if not context.kind(row["agent"]).keeps_indent:
        prompt = prompt.lstrip()
    seconds = load_adjusted_clock.stretched(_SEND_SECONDS)
    receipt = send(context, caller, row["id"], prompt, timeout=seconds)
    code = reason_code(context, receipt["message_id"])
    if receipt["state"] == rules.MessageState.HELD and not withdraw(
        context, caller, receipt["message_id"], _NOT_TYPED
    ):
        receipt = send(context, caller, row["id"], prompt, message_id=receipt["message_id"], timeout=seconds)
        code = reason_code(context, receipt["message_id"])
    if receipt["state"] in rules.DELIVERED:
        return
    if receipt["state"] == rules.MessageState.UNCONFIRMED:
        raise DeliveryUnconfirmed(
            f"the prompt was typed into '{row['name']}': {receipt['reason']}",
            hint=f"look: mam read {row['name']}",
            session=row,
        )
    raise _error(row, receipt["reason"], code)


def _error(row: Row, reason: str | None, code: str | None) -> Unavailable:
    if code == ReasonCode.UNTESTED_VERSION:
        return untested_error(row, _NOT_TYPED)
    error_class = DialogOpen if rules.is_about_dialog(code) else NotReady
    if reason is None:
        # Another process types the prompt, for example a resident that is suspended.
        return error_class(f"'{row['name']}' is still getting the prompt from another process", session=row)
    return error_class(f"'{row['name']}': {reason}; {_NOT_TYPED}", session=row)
