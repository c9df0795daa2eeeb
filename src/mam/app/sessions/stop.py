"""Stop a session: save its state, ask the agent to exit, and prove that none of its processes is left.

A stop escalates in stages: ask the agent to exit, close the pane (SIGHUP), kill (SIGKILL). Each stage ends
as soon as the agent is gone. Processes that it leaves are told to end (SIGTERM), then killed. The saved state
is durable before mam types the first key. Where nothing can be written, as on a full disk, a stop spends the
reserve of the root; if that does not help, it ends the session all the same, and says that it recorded
nothing.
"""

from __future__ import annotations

from mam.adapters.agents.kind import Kind, Screen, ScreenState
from mam.adapters.store import disk_reserve
from mam.adapters.store.tables import purged_conversations
from mam.adapters.system import exit_watch, process
from mam.adapters.system.deadline import Deadline
from mam.app.context import claims
from mam.app.context.caller import runs_inside
from mam.app.context.liveness import check_liveness, identity_of
from mam.app.messages.delivery import resolve_abandoned
from mam.app.messages.enter_text import type_text
from mam.app.messages.late_proof import settle_queue
from mam.app.messages.launch_end import end_messages
from mam.app.observation import conversations
from mam.app.observation.newest_hook_reports import newest_reports
from mam.app.observation.pane_look import gather_evidence, look_at_pane
from mam.app.observation.versions import is_box_proven, says_waiting
from mam.app.sessions import exit_status_and_cleanup, launch, left_running, row_trust
from mam.app.sessions.forget import find_dead_pane, remove_dead_pane
from mam.app.sessions.outcome import RowOutcome
from mam.app.sessions.session_processes import SessionProcesses
from mam.core import safe_text, session_transitions, stop_escalation
from mam.core.activity import IDLE, WORKING
from mam.core.errors import (
    DeliveryUnconfirmed,
    DiskFull,
    MamError,
    NotAllowed,
    NotRecorded,
    PaneGone,
    Refused,
    StopUnconfirmed,
    TerminalsDown,
    Unconfirmed,
    Unwritable,
)
from mam.core.liveness_values import Liveness
from mam.core.names import KNOWN_KINDS, UNKNOWN_KIND
from mam.core.session_event import Stopped, Stopping
from mam.core.session_row import current_conversation, has_conversation, is_running, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    T = TypeVar("T")
    Prepare = Callable[[Transaction, Row], dict[str, Any] | None]

MANUAL = "manual_stop"
MODE = "mode"
# How long a stop waits for a message that another process is typing.
_TYPING_SECONDS, _STEP = 3.0, 0.02
# How much later than its hook an agent may draw the end of its turn.
_DRAWS_SECONDS = 1.0


def stop(
    context: Context,
    caller: Caller,
    target: str,
    *,
    reason: str | None = None,
    force: bool = False,
    purge: bool = False,
    run_recorded: bool = False,
) -> RowOutcome:
    """Stop one session. A session that has ended stays as it is.

    For some kinds a purge runs the program of the row, so the row must be one that mam has launched.
    """
    if run_recorded:
        row_trust.check_caller(caller)
    result: dict[str, Row] = {}

    def prepare(transaction: Transaction, row: Row) -> dict[str, Any] | None:
        result["row"] = row
        if not is_running(row) and not purge:
            return None
        if is_running(row):
            _refuse_inside(caller, row)
        if purge:
            _check_purge(context, caller, row, transaction.rows(), run_recorded=run_recorded)
        return {"reason": reason, "purge": purge, "force": force}

    def run(row: Row) -> RowOutcome:
        stopping = Stop(
            context, caller, row, reason=reason, force=force, purge=purge, run_recorded=run_recorded
        )
        return RowOutcome(stopping.run(), note=stopping.note, left_running=stopping.left_running)

    if outcome := _run_claimed(context, target, prepare, run, may_go_without=not purge):
        return outcome
    ended_row = result["row"]
    note = stop_escalation.already_ended(ended_row)
    if remove_kept_pane(context, ended_row):
        note += "; its dead pane is removed"
    return RowOutcome(ended_row, False, note)


def _refuse_inside(caller: Caller, row: Row) -> None:
    if caller.session_id == row["id"] or runs_inside(row, caller.pid):
        raise NotAllowed(
            f"this command runs inside '{row['name']}'",
            hint="run it outside of the session, or exit the agent",
        )


def _run_claimed(
    context: Context, target: str, prepare: Prepare, run: Callable[[Row], RowOutcome], *, may_go_without: bool
) -> RowOutcome | None:
    """Claim the session and run; None if there is nothing to do.

    Where the claim cannot be written, run without one if that is allowed.
    """
    is_claimed = False

    def claim_and_run() -> RowOutcome | None:
        nonlocal is_claimed
        with claims.claim_session(context, "stop", target, prepare) as row:
            is_claimed = True
            return run(row) if row is not None else None

    try:
        return _with_reserve(context, claim_and_run)
    except Unwritable:
        unclaimed_row = (
            _row_without_claim(context, target, prepare) if may_go_without and not is_claimed else None
        )
        if unclaimed_row is None:
            raise
        return run(unclaimed_row)


def _with_reserve(context: Context, commit: Callable[[], T]) -> T:
    """Commit; if that cannot be written, delete the reserve of the root and try once more.

    SQLite says of a log that it could not create only that it cannot open it.
    """
    try:
        return commit()
    except Unwritable:
        if not disk_reserve.spend(context.paths.state):
            raise
        return commit()


def _row_without_claim(context: Context, target: str, prepare: Prepare) -> Row | None:
    """Return the row of a session that cannot be claimed, because nothing can be written.

    None if there is nothing to stop. Raises RegistryBusy where another process has claimed the session.
    """
    row = context.registry.view().find(target)

    def check(transaction: Transaction) -> bool:
        if not claims.is_free(transaction, row["id"], row["name"]):
            raise claims.busy_error(context, target)
        return prepare(transaction, row) is not None

    return row if context.registry.peek(check, False) else None


def _check_purge(context: Context, caller: Caller, row: Row, rows: list[Row], *, run_recorded: bool) -> None:
    """Refuse a purge before the agent ends, while nothing has changed yet."""
    session_transitions.next_status(row["status"], "purge", row["name"])
    _refuse_without_kind(context, row)
    if context.kind(row["agent"]).deletes_conversations:
        row_trust.refuse(context, caller, row, run_recorded=run_recorded)
    conversations.refuse_if_shared(row, rows)
    if conversation := current_conversation(row):
        conversations.refuse_if_held(context, row, conversation, runs=is_running(row))


def _refuse_without_kind(context: Context, row: Row) -> None:
    """Refuse a purge that could not delete what the row records, while nothing has changed yet."""
    agent = row["agent"]
    if agent == UNKNOWN_KIND:
        raise Refused(
            f"'{row['name']}' has no agent kind, so mam does not know where its conversation is;"
            " nothing was stopped and nothing deleted",
            hint=f"set its 'agent:' in {context.paths.yaml} to one of {', '.join(KNOWN_KINDS)},"
            " or stop it without --purge-conversation",
        )
    if has_conversation(row) and type(context.kind(agent)) is Kind:
        raise Refused(
            f"mam does not know where {agent} keeps the conversation of '{row['name']}';"
            " nothing was stopped and nothing deleted",
            hint="delete the conversation by hand, and stop the session without --purge-conversation",
        )


def remove_kept_pane(context: Context, row: Row) -> bool:
    """Remove the dead pane that an ended session left, and no other; tell whether there was one."""
    if find_dead_pane(context, row) is None:
        return False

    def prepare(_transaction: Transaction, current: Row) -> dict[str, Any] | None:
        return None if is_running(current) else {}

    # The claim keeps a resume away: it starts the agent in this very pane.
    with claims.claim_session(context, "stop", row["id"], prepare) as ended_row:
        return ended_row is not None and remove_dead_pane(context, ended_row)


class Stop:
    """One stop of one session."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        row: Row,
        *,
        reason: str | None,
        force: bool,
        purge: bool,
        run_recorded: bool = False,
        is_recovery: bool = False,
        is_announced: bool = False,
        mode: str | None = None,
    ) -> None:
        """Take the claimed row; `is_recovery` goes on with a stop whose process died.

        `mode` is how that process began to end the session.
        """
        self.context = context
        self.caller = caller
        self.row = row
        self.notes = {"reason": reason, "purge": purge, "force": force}
        self.reason = reason or MANUAL
        # A purge keeps the reason for which the session was stopped before.
        self.purge_reason = reason or (MANUAL if is_running(row) else None)
        self.force = force
        self.purge = purge
        self.run_recorded = run_recorded
        self.kind = context.kind(row["agent"])
        self.tmux = context.tmux(row["tmux_server"])
        self.processes = SessionProcesses(context, row)
        self.mode = mode or stop_escalation.FOUND
        self.is_announced = is_announced
        self.note: str | None = None
        self.log_detail: dict[str, Any] = {"recovered": True} if is_recovery else {}
        self.left_running: list[dict[str, Any]] = []

    def run(self) -> Row:
        """End the session and return its row."""
        liveness = check_liveness(self.context, self.row)
        if liveness.state == Liveness.UNKNOWN:
            raise TerminalsDown(f"'{self.row['name']}' was not stopped: {liveness.reason}")
        if liveness.state == Liveness.LOOSE and not row_trust.was_launched(self.context, self.row):
            # Any registry file can name a process.
            raise NotAllowed(
                f"'{self.row['name']}' was not stopped: {liveness.reason}, and mam has not started it",
                hint=f"look at the process, and end it yourself: kill {self.row['pane'].get('pid')}",
            )
        status: int | None = None
        if is_running(self.row):
            if liveness.state in (Liveness.ALIVE, Liveness.LOOSE):
                self._save_and_end(liveness)
                if liveness.pane is not None:
                    # Without the nudge tmux may notice the exit status late, or never.
                    self.tmux.nudge(liveness.pane.server_pid)
                liveness = check_liveness(self.context, self.row)
            status = exit_status_and_cleanup.exit_status(self.context, self.row, liveness)
            self._end_rest()
        self._remove_pane(liveness)
        if is_running(self.row):
            self._tell_left_running()
        if self.purge:
            return self._purge(status)
        return self._commit(status)

    def _end_rest(self) -> None:
        """End the processes that the agent started and that still run after its end."""
        self.processes.add_leader(identity_of(self.row))
        self.processes.add_family()
        self._end_children()
        survivors = sorted(identity.pid for identity in self.processes.alive())
        if survivors:
            raise StopUnconfirmed(
                f"processes {', '.join(map(str, survivors))} of '{self.row['name']}' still run",
                hint="look at them with ps; the session stays registered as running",
                session=self.row,
            )

    def _tell_left_running(self) -> None:
        """Tell which processes still run: detached ones, which are no descendants, and another user's."""
        detached = left_running.find(self.context, self.row, stop_escalation.FOLLOW_SECONDS)
        if detached:
            self.context.warn(left_running.warning(self.row["name"], detached))
        of_others = self.processes.of_others()
        if of_others:
            self.context.warn(left_running.warning_of_others(self.row["name"], of_others))
        known = {entry["pid"] for entry in detached}
        self.left_running = detached + [entry for entry in of_others if entry["pid"] not in known]
        if self.left_running:
            self.log_detail["left_running"] = self.left_running

    def _save_and_end(self, liveness: SessionLiveness) -> None:
        root = identity_of(self.row) or (process.identify(liveness.pane.pid) if liveness.pane else None)
        step = self._save(liveness)
        self.processes.add_agent(root, liveness.pane.tty if liveness.pane else None)
        self._escalate(step, liveness, root)

    def _save(self, liveness: SessionLiveness) -> stop_escalation.Step:
        """Record the conversation id and the last screen before anything happens; return the first step."""
        named_conversation = conversations.reported_conversation(self.context, self.row)
        text, screen_state, in_mode = "", ScreenState(), False
        if liveness.pane is not None:
            text, screen_state, in_mode = self._look_at_end_of_turn(liveness.pane.id)
        step = stop_escalation.first_step(
            force=self.force,
            exit_word=self.kind.exit_word,
            ends_on_interrupt=self.kind.ends_on_interrupt,
            box=screen_state.box,
            dialog=screen_state.dialog,
            is_busy=screen_state.state == WORKING,
            in_mode=in_mode,
        )
        mode = stop_escalation.MODES[step.method]

        def work(transaction: Transaction) -> Row:
            current = transaction.get(self.row["id"]) or self.row
            saved_row = conversations.with_conversation(
                self.context, current, named_conversation, transaction.rows
            )
            saved_row = merged(
                saved_row, last_visible_note=safe_text.note(text) or saved_row.get("last_visible_note")
            )
            # After this commit the agent is asked to exit, so recovery finishes a stop that dies later.
            claims.annotate(transaction, saved_row["id"], {**self.notes, claims.ACTING: True, MODE: mode})
            self._announce(transaction, saved_row)
            return transaction.put(saved_row) if saved_row != current else current

        was_announced = self.is_announced
        try:
            self.row = _with_reserve(self.context, lambda: self.context.registry.note(work))
        except Unwritable:
            # The agent is ended all the same. The commit of its end fails as well, or records all of this.
            self.is_announced = was_announced
        return step

    def _look_at_end_of_turn(self, pane_id: str) -> tuple[str, ScreenState, bool]:
        """Return what the screen shows, as text and by the kind, and whether the pane is in copy mode.

        Claude Code runs the hook of the end of its turn a moment before it draws that end. So the busy screen
        of an agent that reports that it is idle is looked at again, for a short time.
        """
        deadline = Deadline(_DRAWS_SECONDS)
        while True:
            capture = self.tmux.look(pane_id)
            screen = Screen(capture.captured, capture.cursor_x, capture.cursor_y)
            screen_state = self.kind.read_screen(screen)
            is_late = not self.force and screen_state.state == WORKING and self._reports_idle()
            if not is_late or not deadline.pause(_STEP):
                return screen.text, screen_state, capture.pane.in_mode

    def _reports_idle(self) -> bool:
        report = newest_reports(self.context, [self.row]).get(self.row["id"])
        return report is not None and report.data["state"] == IDLE

    def _announce(self, transaction: Transaction, row: Row) -> None:
        """Publish once that the session is about to end."""
        if not self.is_announced:
            self.is_announced = True
            self.context.tell_listeners(transaction, Stopping(row))

    def _escalate(self, step: stop_escalation.Step, liveness: SessionLiveness, root: Identity | None) -> None:
        pane = liveness.pane
        stage = step.method
        if stage == stop_escalation.ASK and pane is not None:
            self.context.progress(f"asking {self.row['name']} to exit")
            if self._ask_to_exit(step, pane.id):
                self.mode = stop_escalation.MODES[stop_escalation.ASK]
                # The agent needs a moment to exit. mam uses it to load what the commit will need.
                self.context.registry.warm_up()
                if self._has_ended(stop_escalation.ASK, root):
                    self._end_children()
                    return
            stage = stop_escalation.HANG_UP
        if stage != stop_escalation.KILL and pane is not None:
            self.context.progress(f"closing the pane of {self.row['name']} ({step.reason})")
            self.processes.add_agent(root, pane.tty)
            self.mode = stop_escalation.MODES[stop_escalation.HANG_UP]
            self.tmux.kill_pane(pane.id, mark=pane.mark or None)
            self.context.registry.warm_up()
            if self._has_ended(stop_escalation.HANG_UP, root):
                self._end_children()
                return
        self.processes.add_agent(root, pane.tty if pane else None)
        self._note_kill(self.processes.kill())

    def _ask_to_exit(self, step: stop_escalation.Step, pane_id: str) -> bool:
        try:
            if step.types:
                if not self._wait_for_typing() or not self._may_type_exit_word():
                    return False
                # `type_text` looks at the screen again, because a dialog may have opened since.
                type_text(self.context, self.row, step.types)
            elif step.presses:
                self.tmux.keys(pane_id, [step.presses], mark=self.row["id"])
        except (PaneGone, TerminalsDown, DeliveryUnconfirmed):
            # The next stage ends the session in any case.
            return False
        return True

    def _may_type_exit_word(self) -> bool:
        """Tell whether the evidence other than the screen lets mam type the exit word."""
        look = look_at_pane(self.context, self.row)
        evidence = gather_evidence(self.context, self.row, look)
        if says_waiting(evidence):
            return False
        return is_box_proven(self.context, self.row, evidence, look.screen_state)

    def _wait_for_typing(self) -> bool:
        """Wait until no process types a message, so that the exit word does not become a part of it."""
        from mam.app.messages.delivery import is_typed_to

        deadline = Deadline(_TYPING_SECONDS)
        while is_typed_to(self.context, self.row["id"]):
            if not deadline.pause(_STEP):
                return False
        return True

    def _has_ended(self, stage: str, root: Identity | None) -> bool:
        """Wait for the agent to end during one stage; tell whether it has."""
        seconds = stop_escalation.GRACE[stage]
        return (
            self.processes.wait_gone(seconds) if root is None else not exit_watch.wait_gone({root}, seconds)
        )

    def _end_children(self) -> None:
        """End what an ended agent left."""
        self._note_kill(self.processes.end_children())

    def _note_kill(self, has_killed: bool) -> None:
        if has_killed:
            self.mode = stop_escalation.MODES[stop_escalation.KILL]

    def _remove_pane(self, liveness: SessionLiveness) -> None:
        pane_id = own_pane(self.row, liveness)
        if pane_id:
            self.tmux.kill_pane(pane_id, mark=self.row["id"])
        after = check_liveness(self.context, self.row)
        if after.state in (Liveness.ALIVE, Liveness.LOOSE) or own_pane(self.row, after):
            raise StopUnconfirmed(f"the pane of '{self.row['name']}' still exists", session=self.row)
        exit_status_and_cleanup.discard_launch_files(self.context, self.row["id"])
        exit_status_and_cleanup.unmark_reused_pane(self.context, self.row, after.pane)

    def _commit(self, status: int | None) -> Row:
        def work(transaction: Transaction) -> Row:
            current = transaction.get(self.row["id"]) or self.row
            action = self.caller.action("stop", self.context.now())
            if not is_running(current):
                # Another process recorded the end first.
                transaction.intents.end(current["id"])
                return current
            current = conversations.with_conversation(self.context, current)
            new_row = transaction.put(
                session_transitions.stopped(
                    current, action, reason=self.reason, mode=self.mode, exit_status=status
                )
            )
            conversations.record_last_conversation(self.context, transaction, new_row)
            self._announce(transaction, new_row)
            self.context.tell_listeners(transaction, Stopped(new_row, self.reason))
            transaction.intents.end(new_row["id"])
            transaction.log(
                action["by"],
                "stop",
                new_row,
                self.reason,
                mode=self.mode,
                exit_status=status,
                **self.log_detail,
            )
            return new_row

        return self._end(work)

    def _purge(self, status: int | None) -> Row:
        conversation = current_conversation(self.row)
        # The conversation may hold the only proof of a message whose typing process died, or that was queued.
        resolve_abandoned(self.context, self.row["id"])
        settle_queue(self.context, self.row["id"], has_ended=True)
        try:
            removed = purge_files(
                self.context, self.caller, self.row, conversation, run_recorded=self.run_recorded
            )
        except MamError:
            if is_running(self.row):
                self.row = self._commit(status)
            raise
        if not removed:
            self.note = (
                f"conversation {conversation} was not on disk" if conversation else "it had no conversation"
            )

        def work(transaction: Transaction) -> Row:
            current = transaction.get(self.row["id"]) or self.row
            action = self.caller.action("purge", self.context.now())
            new_row = transaction.put(
                session_transitions.purged(current, action, reason=self.purge_reason, exit_status=status)
            )
            conversations.forget_identity(transaction, new_row, conversation)
            end_messages(transaction, new_row, "the session was purged", by=action["by"])
            names = purged_conversations.erase(transaction.connection, current)
            names |= {conversation} if conversation else set()
            transaction.drop_former_file()
            self._announce(transaction, new_row)
            self.context.tell_listeners(transaction, Stopped(new_row, self.reason))
            transaction.intents.end(new_row["id"])
            transaction.log(
                action["by"],
                "purge",
                new_row,
                self.reason,
                removed=purged_conversations.without(removed, names),
                **self.log_detail,
            )
            return new_row

        return self._end(work)

    def _end(self, work: Callable[[Transaction], Row]) -> Row:
        """Commit the end, and release the lease on the conversation.

        Raises NotRecorded if the end cannot be committed.
        """
        was_announced = self.is_announced

        def commit() -> Row:
            self.is_announced = was_announced
            return claims.change(self.context, work)

        try:
            new_row = _with_reserve(self.context, commit)
        except Unwritable as error:
            if error.recorded:
                raise
            mend = "free some space" if isinstance(error, DiskFull) else "see to it that mam can write there"
            raise NotRecorded(
                f"'{self.row['name']}' is stopped ({self.mode}), and mam could not record that: {error}",
                hint=f"no process of it is left; {mend}, and mam records the end by itself",
                session=self.row,
            ) from error
        try:
            self.context.user_state.release(new_row["id"], self.context.root_id)
        except Unwritable as error:
            # The lease has ended with its process, and the resident removes the launch secret.
            self.context.warn(f"the end of '{new_row['name']}' is not in the user state yet: {error}")
        settle_queue(self.context, new_row["id"])
        return new_row


def own_pane(row: Row, liveness: SessionLiveness) -> str | None:
    """Return the id of the pane that mam may remove; None if somebody started another process in it."""
    pane = liveness.pane
    if pane is None or pane.mark != row["id"]:
        return None
    return pane.id if pane.dead or pane.pid == row["pane"].get("pid") else None


def purge_files(
    context: Context, caller: Caller, row: Row, conversation: str | None, *, run_recorded: bool = False
) -> list[str]:
    """Delete the files of one conversation, only below the recorded store and never through a symlink."""
    from mam.adapters.agents.delete_files import remove

    if not conversation:
        return []
    launch.check_conversation(conversation)
    conversations.refuse_if_held(context, row, conversation)
    kind = context.kind(row["agent"])
    removed = launch.delete_conversation(context, caller, row, conversation, run_recorded=run_recorded)
    for store, path in kind.purge_paths(
        conversation, row["workspace"], conversations.stores_of(context, row)
    ):
        if remove(store, path):
            removed.append(path)
    if conversations.on_disk(context, row, conversation):
        raise Unconfirmed(
            f"conversation {conversation} is still on disk",
            hint="the row keeps its id; repeat, or delete the files by hand",
            session=row,
        )
    return removed
