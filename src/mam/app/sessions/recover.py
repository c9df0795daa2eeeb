"""Finishing or cleaning what a verb left behind when its process died.

Each intent says what was under way; tmux says how far it got. A pane that carries the mark is
bound to its row, one that is not there was never started, and a server that does not answer
leaves the intent for later: nothing is concluded from a failed read.
"""

from __future__ import annotations

import os

from mam.adapters.tmux import launch_file as launches
from mam.app.context import claims
from mam.app.context.liveness import find_pane, see_one
from mam.app.sessions import create, resume
from mam.app.sessions.death import record_if_dead
from mam.app.sessions.launch import Started, pane_record
from mam.app.sessions.stop import ACTING, MANUAL, Stop
from mam.core.errors import Refused, TerminalsDown, Unavailable, Unconfirmed
from mam.core.liveness import Liveness
from mam.core.names import is_session_id
from mam.core.resume_choice import Choice
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.intents import Intent
    from mam.adapters.store.transaction import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.app.sessions.create import StartPlan
    from mam.core.caller import Caller
    from mam.core.session_row import Row


_OLD_SECONDS = 300.0


def recover(context: Context, caller: Caller) -> None:
    """Bring every change without a living owner to an end."""
    for intent in context.registry.view().intents:
        if claims.is_owned(intent) or not _take_over(context, intent):
            continue
        context.progress(f"finishing a {intent.verb} of {intent.name} that was cut off")
        try:
            if intent.verb in _FINISH:
                _FINISH[intent.verb](context, caller, intent)
            else:
                _give_up(context, intent)
        except (Refused, Unconfirmed) as error:
            context.warn(f"the {intent.verb} of {intent.name} that was cut off cannot be finished: {error}")
            _give_up(context, intent)
        except Unavailable as error:
            # Nobody can say how far it got: the intent stays, and other sessions go on.
            context.warn(str(error))
            claims.abandon(context, intent.session_id, intent.at, for_good=False)
        except BaseException:
            claims.abandon(context, intent.session_id, intent.at, for_good=False)
            raise
    _sweep(context)


def _take_over(context: Context, intent: Intent) -> bool:
    """Become the owner, so that two recoveries do not meet; False if somebody was faster."""

    def work(draft: Transaction) -> bool:
        current = draft.intents.of(intent.session_id)
        if current is None or claims.is_owned(current):
            return False
        draft.intents.put(
            claims.new_intent(current.session_id, current.name, current.verb, current.at, current.data)
        )
        return True

    try:
        return context.registry.note(work)
    except Unavailable:
        # It may be found taken over all the same.
        claims.withdraw(context, intent.session_id, intent.at, for_good=False)
        raise


def _give_up(context: Context, intent: Intent) -> None:
    claims.abandon(context, intent.session_id, intent.at, for_good=True)


def _finish_start(context: Context, caller: Caller, intent: Intent) -> None:
    """Bind the pane of a create or fork to its row; without a pane there is nothing to keep."""
    plan: StartPlan = intent.data  # type: ignore[assignment]  # as create and fork keep it
    pane = _started_pane(context, plan["row"], plan["launch_file"])
    if pane is None:
        create.drop_worktree(context, plan)
        _give_up(context, intent)
        context.user_state.release(intent.session_id)
        return
    row = create.bind(context, caller, plan, _started(plan["row"], pane, plan["launch_file"]))
    if pane.dead:
        record_if_dead(context, caller, row)


def _finish_resume(context: Context, caller: Caller, intent: Intent) -> None:
    row = _row(context, intent)
    if row is None or is_running(row):
        _give_up(context, intent)
        return
    pane = _started_pane(context, row, intent.data["launch_file"])
    if pane is None or pane.dead:
        _give_up(context, intent)
        context.user_state.release(intent.session_id)
        return
    choice = Choice(*intent.data["choice"])
    resume.bind(context, caller, row, choice, _started(row, pane, intent.data["launch_file"]))


def _finish_stop(context: Context, caller: Caller, intent: Intent) -> None:
    """Go on with a stop that had begun, or whose session has ended since; any other never happened."""
    row = _row(context, intent)
    purge = bool(intent.data.get("purge"))
    if row is None or not (is_running(row) or purge):
        _give_up(context, intent)
        return
    if intent.data.get(ACTING) or see_one(context, row).state not in (Liveness.ALIVE, Liveness.LOOSE):
        reason = intent.data.get("reason") or MANUAL
        Stop(
            context,
            caller,
            row,
            reason=reason,
            force=bool(intent.data.get("force")),
            purge=purge,
            is_recovery=True,
            is_announced=bool(intent.data.get(ACTING)),
        ).run()
    _give_up(context, intent)


def _finish_rename(context: Context, _caller: Caller, intent: Intent) -> None:
    """The row has its new name already; tmux follows."""
    row = _row(context, intent)
    pane = _marked_pane(context, row) if row else None
    if row and pane and pane.session_name == intent.data.get("from"):
        context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
    _give_up(context, intent)


def _finish_adopt(context: Context, caller: Caller, intent: Intent) -> None:
    from mam.app.sessions.adopt import bind as bind_adopted

    row: Row = intent.data["row"]
    pane = _marked_pane(context, row)
    if pane is None:
        _give_up(context, intent)
        return
    if intent.data.get("rename", True) and pane.session_name != row["name"]:
        context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
    bind_adopted(context, caller, row, pane)


_FINISH = {
    "create": _finish_start,
    "fork": _finish_start,
    "resume": _finish_resume,
    "stop": _finish_stop,
    "rename": _finish_rename,
    "adopt": _finish_adopt,
}


def _row(context: Context, intent: Intent) -> Row | None:
    return context.registry.view().by_id(intent.session_id)


def _marked_pane(context: Context, row: Row) -> Pane | None:
    """Return the pane that carries the session's mark; raises where nobody can say."""
    listing = context.tmux(row["tmux_server"]).panes()
    if not listing.confirmed:
        raise TerminalsDown(
            f"a change of '{row['name']}' was cut off, and tmux does not say how far it got",
            hint=listing.error,
        )
    return find_pane(row, [pane for pane in listing.panes if pane.mark == row["id"]])


def _started_pane(context: Context, row: Row, launch_file: str) -> Pane | None:
    """Return the pane of a start that was cut off; without one the launch is withdrawn."""
    pane = _new_pane(context, row)
    if pane is None and not launches.cancel_launch(launch_file):
        # Never written, or taken since the look by a launcher that was slow to come: its pane is there now.
        pane = _new_pane(context, row)
    return pane


def _new_pane(context: Context, row: Row) -> Pane | None:
    """Return the marked pane, unless it is the dead one of the session's last run."""
    pane = _marked_pane(context, row)
    last = (row.get("pane") or {}).get("pid")
    return None if pane is not None and pane.dead and pane.pid == last else pane


def _started(row: Row, pane: Pane, launch_file: str) -> Started:
    command = os.path.basename((row.get("start_command") or [row["agent"]])[0])
    return Started(pane_record(pane, command, row["workspace"]), pane.session_id, launch_file)


def _sweep(context: Context) -> None:
    """Remove old launch files; a young one may be about to be read."""
    try:
        entries = list(os.scandir(context.paths.launches))
    except FileNotFoundError:
        return
    for entry in entries:
        try:
            is_ours = is_session_id(entry.name.partition("-")[0]) and entry.is_file(follow_symlinks=False)
            if is_ours and context.now() - entry.stat(follow_symlinks=False).st_mtime > _OLD_SECONDS:
                os.unlink(entry.path)
        except OSError:
            continue
