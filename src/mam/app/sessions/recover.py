"""Recovery: finish or clean up what a verb left behind when its process died.

Each intent says what the verb was doing, and tmux shows how far it got. Recovery binds a marked pane to its
row. If the pane is missing, the agent was never started. If the tmux server does not answer, the intent
stays for later: mam concludes nothing from a failed read. An intent that fails in a way that nobody foresaw
is set aside: it would fail again with every verb.
"""

from __future__ import annotations

import os

import mam
from mam.adapters.store.tables import set_aside
from mam.adapters.tmux import launch_file as launches
from mam.app.context import claims, setting_aside
from mam.app.context.liveness import check_liveness, find_pane
from mam.app.sessions import create, resume
from mam.app.sessions.death import record_if_dead
from mam.app.sessions.launch import StartedAgent, pane_record
from mam.app.sessions.stop import MODE, Stop
from mam.core.errors import Refused, TerminalsDown, Unavailable, Unconfirmed
from mam.core.liveness_values import Liveness
from mam.core.mam_version import is_newer
from mam.core.names import is_session_id
from mam.core.resume_choice import Choice
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.intents import Intent
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.app.sessions.create import StartPlan
    from mam.core.caller import Caller
    from mam.core.session_row import Row


_OLD_SECONDS = 300.0


def recover(context: Context, caller: Caller) -> None:
    """Finish or end every intent whose process is dead; afterwards remove old launch files."""
    _take_up_again(context)
    # A drill removes a fork, whose own start or stop is finished first.
    for intent in sorted(context.registry.view().intents, key=lambda intent: intent.verb == "drill"):
        if intent.flaw is not None:
            _set_aside(context, intent, intent.flaw)
            continue
        if claims.is_owned(intent) or not _take_over(context, intent):
            continue
        context.progress(f"finishing an interrupted {intent.verb} of {intent.name}")
        try:
            if intent.verb in _FINISH:
                _FINISH[intent.verb](context, caller, intent)
            else:
                _end_intent(context, intent)
        except (Refused, Unconfirmed) as error:
            context.warn(f"mam could not finish the interrupted {intent.verb} of {intent.name}: {error}")
            _end_intent(context, intent)
        except BaseException as error:
            if setting_aside.is_of_item(error):
                _set_aside(context, intent, setting_aside.reason_of(error))
                continue
            claims.release(context, intent.session_id, intent.at, delete=False)
            if not isinstance(error, (Unavailable, OSError)):
                raise
            # It is unknown how far the verb got: keep this intent, and recover the other sessions.
            context.warn(str(error))
    _remove_old_launch_files(context)


def _set_aside(context: Context, intent: Intent, reason: str) -> None:
    """Take an intent out of the way, and record why. The session can be changed again."""

    def work(transaction: Transaction) -> bool:
        columns = transaction.intents.take_out(intent.session_id, intent.at)
        if columns is None:
            return False
        setting_aside.record(transaction, setting_aside.INTENT, intent.session_id, reason, **columns)
        detail = {"interrupted": intent.verb, "error": reason}
        row = transaction.get(intent.session_id)
        transaction.log("mam", "set-aside", row, f"the interrupted {intent.verb} failed", **detail)
        return True

    if context.registry.note(work):
        context.warn(
            f"mam could not finish the interrupted {intent.verb} of {intent.name}: {reason};"
            " it is set aside, see mam doctor"
        )


def _take_up_again(context: Context) -> None:
    """Try the intents again, once, that an older mam has set aside: this one may know how.

    One whose session was changed since then stays: to finish it would undo what was done later.
    """

    def work(transaction: Transaction) -> None:
        for item in set_aside.listed(transaction, setting_aside.INTENT):
            if not is_newer(mam.__version__, item.version):
                continue
            set_aside.mark_tried(transaction, item, mam.__version__)
            if transaction.intents.of(item.key) is None and not transaction.was_changed(item.key, item.at):
                transaction.intents.put_back(item.data)
                set_aside.remove(transaction, item)

    if setting_aside.is_by_another_version(context, setting_aside.INTENT):
        context.registry.note(work)


def _take_over(context: Context, intent: Intent) -> bool:
    """Become the owner of an intent, so that no second recovery works on it; False if one already does."""

    def work(transaction: Transaction) -> bool:
        current = transaction.intents.of(intent.session_id)
        if current is None or claims.is_owned(current):
            return False
        transaction.intents.put(
            claims.new_intent(current.session_id, current.name, current.verb, current.at, current.data)
        )
        return True

    try:
        return context.registry.note(work)
    except Unavailable:
        # A commit that failed on a full disk may still be found later with this process as its owner.
        claims.try_release(context, intent.session_id, intent.at, delete=False)
        raise


def _end_intent(context: Context, intent: Intent) -> None:
    claims.release(context, intent.session_id, intent.at, delete=True)


def _finish_start(context: Context, caller: Caller, intent: Intent) -> None:
    """Bind the pane of a create or fork to its row. Without a pane, undo the start."""
    plan: StartPlan = intent.data  # type: ignore[assignment]  # create and fork store a StartPlan
    pane = _started_pane(context, plan["row"], plan["launch_file"], intent)
    if pane is None:
        create.undo_new_worktree(context, plan)
        _end_intent(context, intent)
        context.user_state.release(intent.session_id, context.root_id)
        return
    row = create.bind(context, caller, plan, _started_agent(plan["row"], pane, plan["launch_file"]))
    if pane.dead:
        record_if_dead(context, caller, row)


def _finish_resume(context: Context, caller: Caller, intent: Intent) -> None:
    row = _row(context, intent)
    if row is None or is_running(row):
        _end_intent(context, intent)
        return
    pane = _started_pane(context, row, intent.data["launch_file"], intent)
    if pane is None or pane.dead:
        _end_intent(context, intent)
        context.user_state.release(intent.session_id, context.root_id)
        return
    choice = Choice(*intent.data["choice"])
    resume.bind(context, caller, row, choice, _started_agent(row, pane, intent.data["launch_file"]))


def _finish_stop(context: Context, caller: Caller, intent: Intent) -> None:
    """Finish a stop that had begun to act, or whose session has ended since. Drop any other stop."""
    row = _row(context, intent)
    purge = bool(intent.data.get("purge"))
    if row is None or not (is_running(row) or purge):
        _end_intent(context, intent)
        return
    if intent.data.get(claims.ACTING) or check_liveness(context, row).state not in (
        Liveness.ALIVE,
        Liveness.LOOSE,
    ):
        Stop(
            context,
            caller,
            row,
            reason=intent.data.get("reason"),
            force=bool(intent.data.get("force")),
            purge=purge,
            is_recovery=True,
            is_announced=bool(intent.data.get(claims.ACTING)),
            mode=intent.data.get(MODE),
        ).run()
    _end_intent(context, intent)


def _finish_rename(context: Context, _caller: Caller, intent: Intent) -> None:
    """Rename the tmux session. The row has its new name already."""
    row = _row(context, intent)
    pane = _marked_pane(context, row) if row else None
    if row and pane and pane.session_name == intent.data.get("from"):
        context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
    _end_intent(context, intent)


def _finish_adopt(context: Context, caller: Caller, intent: Intent) -> None:
    from mam.app.sessions.adopt import bind as bind_adopted

    row: Row = intent.data["row"]
    pane = _marked_pane(context, row)
    if pane is None:
        _end_intent(context, intent)
        return
    if intent.data.get("rename", True) and pane.session_name != row["name"]:
        context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
    bind_adopted(context, caller, row, pane)


def _finish_drill(context: Context, caller: Caller, intent: Intent) -> None:
    from mam.app.sessions.drill_run import remove_fork

    remove_fork(context, caller, intent)


_FINISH = {
    "create": _finish_start,
    "fork": _finish_start,
    "resume": _finish_resume,
    "stop": _finish_stop,
    "rename": _finish_rename,
    "adopt": _finish_adopt,
    "drill": _finish_drill,
}


def _row(context: Context, intent: Intent) -> Row | None:
    return context.registry.view().by_id(intent.session_id)


def _marked_pane(context: Context, row: Row) -> Pane | None:
    """Return the pane that carries the session's mark. Raise TerminalsDown if tmux does not answer."""
    listing = context.tmux(row["tmux_server"]).panes()
    if not listing.confirmed:
        raise TerminalsDown(
            f"a change of '{row['name']}' was interrupted, and nobody knows how far it got: {listing.error}"
        )
    return find_pane(row, [pane for pane in listing.panes if pane.mark == row["id"]])


def _started_pane(context: Context, row: Row, launch_file: str, intent: Intent) -> Pane | None:
    """Return the pane of an interrupted start. Without a pane, cancel the launch."""
    pane = _new_pane(context, row)
    if intent.data.get(claims.WITHDRAWN) == launch_file:
        # The pane of a withdrawn launch is about to close itself.
        return None
    if pane is None and not launches.cancel_launch(launch_file):
        # The file was never written, or a slow launcher has just read it. Then its pane exists now.
        pane = _new_pane(context, row)
    return pane


def _new_pane(context: Context, row: Row) -> Pane | None:
    """Return the marked pane, unless it is the dead pane of the session's last launch."""
    pane = _marked_pane(context, row)
    last_pid = (row.get("pane") or {}).get("pid")
    return None if pane is not None and pane.dead and pane.pid == last_pid else pane


def _started_agent(row: Row, pane: Pane, launch_file: str) -> StartedAgent:
    command = os.path.basename((row.get("start_command") or [row["agent"]])[0])
    return StartedAgent(pane_record(pane, command, row["workspace"]), pane.session_id, launch_file)


def _remove_old_launch_files(context: Context) -> None:
    """Remove old launch files. A launcher may be about to read a young one."""
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
