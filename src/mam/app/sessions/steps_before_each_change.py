"""What every verb does before it changes something: recovery, hook payloads, messages."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.context import claims, setting_aside
from mam.app.observation.hook_intake import take_in
from mam.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def recover_if_needed(context: Context, caller: Caller) -> None:
    """Recover the changes whose process died; the usual case is that there are none.

    A verb that is refused afterwards, or writes no file, leaves the YAML file up to date all the same.
    """
    if not context.paths.exists():
        return
    is_cut_off = any(not claims.is_owned(intent) for intent in context.registry.view().intents)
    if is_cut_off or setting_aside.is_by_another_version(context, setting_aside.INTENT):
        from mam.app.sessions.recover import recover

        recover(context, caller)
    claims.show_unshown(context)


def begin_change(context: Context, caller: Caller) -> None:
    """Recover, take in hook payloads, and where no resident runs deliver messages and correct receipts."""
    recover_if_needed(context, caller)
    if not context.paths.exists():
        return
    take_in(context)
    if not context.registry.peek(messages.has_work, False):
        return
    from mam.app.context.resident_start_and_lock import working_holder

    if working_holder(context) is None:
        from mam.app.messages.delivery import deliver_all
        from mam.app.messages.late_proof import correct_receipts

        try:
            deliver_all(context)
            # After the delivery: what it ends as unconfirmed is looked at in the same recovery.
            correct_receipts(context)
        except Unavailable as error:
            # The messages stay held, and the verb that the caller asked for goes on.
            context.warn(f"held messages could not be delivered: {error}")
