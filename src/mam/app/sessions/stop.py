"""Stop a session: save what it was doing, ask it to leave, and prove that nothing of it is left.

Each rung of the ladder ends as soon as the processes are seen gone. What was saved before the
first rung is durable before the first key is typed.
"""

from __future__ import annotations

from mam.adapters.agents.kind import Screen, ScreenState
from mam.adapters.system import exit_watch, process
from mam.adapters.system.deadline import Deadline
from mam.app.context import claims
from mam.app.context.caller import runs_inside
from mam.app.context.liveness import identity_of, see_one
from mam.app.messages.enter_text import submit
from mam.app.observation import conversations
from mam.app.observation.pane_look import glance, known
from mam.app.observation.versions import is_known, says_idle, says_waiting
from mam.app.sessions import launch
from mam.app.sessions.death import exit_status
from mam.app.sessions.outcome import RowOutcome
from mam.core import safe_text, stop_escalation, transitions
from mam.core.activity import WORKING
from mam.core.errors import (
    DeliveryUnconfirmed,
    MamError,
    NotAllowed,
    PaneGone,
    StopUnconfirmed,
    TerminalsDown,
)
from mam.core.liveness import Liveness
from mam.core.session_event import Stopped, Stopping
from mam.core.session_row import current_conversation, is_running, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.app.context.liveness import Sight
    from mam.core.caller import Caller
    from mam.core.session_row import Row

MANUAL = "manual_stop"
ACTING = "acting"
SIGKILL = 9
# What an agent started gets this long to follow it.
_FOLLOW_SECONDS = 0.3
# How long a message that is being typed is waited for.
_TYPIST_SECONDS, _STEP = 3.0, 0.02


def stop(
    context: Context,
    caller: Caller,
    target: str,
    *,
    reason: str | None = None,
    force: bool = False,
    purge: bool = False,
) -> RowOutcome:
    """Stop one session; a session that has ended already is left as it is."""
    found: dict[str, Row] = {}

    def prepare(draft: Transaction, row: Row) -> dict[str, Any] | None:
        found["row"] = row
        if not is_running(row) and not purge:
            return None
        if is_running(row) and runs_inside(row, caller.pid):
            raise NotAllowed(
                f"this command runs inside '{row['name']}'", hint="stop it from outside, or leave it"
            )
        if purge:
            transitions.next_status(row["status"], "purge")
            conversations.refuse_if_shared(row, draft.rows())
            # Asked before the agent is ended, while everything can still be left as it is.
            if conversation := current_conversation(row):
                conversations.refuse_if_held(context, row, conversation)
        return {"reason": reason, "purge": purge, "force": force}

    with claims.in_flight(context, "stop", target, prepare) as row:
        if row is None:
            return RowOutcome(found["row"], False, stop_escalation.already(found["row"]))
        return RowOutcome(Stop(context, caller, row, reason=reason or MANUAL, force=force, purge=purge).run())


class Stop:
    """One stop on its way up the ladder."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        row: Row,
        *,
        reason: str,
        force: bool,
        purge: bool,
        is_recovery: bool = False,
        is_announced: bool = False,
    ) -> None:
        """Take the claimed row; `is_recovery` goes on with a stop whose process died."""
        self.context = context
        self.caller = caller
        self.row = row
        self.notes = {"reason": reason, "purge": purge, "force": force}
        self.reason = reason
        self.force = force
        self.purge = purge
        self.kind = context.kind(row["agent"])
        self.tmux = context.tmux(row["tmux_server"])
        self.tree: set[Identity] = set()
        self.was_killed = False
        self.is_announced = is_announced
        self.log_detail = {"recovered": True} if is_recovery else {}

    def run(self) -> Row:
        """End the session and return its row."""
        sight = see_one(self.context, self.row)
        if sight.state == Liveness.UNKNOWN:
            raise TerminalsDown(
                f"'{self.row['name']}' was not stopped: {sight.reason}", hint="repeat when tmux answers again"
            )
        status: int | None = None
        if is_running(self.row):
            if sight.state in (Liveness.ALIVE, Liveness.LOOSE):
                self._save_and_end(sight)
                if sight.pane is not None:
                    # Else tmux may learn late how it ended, or never.
                    self.tmux.nudge(sight.pane.server_pid)
                sight = see_one(self.context, self.row)
            status = exit_status(self.context, self.row, sight)
            self._end_rest()
        self._remove_pane(sight)
        if self.purge:
            return self._purge(status)
        return self._commit(status)

    def _end_rest(self) -> None:
        """End what the agent started and left running in its session, now that it is gone itself."""
        leader = identity_of(self.row)
        left = process.left_behind(leader) if leader else set()
        if left and exit_watch.wait_gone(left, _FOLLOW_SECONDS):
            self.tree |= left
            self._kill(None, None)

    def _save_and_end(self, sight: Sight) -> None:
        root = identity_of(self.row) or (process.identify(sight.pane.pid) if sight.pane else None)
        look, in_mode = self._save(sight)
        self.tree = process.tree(root, sight.pane.tty if sight.pane else None) if root else set()
        step = stop_escalation.first_step(
            force=self.force,
            exit_word=self.kind.exit_word,
            ends_on_interrupt=self.kind.ends_on_interrupt,
            box=look.box,
            dialog=look.dialog,
            is_busy=look.state == WORKING,
            in_mode=in_mode,
        )
        self._climb(step, sight, root)

    def _save(self, sight: Sight) -> tuple[ScreenState, bool]:
        """Keep the conversation's id and the last screen, durably, before anything is done to the agent."""
        said = conversations.told(self.context, self.row)
        screen, look, in_mode = "", ScreenState(), False
        if sight.pane is not None:
            seen = self.tmux.look(sight.pane.id)
            screen, in_mode = seen.screen, seen.pane.in_mode
            look = self.kind.look(Screen(seen.screen, seen.cursor_x, seen.cursor_y))

        def work(draft: Transaction) -> Row:
            current = draft.get(self.row["id"]) or self.row
            saved = conversations.captured(self.context, current, said, draft.rows)
            saved = merged(saved, last_visible_note=safe_text.note(screen) or saved.get("last_visible_note"))
            # From here on the agent is told to leave: a stop that dies later is finished, not given up.
            claims.annotate(draft, saved["id"], {**self.notes, ACTING: True})
            self._announce(draft, saved)
            return draft.put(saved) if saved != current else current

        self.row = self.context.registry.note(work)
        return look, in_mode

    def _announce(self, draft: Transaction, row: Row) -> None:
        """Publish once that the session is being ended."""
        if not self.is_announced:
            self.is_announced = True
            self.context.publish(draft, Stopping(row))

    def _climb(self, step: stop_escalation.Step, sight: Sight, root: Identity | None) -> None:
        pane = sight.pane
        rung = step.rung
        if rung == stop_escalation.ASK and pane is not None:
            self.context.progress(f"asking {self.row['name']} to leave")
            if self._ask(step, pane.id) and not self._still_there(stop_escalation.ASK, root):
                return
            rung = stop_escalation.HANG_UP
        if rung != stop_escalation.KILL and pane is not None:
            self.context.progress(f"closing the pane of {self.row['name']} ({step.reason})")
            self._grow(root, pane.tty)
            self.tmux.kill_pane(pane.id, mark=pane.mark or None)
            if not self._still_there(stop_escalation.HANG_UP, root):
                return
        self._kill(root, pane.tty if pane else None)

    def _ask(self, step: stop_escalation.Step, pane_id: str) -> bool:
        try:
            if step.types:
                if not self._is_typed_out() or not self._would_leave():
                    return False
                # It looks again: a dialog may have opened since.
                submit(self.context, self.row, step.types)
            elif step.presses:
                self.tmux.keys(pane_id, [step.presses], mark=self.row["id"])
        except (PaneGone, TerminalsDown, DeliveryUnconfirmed):
            # Nothing is lost: the next rung looks again.
            return False
        return True

    def _would_leave(self) -> bool:
        """Tell whether nothing but its screen has to be looked at again before the exit word is typed."""
        heard = known(self.context, self.row, glance(self.context, self.row))
        if says_waiting(heard):
            return False
        return is_known(self.context, self.row) is not False or says_idle(heard, self.context.now())

    def _is_typed_out(self) -> bool:
        """Wait until nobody types a message into it any more, so that the exit word is not glued to one."""
        from mam.app.messages.delivery import is_typed_to

        deadline = Deadline(_TYPIST_SECONDS)
        while is_typed_to(self.context, self.row["id"]):
            if not deadline.pause(_STEP):
                return False
        return True

    def _still_there(self, rung: str, root: Identity | None) -> bool:
        """Wait out a rung; True if something of the tree is left."""
        self.context.registry.warm_up()
        left = exit_watch.wait_gone(
            {root} if root and rung == stop_escalation.ASK else self.tree, stop_escalation.GRACE[rung]
        )
        if rung == stop_escalation.ASK and not left:
            # The agent has left; what it started gets a moment to follow.
            left = exit_watch.wait_gone(self.tree, _FOLLOW_SECONDS)
        return bool(left)

    def _grow(self, root: Identity | None, tty: str | None) -> None:
        if root:
            self.tree |= process.tree(root, tty)

    def _kill(self, root: Identity | None, tty: str | None) -> None:
        """SIGKILL what is left, again and again until a look finds nothing or the time is over."""
        self.was_killed = True
        self.context.progress(f"killing what is left of {self.row['name']}")
        for _ in range(5):
            self._grow(root, tty)
            for identity in self._targets():
                process.signal(identity, SIGKILL)
            if not exit_watch.wait_gone(self.tree, stop_escalation.GRACE[stop_escalation.KILL] / 5):
                return
        left = sorted(one.pid for one in self.tree if process.is_alive(one))
        if left:
            raise StopUnconfirmed(
                f"processes {', '.join(map(str, left))} of '{self.row['name']}' are still there",
                hint="look at them with ps; the session stays registered as running",
                session=self.row,
            )

    def _targets(self) -> set[Identity]:
        """Return the tree without what must never be signalled: tmux servers and this process."""
        servers = {self.row["pane"].get("server_pid"), process.me().pid}
        return {one for one in self.tree if one.pid not in servers and process.is_alive(one)}

    def _remove_pane(self, sight: Sight) -> None:
        pane_id = own_pane(self.row, sight)
        if pane_id:
            self.tmux.kill_pane(pane_id, mark=self.row["id"])
        after = see_one(self.context, self.row)
        if after.state in (Liveness.ALIVE, Liveness.LOOSE) or own_pane(self.row, after):
            raise StopUnconfirmed(f"the pane of '{self.row['name']}' is still there", session=self.row)
        launch.discard(self.context, self.row["id"])
        launch.leave_to_stranger(self.context, self.row, after.pane)

    def _commit(self, status: int | None) -> Row:
        mode = "forced" if self.was_killed else "graceful"

        def work(draft: Transaction) -> Row:
            current = draft.get(self.row["id"]) or self.row
            action = self.caller.action("stop", self.context.now())
            if not is_running(current):
                # Somebody saw it end before we could say so.
                draft.intents.end(current["id"])
                return current
            current = conversations.captured(self.context, current)
            done = draft.put(
                transitions.stopped(current, action, reason=self.reason, mode=mode, exit_status=status)
            )
            conversations.remember(self.context, draft, done)
            self._announce(draft, done)
            self.context.publish(draft, Stopped(done, self.reason))
            draft.intents.end(done["id"])
            draft.log(
                action["by"], "stop", done, self.reason, mode=mode, exit_status=status, **self.log_detail
            )
            return done

        return self._end(work)

    def _purge(self, status: int | None) -> Row:
        conversation = current_conversation(self.row)
        try:
            removed = purge_files(self.context, self.row, conversation)
        except MamError:
            if is_running(self.row):
                self.row = self._commit(status)
            raise

        def work(draft: Transaction) -> Row:
            current = draft.get(self.row["id"]) or self.row
            action = self.caller.action("purge", self.context.now())
            done = draft.put(transitions.purged(current, action, reason=self.reason, exit_status=status))
            conversations.disown(draft, done, conversation)
            self._announce(draft, done)
            self.context.publish(draft, Stopped(done, self.reason))
            draft.intents.end(done["id"])
            draft.log(
                action["by"],
                "purge",
                done,
                self.reason,
                conversation=conversation,
                removed=removed,
                **self.log_detail,
            )
            return done

        return self._end(work)

    def _end(self, work: Callable[[Transaction], Row]) -> Row:
        """Commit the end, and let go of what the session held."""
        done: Row = claims.change(self.context, work)
        self.context.user_state.release(done["id"])
        return done


def own_pane(row: Row, sight: Sight) -> str | None:
    """Return the id of the pane that is the session's to remove; a stranger who started in it stays."""
    pane = sight.pane
    if pane is None or pane.mark != row["id"]:
        return None
    return pane.id if pane.dead or pane.pid == row["pane"].get("pid") else None


def purge_files(context: Context, row: Row, conversation: str | None) -> list[str]:
    """Delete the files of one conversation, below the recorded store and never through a symlink."""
    from mam.adapters.agents.delete_files import remove

    if not conversation:
        return []
    conversations.refuse_if_held(context, row, conversation)
    kind = context.kind(row["agent"])
    removed = launch.delete_conversation(context, row, conversation)
    for store, path in kind.purge_paths(
        conversation, row["workspace"], conversations.stores_of(context, row)
    ):
        if remove(store, path):
            removed.append(path)
    return removed
