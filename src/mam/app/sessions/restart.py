"""Restart a session: stop it, then take its conversation up again."""

from __future__ import annotations

from mam.app.sessions.resume import resume
from mam.app.sessions.stop import stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.app.sessions.outcome import RowOutcome
    from mam.app.sessions.resume import Home
    from mam.core.caller import Caller


def restart(
    context: Context,
    caller: Caller,
    target: str,
    *,
    reason: str | None = None,
    force: bool = False,
    timeout: float | None = None,
    home: Home | None = None,
) -> RowOutcome:
    """Stop and resume; a session that has ended is only resumed."""
    stopped = stop(context, caller, target, reason=reason or "restart", force=force)
    return resume(context, caller, stopped.row["id"], timeout=timeout, home=home)
