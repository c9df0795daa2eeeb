"""The resident: the one background process of a root, which notices deaths, hooks and edits at once.

Each of these triggers a pass; a full pass from time to time is the safety net. The resident may be killed at
any moment: the next verb mends what it leaves behind. An unexpected error in a pass or in a task ends neither
the resident nor the other tasks.
"""

from __future__ import annotations

import os
import select
import time
import traceback
from contextlib import suppress

import mam
from mam.adapters.store import database, disk_reserve
from mam.adapters.store.files import hook_spool
from mam.adapters.store.root_identity import has_content
from mam.adapters.system import process
from mam.adapters.system.exit_watch import ExitWatch
from mam.adapters.system.file_watch import FileWatch
from mam.adapters.tmux.client import TIMEOUT
from mam.app.brokers.relay_pool import RelayPool
from mam.app.context import claims
from mam.app.context.liveness import identity_of
from mam.app.context.resident_start_and_lock import has_resident, lock, resident_log
from mam.app.context.resident_state import ENDED, REPLACED, STARTED
from mam.app.context.setting_aside import reason_of
from mam.app.job_runner.resident_task import JobTask
from mam.app.messages.resident_task import DeliveryTask
from mam.app.monitor import notify
from mam.app.monitor.backup_task import BackupTask
from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
from mam.app.monitor.retention import RetentionTask
from mam.app.monitor.stop_signal import StopOverdue, stop_handle
from mam.app.monitor.supervised_task import SupervisedTask, Supervision
from mam.app.monitor.take_over_from_older_mam import take_over
from mam.app.observation import conversations
from mam.app.sessions import exit_status_and_cleanup, reconcile
from mam.app.sessions.ending_processes import EndingProcesses
from mam.app.sessions.steps_before_each_change import recover_if_needed
from mam.app.teams.resident_task_spawns_and_pages import TeamTask
from mam.core.drift_detection import hands_off_until
from mam.core.errors import MamError, ResidentRuns
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any

    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.app.monitor.stop_signal import StopHandle
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.broker_address import Broker
    from mam.core.caller import Caller
    from mam.core.session_row import Row


# Seconds between full passes: with fewer than _MANY running sessions, and with more.
_NET, _SLOW_NET, _MANY = 30.0, 60.0, 5
# Seconds. Hooks and edits come in bursts, so one pass handles a burst. A death gets a pass at once.
_BURST = 0.25
# Seconds between looks at a process that is ending. The end itself is noticed at once.
_LONGEST_LOOK = 1.0
# Seconds to wait for a tmux server that did not answer the last time; every _NOW_AND_THEN-th try gets the
# full timeout.
_BRIEF, _NOW_AND_THEN = 0.5, 10
_STOPPED, _ROOT_GONE = "the monitor was told to stop", "the root is gone"
_LONGEST_FAILING = 500
# Seconds until an error that comes again is logged again.
_LOGGED_SECONDS = 3600.0
# Seconds after which a resident has run well.
_WELL_SECONDS = 60.0
# Seconds between its signs of life.
_BEAT_SECONDS = 60.0
_SPOOL, _STATE, _STORE = "spool", "state", "store"


def _other_runs() -> ResidentRuns:
    return ResidentRuns(REPLACED, hint="mam monitor follows it")


class Resident:
    """Watches one root until it is told to stop, a timeout is reached, or nothing runs any more."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        tell: Callable[[dict[str, Any]], None],
        tasks: Iterable[ResidentTask] = (),
        *,
        subscribe: Broker | None = None,
    ) -> None:
        """`tell` gets the report of each pass that found something, and the events from a broker."""
        self.context = context
        self.caller = caller
        self.tell = tell
        self.relays = RelayPool(context, self.caller, tell, always=subscribe)
        self.copies = BackupTask(context)
        self.tasks: list[ResidentTask] = [
            self.relays,
            DeliveryTask(context),
            JobTask(context, caller),
            TeamTask(context),
            RetentionTask(context),
            *tasks,
            # The last one, because it copies what the others change.
            self.copies,
        ]
        self._supervised = [SupervisedTask(task, self._note_failure) for task in self.tasks]
        self._passes = Supervision("pass", self._note_failure)
        self._has_looked = False
        # The errors that are in the log already, and when they came.
        self._logged: dict[str, float] = {}
        self._root_id: str | None = None
        self._holder: dict[str, Any] = {}
        self._is_well_at = float("inf")
        self.log = resident_log(context)
        self.exits = ExitWatch()
        self.files = FileWatch()
        self.lock = lock(context)
        self.stopping = ""
        self._watched: dict[str, Identity] = {}
        self._deaths: set[str] = set()
        self._due = 0.0
        self._beat_due = 0.0
        self._ended_due = 0.0
        self._ending = EndingProcesses()
        self._must_tick = False
        self._next_notice_in: float | None = None
        self._rows: list[Row] = []
        self._missed_answers: dict[str, int] = {}
        self._uncertain_passes = 0

    def run(self, limits: MonitorTimeouts | None = None, *, while_any: bool = False) -> str:
        """Watch the root; return why it ended. Raises ResidentRuns if another resident runs."""
        stop: StopHandle | None = None
        try:
            if not self.context.paths.exists():
                return _ROOT_GONE
            # A root of the original system has no `.mam` folder yet.
            self.context.registry.ensure_exists()
            self._root_id, self.log = self.context.root.verdict().id, resident_log(self.context)
            self.log.take_output()
            if has_resident(self.context):
                # Whoever calls may follow it in any thread; only the main one can hear signals.
                raise _other_runs()
            # Before the lock: whoever finds a resident there can tell it to stop.
            with stop_handle() as stop:
                if not (self._take() or take_over(self.context, self.lock, self._take)):
                    raise _other_runs()
                self.log.add(f"{STARTED}: mam {mam.__version__}")
                return self._note_end(self._loop(stop.fileno(), limits or MonitorTimeouts(), while_any))
        except StopOverdue:
            self.copies.leave_last()
            return self._note_end(_STOPPED)
        except ResidentRuns:
            if stop is not None and stop.has_come:
                # Whoever calls would follow the other one, and this signal would be lost.
                return _STOPPED
            raise
        except Exception as error:
            self._log_error("the resident has ended", error)
            raise
        finally:
            self.close()

    def _take(self) -> bool:
        self._holder = {**process.me().as_json(), "version": mam.__version__, "since": self.context.now()}
        with database.errors(self.lock.path):
            return self.lock.take(self._holder)

    def _note_end(self, reason: str) -> str:
        """Record why it ends as it should."""
        self.log.add(f"{ENDED}{reason}")
        self._note_well()
        return reason

    def _note_well(self) -> None:
        """Record that it has run well: the next resident need not wait."""
        self._is_well_at = float("inf")
        try:
            if self._root_id is not None:
                self.context.user_state.note_good_resident(self._root_id)
        except MamError as error:
            self.log.add(f"the user state cannot be written: {error}")

    def _note_failure(self, name: str, error: Exception, failures: int, pause: float) -> None:
        """Log an unexpected error of a pass or of a task, and show in the lock that there is one."""
        self._log_error(f"{name} has failed {failures} in a row, the next try is in {pause:g} s", error)
        self._show_failures()

    def _show_failures(self) -> None:
        states = [self._passes, *(task.state for task in self._supervised)]
        text = "; ".join(f"{state.name}: {state.reason}" for state in states if state.reason)
        failing = text[:_LONGEST_FAILING] or None
        # Only what is new: the resident watches the folder of the lock, and each write wakes it.
        if self._holder.get("failing") != failing:
            self._holder = {**self._holder, "failing": failing}
            with suppress(OSError):
                # On a full disk the lock is held all the same.
                self.lock.rewrite(self._holder)
            # What is written has the time of the wall clock.
            self._beat_due = 0.0

    def _show_life(self) -> None:
        """Show once a minute that it works: whoever sees nothing for minutes does its work."""
        if (now := time.monotonic()) >= self._beat_due:
            self._beat_due = now + _BEAT_SECONDS
            with suppress(OSError):
                self.lock.beat()

    def _log_error(self, text: str, error: Exception) -> None:
        """Log an error with its traceback; the last line says what happened."""
        self.log.add("".join(traceback.format_exception(error)))
        self.log.add(f"{text}: {reason_of(error)}")

    def _tell_error(self, error: MamError) -> None:
        """Report an error that mam expects; log it, and not at every try."""
        self.tell({"error": error.as_json()["error"]})
        now = time.monotonic()
        self._logged = {text: at for text, at in self._logged.items() if now - at < _LOGGED_SECONDS}
        if error.message not in self._logged:
            self._logged[error.message] = now
            self.log.add(f"error: {error.message}")

    def close(self) -> None:
        """Close all watches, release the root's lock, and copy what changed last."""
        self.relays.close()
        self.exits.close()
        self.files.close()
        # Before the copy: whoever needs a resident now starts one.
        self.lock.release()
        if error := self.copies.close():
            self.tell({"error": error.as_json()["error"]})

    def _loop(self, wake: int, limits: MonitorTimeouts, while_any: bool) -> str:
        self._is_well_at = time.monotonic() + _WELL_SECONDS
        self._show_life()
        self._try_pass()
        while True:
            if reason := self._end_of_lock() or self._tick():
                return reason
            now = time.monotonic()
            if (wait := self.relays.seconds_until_pass()) is not None:
                self._due = min(self._due, now + wait)
            due = [max(self._due, self._passes.rests_until), *(task.due() for task in self._supervised)]
            if reason := self._end_reason(while_any) or limits.end_reason():
                return reason
            if self._sleep(min([*due, limits.next_end(), self._beat_due]) - now, wake):
                limits.note_event()
            if self.stopping:
                return self.stopping
            self._pass_if_due()

    def _end_of_lock(self) -> str:
        """Make the lock's file again that somebody has deleted; return why to end if that is not possible."""
        if not self.lock.is_lost():
            return ""
        if self._is_root_gone():
            # Whoever deletes the whole folder must not find a new file in it.
            return _ROOT_GONE
        with database.errors(self.lock.path):
            return "" if self.lock.take_again(self._holder) else REPLACED

    def _pass_if_due(self) -> None:
        if self._passes.is_resting():
            return
        if self._deaths:
            self._try_pass(only=self._deaths)
        elif time.monotonic() >= self._due:
            self._try_pass()

    def _try_pass(self, only: set[str] | None = None) -> None:
        """Make a pass; after an unexpected error the next one, over all sessions, comes after a pause."""
        try:
            self._pass(only)
        except Exception as error:
            self.context.registry.close()
            self._passes.note_failure(error)
            self._due = self._passes.rests_until
        else:
            self._passes.note_success()
            self._show_failures()

    def _end_reason(self, while_any: bool) -> str:
        if self._is_root_gone():
            return _ROOT_GONE
        return "nothing runs any more" if while_any and not self._is_needed() else ""

    def _is_root_gone(self) -> bool:
        """Tell whether the database was deleted or emptied: the resident has made one if there was none."""
        return not has_content(self.context.paths.db)

    def _is_needed(self) -> bool:
        """Tell whether something needs a resident; before the first pass that succeeds nobody knows."""
        if not self._has_looked:
            return True
        return any(is_running(row) for row in self._rows) or any(
            task.is_needed() for task in self._supervised
        )

    def _tick(self) -> str:
        """Tick each task that is due; a task that fails is tried again later."""
        must_tick, self._must_tick = self._must_tick, False
        for task in self._supervised:
            try:
                if reason := task.tick(must=must_tick):
                    return reason
            except MamError as error:
                self._tell_error(error)
            self._show_life()
        self._show_failures()
        self._show_life()
        if time.monotonic() >= self._is_well_at:
            self._note_well()
        return ""

    def _sleep(self, seconds: float, wake: int) -> bool:
        """Wait for an event; return False if none came in time."""
        poll = select.poll()
        task_handles = {handle for task in self._supervised for handle in task.handles()}
        for handle in (wake, self.exits.fileno(), self.files.fileno(), *task_handles):
            poll.register(handle, select.POLLIN)
        ready = {handle for handle, _ in poll.poll(max(0.0, seconds) * 1000)}
        if not ready:
            return False
        if wake in ready:
            os.read(wake, 64)
            self.stopping = _STOPPED
            return True
        self._must_tick = self._must_tick or not ready.isdisjoint(task_handles)
        self._deaths |= {str(tag) for tag in self.exits.poll(0)}
        if self.files.poll():
            self._due = min(self._due, time.monotonic() + _BURST)
        return True

    def _pass(self, only: set[str] | None = None) -> None:
        """Make a pass over all sessions or over some; report a failure, and try again soon."""
        self._deaths = set()
        before: int | None = None
        next_look_in: float | None = None
        is_certain = False
        try:
            before = self.context.registry.commit_number()
            if only is None:
                recover_if_needed(self.context, self.caller)
                self._take_in_edit()
            with_ended = only is None and self._looks_at_ended()
            result = reconcile.reconcile(
                self.context, self.caller, only, with_ended=with_ended, ending=self._ending
            )
            if with_ended:
                exit_status_and_cleanup.end_secrets_of_ended_sessions(self.context)
                self.context.user_state.remove_stray_secrets()
                disk_reserve.make(self.context.paths.state)
            next_look_in = result.next_look_in
            self._rows = self._rows_after(only, result)
            self._has_looked = self._has_looked or only is None
            self._adjust_timeouts(result)
            is_certain = all(listing.confirmed for listing in result.snapshot.listings.values())
            new_drifts = [drift for drift in result.drifts if drift["new"]]
            if new_drifts:
                self.tell({"drifts": new_drifts, "actions": result.actions})
            if only is None:
                self._notify(result)
        except MamError as error:
            self._tell_error(error)
            self.context.registry.close()
        self._must_tick = True
        self._watch()
        if only is None:
            self._due = time.monotonic() + self._interval()
        if next_look_in is not None:
            self._due = min(self._due, time.monotonic() + max(_BURST, min(next_look_in, _LONGEST_LOOK)))
        if is_certain:
            # A pass over some sessions may not have asked the server that does not answer.
            self._uncertain_passes = 0 if only is None else self._uncertain_passes
        else:
            self._uncertain_passes += 1
            self._due = min(self._due, time.monotonic() + self._seconds_until_retry())
        # The pass itself has changed watched files: only changes by others make another pass due.
        tags = self.files.poll()
        if tags and self._is_news(tags, before):
            self._due = min(self._due, time.monotonic() + _BURST)

    def _looks_at_ended(self) -> bool:
        """Tell whether a pass looks at ended sessions: not for each hook and edit, because there are many."""
        now = time.monotonic()
        if now < self._ended_due:
            return False
        self._ended_due = now + _NET
        return True

    def _seconds_until_retry(self) -> float:
        """Return the seconds until a pass that failed or was not answered is repeated: few, then more.

        The end of a process is reported once. A pass that learned nothing of it must not leave it to the next
        full pass.
        """
        return min(_NET, _BURST * 2.0 ** min(self._uncertain_passes - 1, 10))

    def _adjust_timeouts(self, result: reconcile.Pass) -> None:
        """Shorten the timeout of a tmux server that did not answer, so that it does not delay the others."""
        for server, listing in result.snapshot.listings.items():
            times = 0 if listing.confirmed else self._missed_answers.get(server, 0) + 1
            self._missed_answers[server] = times
            # A server that is slow but not frozen needs the full timeout from time to time.
            self.context.tmux(server).timeout = _BRIEF if times % _NOW_AND_THEN else TIMEOUT

    def _rows_after(self, only: set[str] | None, result: reconcile.Pass) -> list[Row]:
        """Return the rows after a pass. A pass over some sessions has only ended rows, and read no others."""
        if only is None:
            return self.context.registry.view().rows
        ended = {action["session"] for action in result.actions}
        return [row for row in self._rows if row["name"] not in ended]

    def _is_news(self, tags: set[Hashable], before: int | None) -> bool:
        try:
            return (
                _STORE in tags
                or self.context.registry.commit_number() != before
                or self.context.registry.is_edited()
                or bool(hook_spool.pending(self.context.paths.spool))
            )
        except MamError:
            return True

    def _notify(self, result: reconcile.Pass) -> None:
        """Notify a person of the sessions that need them, once each."""
        notices, self._next_notice_in = notify.new_notices(
            self.context, self.context.registry.view(), result.snapshot.listings
        )
        for notice in notices:
            self.tell({"attention": notice})
        if notices:
            notify.announce_in_thread(self.context, notices)

    def _take_in_edit(self) -> None:
        """Take in a person's edit of the registry file."""
        if self.context.registry.is_edited():
            claims.change(self.context, lambda transaction: None)

    def _interval(self) -> float:
        running = [row for row in self._rows if is_running(row)]
        net = _NET if len(running) < _MANY else _SLOW_NET
        now = self.context.now()
        # A pass skips a row that was changed recently; the next pass comes when the row may be changed.
        rests = [until - now for row in running if 0 < (until := hands_off_until(row)) - now < net]
        notices = [self._next_notice_in] if self._next_notice_in is not None else []
        return max(_BURST, min([net, *rests, *notices]))

    def _watch(self) -> None:
        running = {
            row["id"]: identity for row in self._rows if is_running(row) and (identity := identity_of(row))
        }
        for key, identity in list(self._watched.items()):
            if running.get(key) != identity:
                self.exits.discard(identity)
                del self._watched[key]
        for key, identity in running.items():
            if key not in self._watched:
                self._watched[key] = identity
                self.exits.add(identity, key)
        folders = self._folders()
        # Transcripts grow all the time; only their appearance and disappearance matters.
        self.files.keep(folders, [path for path, tag in folders.items() if tag == _STORE])

    def _folders(self) -> dict[str, Hashable]:
        paths = self.context.paths
        folders: dict[str, Hashable] = {paths.spool: _SPOOL, paths.state: _STATE}
        folders[os.path.dirname(paths.yaml)] = _STATE
        for row in self._rows:
            conversation = current_conversation(row) if is_running(row) else None
            if not conversation:
                continue
            stores = conversations.stores_of(self.context, row)
            folder = self.context.kind(row["agent"]).transcript_folder(conversation, row["workspace"], stores)
            if folder:
                folders[folder] = _STORE
        return folders
