"""What the verbs share that build the state of a root anew: `init --trust`, `init --copy` and `restore`.

None of them believes the database that it starts from. A new one is filled with checked rows, what could act
by itself is put to rest, and one rename puts the new folder in place. The former one is kept.
"""

from __future__ import annotations

import os

from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.store.state_replacement import StateReplacement
from mam.app.context import claims
from mam.app.jobs.write_job_files import audit_root, write_files
from mam.app.sessions.pane_marks import live_panes
from mam.core.errors import Damaged, Unavailable
from mam.core.root_mark import root_mark
from mam.core.root_state import KnownRoot
from mam.core.session_row import with_all_fields
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Document = dict[str, Any]


class StateRebuild:
    """The new state of one root with a certain id. A subclass fills it."""

    def __init__(self, context: Context, caller: Caller, command: str, root_id: str) -> None:
        self.context = context
        self.caller = caller
        self.command = command
        self.root_id = root_id
        # A root may be restored twice in a second.
        name = f"{root_id}-{stamp(context.now()).replace(':', '')}-{os.urandom(2).hex()}"
        self.replacement = StateReplacement(context.paths, context.user_state.folder, name)
        self.rows_of_file = 0
        self.rows: list[Row] = []
        # The panes that have the new mark, as they were before.
        self.marked: list[tuple[Tmux, Pane]] = []

    def copy_files(self) -> None:
        """Bring files into the new folder."""
        raise NotImplementedError

    def fill(self, target: sqlite3.Connection) -> None:
        """Fill the new database."""
        raise NotImplementedError

    def jobs_to_show(self) -> Iterable[str]:
        """Return the jobs whose files are written anew."""
        raise NotImplementedError

    def answer(self, kept: str | None) -> Document:
        """Return what was done; `kept` is where the former state is."""
        raise NotImplementedError

    def run(self) -> Document:
        """Build the new state, put it in place, and write the files that show it."""
        context, replacement = self.context, self.replacement
        fingerprint(context.paths.yaml)
        replacement.begin()
        try:
            self.copy_files()
            self._build()
            self.record()
            context.registry.close()
            replacement.exchange()
        except BaseException:
            if replacement.undo():
                self.forget()
            raise
        context.root.forget_verdict()
        kept = replacement.keep_former()
        claims.change(context, lambda transaction: None)
        for job_id in self.jobs_to_show():
            write_files(context, job_id)
        return self.answer(kept)

    def _build(self) -> None:
        target = self.replacement.open_target()
        try:
            self.fill(target)
        except BaseException:
            target.close()
            raise
        self.replacement.seal(target)

    def record(self) -> None:
        """Make the new id known before the new folder is in place: a crash must not make it foreign."""
        context = self.context
        known = KnownRoot(
            self.root_id,
            context.paths.root,
            context.paths.yaml,
            context.paths.state,
            self.replacement.inode,
        )
        context.user_state.record_root(known)
        self.mark_panes()

    def forget(self) -> None:
        """Take back what `record` did."""
        self.context.user_state.forget_root(self.root_id)
        for tmux, pane in self.marked:
            tmux.mark(pane.id, pane.mark, pane.root)

    def mark_panes(self) -> None:
        """Mark the live panes of the sessions with the new id of the root, so that they stay its panes.

        A crash after this leaves the former state; the next try finds the same panes.
        """
        mark = root_mark(self.root_id, self.context.paths.root)
        for tmux, pane in live_panes(self.context, self.rows):
            self.marked.append((tmux, pane))
            tmux.mark(pane.id, pane.mark, mark)

    def facts_of_this_root(self) -> Document:
        """Return the facts by which a job writes into this root and nowhere else."""
        paths = self.context.paths
        return {"registry_dir": paths.jobs, "logs_dir": audit_root(self.context), "root": paths.root}

    def note_file(self, transaction: Transaction, *, with_rows: bool) -> None:
        """Have the registry file written anew; with `with_rows` add the sessions that only the file has.

        Its comments are in the copy that is kept.
        """
        from mam.adapters.store.yaml import intake

        paths = self.context.paths
        file = fingerprint(paths.yaml)
        try:
            is_read = with_rows and file is not None
            content = intake.read_file(paths, is_recorded=False) if is_read else None
        except (Damaged, Unavailable) as error:
            self.context.warn(f"the registry file was not read, and is kept: {error.message}")
            content = None
        for row in content.rows if content is not None else ():
            if not transaction.named(row["name"]) and not transaction.get(row.get("id") or ""):
                transaction.add(with_all_fields(row, new_session_id()))
                self.rows_of_file += 1
        if file is not None:
            transaction.set_meta("file", file)
