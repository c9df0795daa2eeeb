"""Brings the state of a root back from a copy, or what is left of a damaged database with a copy's help.

A copy is older than what happened since. So nothing is believed that could act twice: what agents may have
got, what jobs may have done and what was published is looked up or put to rest. Nothing is typed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from mam.adapters.store import (
    backup_file,
    checked_copy,
    database,
    incarnation,
    salvage,
    soundness,
    state_replacement,
)
from mam.adapters.store.files import exec_files, job_files
from mam.adapters.store.intents import Intent
from mam.adapters.store.root_identity import ID, has_content
from mam.adapters.store.tables import jobs, messages, teams
from mam.adapters.system import process
from mam.app.context import claims, former_places, resident_start_and_lock
from mam.app.context.authority import require_person
from mam.app.jobs import ledger_writer
from mam.app.jobs.write_job_files import lost_files
from mam.app.messages import restored_messages
from mam.app.messages.parking import park
from mam.app.roots import take_back
from mam.app.roots.end_since_copy import end_since_copy
from mam.app.roots.jobs_since_copy import end_jobs_since_copy
from mam.app.roots.parking import park_everything
from mam.app.roots.restore_source import copies_by_path, counted_copies, open_newest, open_source, richer
from mam.app.roots.restore_summary import summary_of
from mam.app.roots.state_rebuild import StateRebuild
from mam.app.sessions.steps_before_each_change import recover_if_needed
from mam.core import job_event as events
from mam.core.errors import (
    Damaged,
    MamError,
    NeedsConfirmation,
    Refused,
    RegistryBusy,
    RegistryCorrupt,
    SchemaTooNew,
)
from mam.core.job_rules import JobStatus, runs_command
from mam.core.message_rules import MessageState
from mam.core.root_mark import root_mark
from mam.core.root_state import RootState
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.app.roots.restore_source import Source
    from mam.app.roots.take_back import MarkedPane
    from mam.core.caller import Caller

    Document = dict[str, Any]

_COMMAND = "mam restore"
# So many copies are looked at for more than the chosen one has.
_MOST_OLDER = 4
_PARKED = "mam restore parked it: no live pane carries it"
_PARKED_ENDED = "mam restore parked it: it has ended since the copy was made ({})"


def restore(
    context: Context,
    caller: Caller,
    file: str | None = None,
    *,
    is_confirmed: bool = False,
    dry_run: bool = False,
) -> Document:
    """Restore the state of the root from a file, or without one from the newest copy; return what was done.

    Without a file it is refused where the state is sound. A database that is damaged is salvaged then.
    `is_confirmed` is needed where a file replaces a state that is there. With `dry_run` nothing changes.
    """
    require_person(caller, "restore")
    with state_replacement.only_one(context.user_state.folder), ExitStack() as stack:
        context.root.forget_verdict()
        if not dry_run and state_replacement.finish_interrupted(context.paths):
            context.root.forget_verdict()
            claims.change(context, lambda transaction: transaction.log(caller.name, "restore", None))
            return {"registry": context.paths.yaml, "changed": True, "finished": True}
        if not dry_run and file is None and _is_back(context, caller):
            return {"registry": context.paths.yaml, "changed": True, "written_back": True}
        here = _Here(context)
        work = _Restore(context, caller, here)
        if file is not None:
            file = backup_file.present_path(os.path.join(context.workspace, os.path.expanduser(file)))
            work.use(stack.enter_context(open_source(file, context.user_state.folder)))
            if here.has_database and not is_confirmed and not dry_run:
                raise NeedsConfirmation(
                    f"what was done in this root after {stamp(work.made_at)} would be undone; "
                    "mam has not changed anything",
                    hint=f"repeat with --yes; without FILE, {_COMMAND} mends a damaged state",
                )
        else:
            work.use_newest(stack)
        if dry_run:
            return work.preview()
        # The resident makes a last copy when it ends, which could take the place of this one.
        work.keep_source()
        with here.at_rest():
            return work.run()


def _is_back(context: Context, caller: Caller) -> bool:
    """End the resident of an emptied database; tell whether SQLite has written it back from its log.

    SQLite does so when the last process closes the database, if the log has every page. Otherwise the file is
    damaged then, or still empty.
    """
    if not os.path.lexists(context.paths.db) or has_content(context.paths.db):
        return False
    if context.root.verdict().state != RootState.MISSING:
        return False
    context.root.check_safety()
    context.registry.close()
    resident_start_and_lock.end(context)
    context.root.forget_verdict()
    if not has_content(context.paths.db) or not _Here(context).is_sound:
        return False
    claims.change(context, lambda transaction: transaction.log(caller.name, "restore", None))
    resident_start_and_lock.ensure_if_needed(context)
    return True


class _Here:
    """What there is at the place of the root: nothing, a lost state, a damaged one, or a sound one."""

    def __init__(self, context: Context) -> None:
        """Raise RootRefused where another way out fits."""
        self.context = context
        # Why the database cannot be used as it is.
        self.damage: Damaged | None = None
        known = context.user_state.root_at(context.paths.state)
        self.root_id = known.id if known is not None else None
        try:
            verdict = context.root.verdict()
            state, self.root_id = verdict.state, verdict.id or self.root_id
        except (RegistryCorrupt, SchemaTooNew) as error:
            # mam cannot read the id. The folder is known by its inode.
            if known is None or known.inode != os.stat(context.paths.state).st_ino:
                raise
            state, self.damage = RootState.KNOWN, error
        self.state = state
        if state not in (RootState.NEW, RootState.KNOWN, RootState.MISSING):
            refusal = context.root.refusal()
            assert refusal is not None
            raise type(refusal)(f"{_COMMAND} does not help here: {refusal.message}", hint=refusal.hint)
        context.root.check_safety()
        # An emptied file holds nothing, and its verdict is MISSING.
        self.has_database = os.path.lexists(context.paths.db) and state != RootState.MISSING
        if self.has_database and self.damage is None:
            self.damage = soundness.damage_of(context.paths.db)

    @property
    def is_sound(self) -> bool:
        """Whether the database can be used as it is."""
        return self.has_database and self.damage is None

    @property
    def way_without_copy(self) -> str:
        """What a person may do where mam has no copy that can be read."""
        anew = {
            RootState.NEW: "mam init makes this directory a root",
            RootState.MISSING: "or begin anew: mam init --new",
        }.get(self.state, "the next command that records something begins anew")
        return f"if you have a backup in a file: {_COMMAND} FILE; {anew}"

    def refuse_if_busy(self) -> None:
        """Raise RegistryBusy while another process changes something: it would be lost."""
        try:
            view = self.context.registry.view_to_show()
            nothing: list[Any] = []
            typing = self.context.registry.peek(messages.open_of, nothing)
            begun = self.context.registry.peek(partial(jobs.listed, only_open=True), nothing)
        except Damaged:
            return
        owners = [message.owner for message in typing if message.state == MessageState.TYPING]
        # Somebody submits them and starts their sessions, or runs their scripts.
        owners += [job.data.get(key) for job in begun for key in ("owner", "checker")]
        identities = [process.Identity.from_json(owner) for owner in owners]
        is_owned = any(identity is not None and process.is_alive(identity) for identity in identities)
        if is_owned or any(claims.is_owned(intent) for intent in view.intents):
            raise RegistryBusy("another command is at work in this root", hint="repeat when it has ended")

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """End the resident, and keep everybody else from changing the state until the block ends.

        Whoever begins to type a held message meanwhile waits, and then sees the restored state. After an
        error the state needs its resident again.
        """
        # Also one whose database is gone: it may not have noticed that yet.
        has_ended = resident_start_and_lock.end(self.context)
        if not self.has_database:
            yield
            return
        try:
            with database.unchanged(self.context.paths.db):
                self.refuse_if_busy()
                yield
        except BaseException:
            if has_ended:
                with suppress(MamError):
                    resident_start_and_lock.ensure(self.context)
            raise


class _Restore(StateRebuild):
    """The restored state of a root."""

    def __init__(self, context: Context, caller: Caller, here: _Here) -> None:
        super().__init__(context, caller, _COMMAND, here.root_id or os.urandom(8).hex())
        self.here = here
        self.source: Source | None = None
        # False for the copy of another root, whose state becomes that of this one.
        self.is_same = True
        # Whether a file replaces a state that is there.
        self.goes_back = False
        self.tried: list[Document] = []
        # The copies that are older than the one that mam chose.
        self.older: list[Document] = []
        self.tokens: dict[str, str] = {}
        self.is_preview = False
        self.report: checked_copy.CopyReport = checked_copy.CopyReport()
        self.done: Document = {}
        self.open_jobs: list[str] = []
        # Those that the copy does not have. They have ended.
        self.newer_jobs: list[str] = []

    @property
    def made_at(self) -> float:
        """When the copy was made."""
        return self.source.made_at if self.source is not None else 0.0

    @property
    def salvages(self) -> bool:
        """Whether the damaged database comes first, and the copy fills its gaps."""
        return self.here.has_database and not self.goes_back

    def use(self, source: Source) -> None:
        """Restore from a file; raise Refused if it is a copy of another root."""
        self.source = source
        self.goes_back = self.here.has_database
        own = self.here.root_id
        if source.root_id is None:
            # mam 0.1 gave roots no id. The path tells, if the copy says it.
            self.is_same = own is not None and source.state == self.context.paths.state
        else:
            self.is_same = source.root_id == own
        if not self.is_same:
            self._become_another(source)

    def _become_another(self, source: Source) -> None:
        context, name = self.context, source.root or "another root"
        if self.here.has_database and source.state == context.paths.state:
            raise Refused(
                f"{source.path} is a copy of the root that was here before this one",
                hint=f"move {context.paths.state} away, and repeat the command: the messages and jobs of the "
                "copy are parked then",
            )
        if self.here.has_database:
            raise Refused(
                f"{source.path} is a copy of {name}, and not of this root",
                hint=f"restore it there, or in a new directory; here {_COMMAND} FILE takes copies of "
                f"{context.paths.root}",
            )
        known = context.user_state.root_by_id(source.root_id)
        if known is not None and not known.is_lost and os.path.lexists(known.state):
            raise Refused(
                f"{source.path} is a copy of {known.root}, which is still there",
                hint=f"restore it there: mam restore FILE --workspace {known.root}",
            )
        self.root_id = os.urandom(8).hex()

    def use_newest(self, stack: ExitStack) -> None:
        """Restore from the newest copy that can be read; raise Refused if there is nothing to restore."""
        context, here = self.context, self.here
        if isinstance(here.damage, SchemaTooNew):
            raise here.damage
        if here.is_sound:
            raise Refused(
                "the state of this root is sound",
                hint="to go back in time, name a copy: mam restore FILE; mam backup --list shows them",
            )
        folder = context.user_state.folder
        listed = backup_file.copies(folder, here.root_id, context.paths.state)
        if not listed and here.root_id is None:
            listed = copies_by_path(folder, context.paths.state, self._is_known)
        self.source = open_newest(stack, [copy.path for copy in listed], folder, self.tried)
        # Before others have to wait: it takes time to unpack them.
        self.older = counted_copies(listed[len(self.tried) + 1 :][:_MOST_OLDER], folder)
        if self.source is not None and here.root_id is None and self.source.root_id is not None:
            # The user state was lost. The panes carry the id that the copy has.
            self.root_id = self.source.root_id
        if self.source is not None or here.has_database:
            return
        if self.tried:
            raise RegistryCorrupt(
                f"none of the {len(self.tried)} copies of this root can be read: {self.tried[0]['problem']}",
                hint=here.way_without_copy,
            )
        raise Refused(
            "there is nothing to restore here"
            if here.state == RootState.NEW
            else "there is no copy of this root",
            hint=here.way_without_copy,
        )

    def _is_known(self, root_id: str) -> bool:
        return self.context.user_state.root_by_id(root_id) is not None

    def keep_source(self) -> None:
        """See that the next automatic copies do not take the place of the copy."""
        if self.source is not None:
            folder, now = self.context.user_state.folder, self.context.now()
            self.source.path = backup_file.keep_longer(self.source.path, folder, now)

    def preview(self) -> Document:
        """Return what `run` would do; nothing is changed."""
        from mam.adapters.store import database, schema

        self.is_preview = True
        with backup_file.scratch(self.context.user_state.folder) as folder:
            path = os.path.join(folder, "state.db")
            target = database.connect(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True)
            try:
                self.fill(target)
            finally:
                target.close()
        return {**self.answer(None), "changed": False, "dry_run": True}

    def copy_files(self) -> None:
        """Take over the files of jobs and the settings of agents that are still there."""
        if os.path.lexists(self.replacement.former.state):
            self.replacement.copy_files()

    def _keep_places(self, transaction: Transaction) -> None:
        """Take over where the root has been: the rows of a moved root name its former folder."""
        if self.source is None or not self.is_same:
            return
        recorded = database.read_meta(self.source.connection, self.source.path, former_places.KEYS)
        for key, value in recorded.items():
            if transaction.meta(key) is None:
                transaction.set_meta(key, value)

    def fill(self, target: sqlite3.Connection) -> None:
        """Fill the new database with what is left, or with the copy, and put it to rest."""
        context, source = self.context, self.source
        self.tokens = {
            **(source.tokens if source is not None else {}),
            **(job_files.tokens(context.paths.jobs) if os.path.isdir(context.paths.jobs) else {}),
        }
        if self.salvages:
            path = source.database if source is not None else None
            self.report = salvage.salvage(context.paths.db, path, target)
            # The path of the private file says nothing to anybody.
            self.report.copy = source.path if source is not None else None
        with self.replacement.transaction(target, context.now()) as transaction:
            if not self.salvages:
                assert source is not None
                self.report = checked_copy.copy_rows(source.connection, target, self._job_facts(source))
            self.note_file(transaction, with_rows=not self.goes_back)
            transaction.set_meta(ID, self.root_id)
            self._keep_places(transaction)
            former = context.registry.peek(_incarnation, None) if self.here.is_sound else None
            of_copy = source.incarnation if source is not None else None
            self.done["incarnation"] = incarnation.renew(transaction, former, of_copy)
            self._continue_logs(transaction)
            self._put_to_rest(transaction)
            self.rows = transaction.rows()
            taken = self.report.taken
            self.done["older_copy"] = richer(self.older, taken.get("sessions", 0), taken.get("messages", 0))
            transaction.log(
                self.caller.name,
                "restore",
                None,
                _COMMAND,
                file=source.path if source is not None else None,
                kept=self.replacement.kept if self.replacement.keeps_something else None,
            )

    def _job_facts(self, source: Source) -> Document:
        if not self.is_same:
            return {**self.facts_of_this_root(), "broker": None}
        return {} if source.state in (None, self.context.paths.state) else self.facts_of_this_root()

    def _put_to_rest(self, transaction: Transaction) -> None:
        if not self.is_same:
            parked = park_everything(transaction, f"{_COMMAND} parked it")
            teams.end_all(transaction)
            self.open_jobs = [job.id for job in parked.jobs]
            self._give_tokens(self.open_jobs)
            self.done["messages"] = {"parked": [message.id for message in parked.messages]}
            self.done["jobs"] = {"parked": self.open_jobs, "going_on": []}
            self.done["jobs_not_in_copy"] = []
            self.done |= take_back.TakenBack().as_json()
            return
        context = self.context
        rows = transaction.rows()
        servers = {context.server_name(None), *(row["tmux_server"] for row in rows)}
        mark = root_mark(self.root_id, context.paths.root)
        panes = take_back.marked_panes(context, mark, servers)
        taken_back = take_back.take_back(context, self.caller, transaction, self.root_id, panes)
        self.done |= taken_back.as_json()
        self._plan_renames(transaction, panes)
        take_back.end_lost_teams(transaction, panes.values())
        self.done["messages"] = restored_messages.settle(
            context,
            transaction,
            self.root_id,
            {session_id: (marked.server, marked.pane.id) for session_id, marked in panes.items()},
            made_at=self.made_at,
            is_replaced=self.goes_back,
        )
        self._settle_jobs(transaction, panes)
        self.newer_jobs = end_jobs_since_copy(context, transaction)
        self.done["jobs_not_in_copy"] = self.newer_jobs

    def _plan_renames(self, transaction: Transaction, panes: dict[str, MarkedPane]) -> None:
        """Record for each session that mam renamed after the copy that its tmux session gets the former name.

        These are intents that nobody owns, so a crash does not lose them. Which name mam gave, and which a
        person gave to the tmux session alone, only the state tells that is replaced.
        """
        names: dict[str, str] = {}
        if self.here.is_sound:
            names = self.context.registry.peek(
                lambda former: {row["id"]: row["name"] for row in former.rows() if row.get("id")}, names
            )
        planned = [
            (row, marked.pane.session_name)
            for session_id, marked in panes.items()
            if (row := transaction.get(session_id)) is not None
            and row["name"] != marked.pane.session_name == names.get(session_id)
        ]
        number = 0
        while planned:
            # A name may become free only by another of these renames.
            held_names = {name for _, name in planned}
            chosen = next((one for one in planned if one[0]["name"] not in held_names), planned[0])
            planned.remove(chosen)
            row, name = chosen
            data = {"from": name, claims.NEW_NAME: row["name"]}
            at = transaction.now + number / 1000
            transaction.intents.put(Intent(row["id"], row["name"], "rename", owner={}, at=at, data=data))
            number += 1

    def _settle_jobs(self, transaction: Transaction, panes: dict[str, MarkedPane]) -> None:
        """Let the jobs go on that a live pane carries and that have not ended since; park the others."""
        going_on, parked = [], []
        for job in jobs.listed(transaction, only_open=True):
            if job.session_id in panes and runs_command(job.data) and not self.is_preview:
                # Its runner goes on, also if the job is parked, and needs a place for the end.
                exec_files.make_place(self.replacement.paths.jobs, job.id, job.attempt)
            end = end_since_copy(self.context, transaction, job, is_replaced=self.goes_back)
            if end is None and job.session_id in panes and job.id in self.tokens:
                self._go_on(transaction, job)
                going_on.append(job.id)
            else:
                reason = _PARKED if end is None else _PARKED_ENDED.format(end)
                ledger_writer.park(transaction, job, reason)
                self._park_task(transaction, job, reason)
                parked.append(job.id)
        self.open_jobs = sorted({*going_on, *jobs.unended_ids(transaction)})
        self._give_tokens(self.open_jobs)
        self.done["jobs"] = {"going_on": going_on, "parked": parked}

    def _park_task(self, transaction: Transaction, job: Job, reason: str) -> None:
        """Park the message with the task of a job, which goes out when the job is released."""
        settled = self.done["messages"]
        task = messages.find(transaction, job.data.get("message_id") or "")
        if task is not None and task.id in settled.get(MessageState.HELD, ()):
            park(transaction, task, reason)
            settled[MessageState.HELD].remove(task.id)
            settled.setdefault(MessageState.PARKED, []).append(task.id)

    def _go_on(self, transaction: Transaction, job: Job) -> None:
        """Tell a broker, which may still show what the job was before: its events have begun anew."""
        if job.data.get("broker") and job.status == JobStatus.RUNNING:
            detail = f"the state was restored from a copy of {stamp(self.made_at)}"
            token = self.tokens[job.id]
            ledger_writer.emit(transaction, job, events.PROGRESS, token, detail, data={"by": "mam"})

    def _give_tokens(self, job_ids: list[str]) -> None:
        """Write the tokens of jobs that have not ended; one whose token is lost gets a new one."""
        if self.is_preview:
            return
        folder = self.replacement.paths.jobs
        for job_id in job_ids:
            job_files.new_token(folder, job_id, self.tokens.get(job_id))
            # They may have entries that the database does not have any more. They are written anew.
            job_files.remove_shown(folder, job_id)

    def _continue_logs(self, transaction: Transaction) -> None:
        """Give new entries of jobs numbers that their audit logs do not have yet."""
        if self.is_preview or not self.is_same:
            return
        folders = (
            (job.id, job.data.get("logs_dir")) for job in jobs.listed(transaction) if job.data.get("logs_dir")
        )
        logs = (os.path.join(str(folder), job_id, "events.ndjson") for job_id, folder in folders)
        jobs.continue_after(transaction, max(map(job_files.last_number, logs), default=0))

    def record(self) -> None:
        """Make a new id known. The former id is known already, and by it the new folder at this path."""
        if not self.is_same or self.context.user_state.root_by_id(self.root_id) is None:
            super().record()

    def forget(self) -> None:
        """Take back what `record` did."""
        if not self.is_same:
            super().forget()

    def jobs_to_show(self) -> Iterable[str]:
        """Return the jobs whose files are missing, or may say what the database does not any more."""
        if self.here.has_database:
            return dict.fromkeys([*self.open_jobs, *self.newer_jobs, *lost_files(self.context)])
        nothing: list[Job] = []
        return [job.id for job in self.context.registry.peek(jobs.listed, nothing)]

    def run(self) -> Document:
        """Restore, and start a resident if it has anything to do."""
        document = super().run()
        recover_if_needed(self.context, self.caller)
        # The restore has ended the former one, which says nothing of the next one.
        self.context.user_state.note_good_resident(self.root_id)
        resident_start_and_lock.ensure_if_needed(self.context)
        return document

    def answer(self, kept: str | None) -> Document:
        """Return what came from where, and what was put to rest."""
        report, source = self.report, self.source
        counts = {table: count for table, count in report.taken.items() if count}
        counts["sessions"] = counts.get("sessions", 0) + self.rows_of_file
        return {
            "registry": self.context.paths.yaml,
            "changed": True,
            "dry_run": False,
            "source": "salvage" if self.salvages else "copy",
            "file": source.path if source is not None else None,
            "made_at": stamp(source.made_at) if source is not None else None,
            "original": None if self.is_same or source is None else source.root or "another root",
            "tried": self.tried,
            "kept": kept,
            "taken": counts,
            **self.done,
            "dropped": {
                "intents": report.dropped.get("intents", 0),
                "events": report.dropped.get("outbox", 0),
            },
            "left_out": report.left_out,
            "left_out_count": report.left_out_count,
            "files_left": self.replacement.aside,
            "salvage": {**report.as_json(), "summary": summary_of(report)}
            if isinstance(report, salvage.SalvageReport)
            else None,
        }


def _incarnation(transaction: Transaction) -> object:
    value: object = transaction.meta(incarnation.KEY)
    return value
