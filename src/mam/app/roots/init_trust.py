"""Makes a root that came from elsewhere, or a copy of a root, one of this user's own: --trust and --copy.

Neither believes the database that is there. A new one is filled with a checked copy of its rows, and the
former state is kept. What could act by itself is parked or dropped.
"""

from __future__ import annotations

import os

from mam.adapters.store import checked_copy, state_replacement
from mam.adapters.store.root_identity import ID
from mam.adapters.store.tables import teams
from mam.app.context.authority import require_person
from mam.app.roots.init_option_in_other_state import answer_in_other_state
from mam.app.roots.parking import Parked, park_everything
from mam.app.roots.state_rebuild import StateRebuild
from mam.core import session_transitions
from mam.core.errors import RootElsewhere
from mam.core.root_state import RootState
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Action

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


class _Rebuild(StateRebuild):
    """The new state of a root that gets an id of its own. `original` is the root that it is a copy of."""

    def __init__(self, context: Context, caller: Caller, command: str, original: str | None = None) -> None:
        super().__init__(context, caller, command, os.urandom(8).hex())
        self.original = original
        self.report = checked_copy.CopyReport()
        self.parked = Parked([], [], 0)

    def copy_files(self) -> None:
        """Take over the files of jobs and the settings of agents."""
        self.replacement.copy_files()

    def fill(self, target: sqlite3.Connection) -> None:
        """Copy the rows that mam could have written, and park what could act by itself."""
        replacement, context = self.replacement, self.context
        source = replacement.open_source()
        try:
            with replacement.transaction(target, context.now()) as transaction:
                if source is not None:
                    facts = {**self.facts_of_this_root(), "broker": None}
                    self.report = checked_copy.copy_rows(source, target, facts)
                if transaction.rows() or self.original is not None:
                    # Else the file is taken in later, with its comments.
                    self.note_file(transaction, with_rows=True)
                transaction.set_meta(ID, self.root_id)
                self.parked = self._put_to_rest(transaction)
                self.rows = transaction.rows()
                transaction.log(
                    self.caller.name,
                    "init",
                    None,
                    self.command,
                    original=self.original,
                    kept=replacement.kept,
                )
        finally:
            if source is not None:
                replacement.close_source(source)

    def mark_panes(self) -> None:
        """Mark the live panes, unless they belong to the original."""
        if self.original is None:
            super().mark_panes()

    def jobs_to_show(self) -> list[str]:
        """Return the parked jobs."""
        return [job.id for job in self.parked.jobs]

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

    def answer(self, kept: str | None) -> Document:
        """Return what was taken, parked, dropped and left out."""
        report = self.report
        counts = {table: count for table, count in report.taken.items() if count}
        counts["sessions"] = counts.get("sessions", 0) + self.rows_of_file
        return {
            "registry": self.context.paths.yaml,
            "changed": True,
            "original": self.original,
            "kept": kept,
            "taken": counts,
            "parked": {
                "messages": [message.id for message in self.parked.messages],
                "jobs": [job.id for job in self.parked.jobs],
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
