"""What every changing verb does first: nothing new begins while something is left half done."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.context import claims
from mam.app.observation.hook_intake import take_in
from mam.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def settle(context: Context, caller: Caller) -> None:
    """Finish or clean what died half way; most of the time there is nothing."""
    if not context.paths.exists():
        return
    if any(not claims.is_owned(intent) for intent in context.registry.view().intents):
        from mam.app.sessions.recover import recover

        recover(context, caller)


def settle_all(context: Context, caller: Caller) -> None:
    """Settle, take in what hooks reported, and where nobody is awake deliver what is held, in order."""
    settle(context, caller)
    if not context.paths.exists():
        return
    take_in(context)
    if not context.registry.peek(messages.has_open, False):
        return
    from mam.app.context.start_resident import lock

    if lock(context).holder() is None:
        from mam.app.messages.delivery import deliver_all

        try:
            deliver_all(context)
        except Unavailable as error:
            # What is held stays so; it is not what this verb was asked for.
            context.warn(f"what is held could not be delivered: {error}")
