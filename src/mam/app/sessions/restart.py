"""Restart a session: stop it, then resume its conversation."""

from __future__ import annotations

from mam.app.sessions.resume import resume
from mam.app.sessions.resume_checks import ResumeChecks, as_after_its_end
from mam.app.sessions.stop import stop
from mam.core.errors import MamError, Refused, Usage
from mam.core.session_row import is_running

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
    """Stop and resume a session. A session that has ended is only resumed.

    What would keep it from being resumed is an error before it is stopped.
    """
    _check(context, caller, target, run_recorded=run_recorded)
    outcome = stop(context, caller, target, reason=reason or "restart", force=force)
    try:
        return resume(
            context,
            caller,
            outcome.row["id"],
            run_recorded=run_recorded,
            timeout=timeout,
            placement_finder=placement_finder,
        )
    except MamError as error:
        if outcome.changed and not is_running(context.registry.view().find(outcome.row["id"])):
            _tell_of_stop(error, outcome.row["name"], run_recorded=run_recorded)
        raise


def _check(context: Context, caller: Caller, target: str, *, run_recorded: bool) -> None:
    """Raise the error with which the resume would end, while the agent still runs."""
    # A start reads them.
    context.settings()
    view = context.registry.view()
    row = view.find(target)
    ResumeChecks(
        context,
        caller,
        as_after_its_end(context, view, row),
        view.rows,
        view.identities,
        run_recorded=run_recorded,
        listed=view.listed,
        runs=is_running(row),
    ).run()


def _tell_of_stop(error: MamError, name: str, *, run_recorded: bool) -> None:
    """Say in an error of the start that the session was stopped before, and what starts it."""
    option = " --run-recorded" if run_recorded else ""
    way = f"when that is mended: mam resume {name}{option}"
    message = f"'{name}' is stopped, and could not be started again: {error.message}"
    MamError.__init__(error, message, hint=f"{error.hint}; {way}" if error.hint else way)
    if error.exit_code == Usage.exit_code:
        # Something was done.
        error.exit_code = Refused.exit_code
