"""Makes a root that came from elsewhere, or a copy of a root, one of this user's own: --trust and --copy.

Neither believes the database that is there. A new one is filled with a checked copy of its rows, and the
former state is kept. What could act by itself is parked or dropped.
"""

from __future__ import annotations

import os

from mam.adapters.store import checked_copy, state_replacement
from mam.adapters.store.root_identity import ID
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.store.state_replacement import StateReplacement
from mam.adapters.store.tables import teams
from mam.app.context import claims
from mam.app.context.authority import require_person
from mam.app.jobs.write_job_files import audit_root, write_files
from mam.app.sessions.init_option_in_other_state import answer_in_other_state
from mam.app.sessions.pane_marks import live_panes
from mam.app.sessions.parking import park_everything
from mam.core import session_transitions
from mam.core.errors import Damaged, RootElsewhere, Unavailable
from mam.core.root_mark import root_mark
from mam.core.root_state import KnownRoot, RootState
from mam.core.session_row import merged, with_all_fields
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.checked_copy import CopyReport
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.app.sessions.parking import Parked
    from mam.core.caller import Caller
    from mam.core.session_row import Action, Row

    Document = dict[str, Any]

_TRUST, _COPY = "mam init --trust", "mam init --copy"


def trust(context: Context, caller: Caller) -> Document:
    """Take in a root that somebody else made; return what was taken, parked, dropped and left out.

    The sessions keep their ids, so live panes of this user that carry them are the same sessions as before.
    """
    require_person(caller, _TRUST)
    with state_replacement.only_one(context.user_state.folder):
        context.root.forget_verdict()
        if state_replacement.finish_interrupted(context.paths):
            context.root.forget_verdict()
        verdict = context.root.verdict()
        if verdict.state != RootState.FOREIGN:
            return answer_in_other_state(context, _TRUST)
        if verdict.elsewhere is not None and not verdict.elsewhere.is_silent(context.now()):
            raise _in_use(context)
        context.root.check_safety()
        return _Rebuild(context, caller, _TRUST).run()


def make_own(context: Context, caller: Caller) -> Document:
    """Give a copy of a root an id of its own; its conversations, jobs and messages stay with the original."""
    require_person(caller, _COPY)
    with state_replacement.only_one(context.user_state.folder):
        context.root.forget_verdict()
        if state_replacement.finish_interrupted(context.paths):
            context.root.forget_verdict()
        verdict = context.root.verdict()
        if verdict.state != RootState.COPY:
            return answer_in_other_state(context, _COPY)
        context.root.check_safety()
        original = verdict.known.root if verdict.known is not None else "another root"
        return _Rebuild(context, caller, _COPY, original).run()


def _in_use(context: Context) -> RootElsewhere:
    refusal = context.root.refusal()
    assert refusal is not None
    return RootElsewhere(
        refusal.message, hint="use mam there; after ten minutes without a change there: mam init --trust"
    )


class _Rebuild:
    """The new state of one root. `original` is the root that it is a copy of."""

    def __init__(self, context: Context, caller: Caller, command: str, original: str | None = None) -> None:
        self.context = context
        self.caller = caller
        self.command = command
        self.original = original
        self.root_id = os.urandom(8).hex()
        name = f"{self.root_id}-{stamp(context.now()).replace(':', '')}"
        self.replacement = StateReplacement(context.paths, context.user_state.folder, name)
        self.report = checked_copy.CopyReport()
        self.rows_of_file = 0
        self.rows: list[Row] = []
        # The panes that have the new mark, as they were before.
        self.marked: list[tuple[Tmux, Pane]] = []

    def run(self) -> Document:
        """Build the new state, put it in place, and write the files that show it."""
        context, replacement = self.context, self.replacement
        fingerprint(context.paths.yaml)
        replacement.begin()
        try:
            replacement.copy_files()
            parked = self._fill()
            known = KnownRoot(
                self.root_id,
                context.paths.root,
                context.paths.yaml,
                context.paths.state,
                replacement.inode,
            )
            context.user_state.record_root(known)
            context.registry.close()
            self._mark_panes()
            replacement.exchange()
        except BaseException:
            if replacement.undo():
                context.user_state.forget_root(self.root_id)
                self._mark_panes_as_before()
            raise
        context.root.forget_verdict()
        kept = replacement.keep_former()
        claims.change(context, lambda transaction: None)
        for job in parked.jobs:
            write_files(context, job.id)
        return self._document(parked, kept)

    def _fill(self) -> Parked:
        replacement, context = self.replacement, self.context
        source, target = replacement.open_source(), None
        try:
            target = replacement.open_target()
            with replacement.transaction(target, context.now()) as transaction:
                if source is not None:
                    self.report = checked_copy.copy_rows(source, target, self._job_facts())
                self._add_rows_of_file(transaction)
                transaction.set_meta(ID, self.root_id)
                parked = self._put_to_rest(transaction)
                self.rows = transaction.rows()
                transaction.log(
                    self.caller.name,
                    "init",
                    None,
                    self.command,
                    original=self.original,
                    kept=replacement.kept,
                )
        except BaseException:
            if target is not None:
                target.close()
            raise
        finally:
            if source is not None:
                replacement.close_source(source)
        replacement.seal(target)
        return parked

    def _mark_panes(self) -> None:
        """Mark the live panes of the sessions with the new id of the root, so that they stay its panes.

        A crash after this leaves the former state; the next try finds the same panes.
        """
        if self.original is not None:
            return
        mark = root_mark(self.root_id, self.context.paths.root)
        for tmux, pane in live_panes(self.context, self.rows):
            self.marked.append((tmux, pane))
            tmux.mark(pane.id, pane.mark, mark)

    def _mark_panes_as_before(self) -> None:
        for tmux, pane in self.marked:
            tmux.mark(pane.id, pane.mark, pane.root)

    def _job_facts(self) -> Document:
        """Return facts that would let a job write or publish elsewhere, as those of a job of this root."""
        paths = self.context.paths
        return {
            "broker": None,
            "registry_dir": paths.jobs,
            "logs_dir": audit_root(self.context),
            "root": paths.root,
        }

    def _add_rows_of_file(self, transaction: Transaction) -> None:
        """Add the sessions that only the registry file has; without any others, the file is taken in later.

        The file is written anew then. Its comments are in the copy that is kept.
        """
        from mam.adapters.store.yaml import intake

        paths, has_rows = self.context.paths, bool(transaction.rows())
        if not has_rows and self.original is None:
            return
        file = fingerprint(paths.yaml)
        try:
            content = intake.read_file(paths, is_recorded=False) if file is not None else None
        except (Damaged, Unavailable) as error:
            self.context.warn(f"the registry file was not read, and is kept: {error.message}")
            content = None
        for row in content.rows if content is not None else ():
            if not transaction.named(row["name"]) and not transaction.get(row.get("id") or ""):
                transaction.add(with_all_fields(row, new_session_id()))
                self.rows_of_file += 1
        if file is not None:
            transaction.set_meta("file", file)

    def _put_to_rest(self, transaction: Transaction) -> Parked:
        parked = park_everything(transaction, f"{self.command} parked it")
        teams.end_all(transaction)
        if self.original is not None:
            self._leave_to_original(transaction, self.original)
        return parked

    def _leave_to_original(self, transaction: Transaction, original: str) -> None:
        """End every row without its conversations, so that no resume opens one of the original's."""
        action: Action = self.caller.action("init --copy", transaction.now)
        for row in transaction.rows():
            ended = session_transitions.purged(
                row, action, reason=f"it belongs to {original}", exit_status=None
            )
            workspace = _moved(row["workspace"], original, self.context.paths.root)
            transaction.put(merged(ended, workspace=workspace, worktree=None))
        transaction.set_meta("identities", {})

    def _document(self, parked: Parked, kept: str) -> Document:
        report: CopyReport = self.report
        counts = {table: count for table, count in report.taken.items() if count}
        counts["sessions"] = counts.get("sessions", 0) + self.rows_of_file
        return {
            "registry": self.context.paths.yaml,
            "changed": True,
            "original": self.original,
            "kept": kept,
            "taken": counts,
            "parked": {
                "messages": [message.id for message in parked.messages],
                "jobs": [job.id for job in parked.jobs],
            },
            "dropped": {
                "intents": report.dropped.get("intents", 0),
                "events": report.dropped.get("outbox", 0),
            },
            "left_out": report.left_out,
            "left_out_count": report.left_out_count,
            "files_left": self.replacement.aside,
        }


def _moved(workspace: str, original: str, root: str) -> str:
    """Return the directory of the copy that corresponds to one of the original, if there is one."""
    if workspace != original and not workspace.startswith(f"{original}/"):
        return workspace
    moved = root + workspace.removeprefix(original)
    return moved if os.path.isdir(moved) else workspace
