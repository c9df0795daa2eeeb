"""Restart a session: stop it, then resume its conversation."""

from __future__ import annotations

from mam.app.sessions import row_trust
from mam.app.sessions.resume import resume
from mam.app.sessions.resume_checks import refuse_command_of_job
from mam.app.sessions.stop import stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.app.sessions.outcome import RowOutcome
    from mam.app.sessions.resume import PlacementFinder
    from mam.core.caller import Caller


def restart(
    context: Context,
    caller: Caller,
    target: str,
    *,
    reason: str | None = None,
    force: bool = False,
    run_recorded: bool = False,
    timeout: float | None = None,
    placement_finder: PlacementFinder | None = None,
) -> RowOutcome:
    """Stop and resume a session. A session that has ended is only resumed."""
    row = context.registry.view().find(target)
    refuse_command_of_job(context, row)
    # Refuse before the agent ends, while nothing has changed yet.
    row_trust.refuse(context, caller, row, run_recorded=run_recorded)
    row_trust.refuse_flaws(row)
    outcome = stop(context, caller, target, reason=reason or "restart", force=force)
    return resume(
        context,
        caller,
        outcome.row["id"],
        run_recorded=run_recorded,
        timeout=timeout,
        placement_finder=placement_finder,
    )
