"""The resident task that removes what has ended long ago: log entries, jobs, messages and their files.

It works in small steps, so that no other writer waits long, and it says nothing. What is open, held, parked
or running is never removed, and nothing that a person wrote.
"""

from __future__ import annotations

import calendar
import os
import re
import stat
import time
from functools import partial

from mam.adapters.agents import delete_files
from mam.adapters.store import backup_file
from mam.adapters.store.files import message_files, script_file
from mam.adapters.store.tables import drifts, jobs, messages, read_log, set_aside
from mam.app.context.settings import load_user_settings
from mam.app.jobs.removal import is_removable, remove
from mam.app.jobs.write_job_files import audit_root
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.settings import Settings

# Seconds until the first look, between two, and until the rest of an unfinished one is done.
_FIRST, _BETWEEN, _SOON = 60.0, 3600.0, 5.0
# One step removes at most so much.
_ENTRIES, _JOBS, _MESSAGES = 500, 10, 200
MOST_LOG_ENTRIES, MOST_JOB_BYTES, MOST_MESSAGE_BYTES = 200_000, 1 << 30, 64 << 20
# A job that ended just now is kept in any case: somebody may wait for its end.
_YOUNG_SECONDS = 3600.0
# The file shrinks if so much of it is free. What is used is copied meanwhile, and nobody can write.
_LEAST_FREE, _MOST_USED = 16 << 20, 64 << 20
_KEPT_BESIDE = re.compile(
    r"\.kept-([0-9a-f]{16})-([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}Z)-[0-9a-f]{4}-(?:state|unfinished)"
)
_KEPT = re.compile(r"([0-9a-f]{16})-.+")
_RESIDENT_LOG = re.compile(r"([0-9a-f]{16}|path-[0-9a-f]{16})\.log(?:\.1)?")
_MAIL_FILE = re.compile(r"(m_[A-Za-z0-9-]+)\.md")


class RetentionTask:
    """A resident task: at most once an hour it removes what the settings do not keep."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._next = time.monotonic() + _FIRST

    def due(self) -> float:
        """Return the time of the next tick."""
        return self._next

    def handles(self) -> tuple[int, ...]:
        """Return no handles to wait for."""
        return ()

    def is_needed(self) -> bool:
        """Return False: the next resident removes it as well."""
        return False

    def tick(self) -> str:
        """Remove some of what is old, if it is time for that."""
        if time.monotonic() < self._next:
            return ""
        self._next = time.monotonic() + _BETWEEN
        if remove_some(self.context):
            self._next = time.monotonic() + _SOON
        return ""


def remove_some(context: Context) -> bool:
    """Remove a part of what is no longer kept; return True if more is left to remove."""
    if not context.paths.exists() or not context.root.verdict().is_ours:
        return False
    settings, now = context.settings(), context.now()
    is_more = False
    if settings.keep_log is not None:
        is_more |= _remove_log(context, now - settings.keep_log)
    if settings.keep_jobs is not None:
        is_more |= _remove_jobs(context, now - settings.keep_jobs)
        _remove_states_kept_beside(context, now - settings.keep_jobs)
    if settings.keep_messages is not None:
        is_more |= _remove_messages(context, now - settings.keep_messages)
        _remove_mail(context, now - settings.keep_messages)
    roots = _Roots(context, now)
    _remove_kept_states(context, roots)
    _remove_copies_of_lost_roots(context, roots)
    _remove_traces_of_residents(context, roots)
    if not is_more:
        _remove_stray_scripts(context)
        context.registry.shrink(_LEAST_FREE, _MOST_USED)
    return is_more


class _Roots:
    """Says how long the user state keeps what belongs to a root."""

    def __init__(self, context: Context, now: float) -> None:
        self._context = context
        # A mam.toml speaks for its own root only.
        self._before_own = _before(context.settings(), now)
        self._before_lost = _before(load_user_settings(context.settings_environ), now)

    def before(self, root_id: str) -> float | None:
        """Return the time before which what belongs to a root is removed; None if it stays.

        Another root that is still there has a resident of its own for that.
        """
        if root_id == self._context.root_id:
            return self._before_own
        return self.before_lost(root_id)

    def before_lost(self, root_id: str) -> float | None:
        """Return the same for a root that is gone; None for any other."""
        known = self._context.user_state.root_by_id(root_id)
        is_there = known is not None and os.path.lexists(known.state)
        return None if is_there or root_id == self._context.root_id else self._before_lost


def _before(settings: Settings, now: float) -> float | None:
    return None if settings.keep_jobs is None else now - settings.keep_jobs


def _remove_log(context: Context, before: float) -> bool:
    def work(transaction: Transaction) -> bool:
        drifts.remove_ended(transaction, before)
        set_aside.remove_old(transaction, before)
        return read_log.remove_old(transaction, before, MOST_LOG_ENTRIES, _ENTRIES)

    return context.registry.note(work)


def _remove_jobs(context: Context, before: float) -> bool:
    none: list[Job] = []
    ended = context.registry.peek(partial(jobs.ended_before, at=context.now() - _YOUNG_SECONDS), none)
    removable = [job for job in ended if is_removable(context, job)]
    sizes = {job.id: _bytes_of(context, job) for job in removable}
    over = sum(sizes.values()) - MOST_JOB_BYTES
    chosen: list[Job] = []
    for job in removable:
        if job.updated_at < before or over > 0:
            chosen.append(job)
            over -= sizes[job.id]
    removed = 0
    for job in chosen:
        if removed == _JOBS:
            return True
        try:
            removed += remove(context, job.id)
        except MamError:
            # A folder that cannot be deleted stays, and so does its job; the others go on.
            continue
    return False


def _bytes_of(context: Context, job: Job) -> int:
    """Return about how much a job holds in its files and in the database."""
    folder = os.path.join(job.data.get("logs_dir") or audit_root(context), job.id)
    log = os.path.join(context.paths.jobs, f"{job.id}.events.log")
    entries = context.registry.peek(partial(jobs.bytes_of_entries, job_id=job.id), 0)
    return folder_bytes(folder) + file_bytes(log) + entries


def file_bytes(path: str) -> int:
    """Return the size of a regular file; 0 for anything else."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def folder_bytes(folder: str) -> int:
    """Return the size of the files in a folder and below it; no link is followed."""
    return sum(
        file_bytes(os.path.join(path, name)) for path, _folders, names in os.walk(folder) for name in names
    )


def _remove_messages(context: Context, before: float) -> bool:
    none: list[tuple[str, float, int]] = []
    chosen: list[str] = []
    kept = 0
    for message_id, changed_at, length in context.registry.peek(messages.settled, none):
        kept += length
        if changed_at < before or kept > MOST_MESSAGE_BYTES:
            chosen.append(message_id)
    some = chosen[-_MESSAGES:]
    if some:
        context.registry.note(lambda transaction: messages.remove_settled(transaction, some))
    return len(chosen) > len(some)


def _remove_mail(context: Context, before: float) -> None:
    """Remove the old files of messages in the workspaces of sessions, except those of open messages."""
    nothing: set[str] = set()
    unended = context.registry.peek(messages.unended_ids, nothing)
    for workspace in {row["workspace"] for row in context.registry.view_to_show().rows}:
        with message_files.opened(workspace) as folder:
            if folder is None:
                continue
            for name in os.listdir(folder):
                match = _MAIL_FILE.fullmatch(name)
                if match and match[1] not in unended:
                    message_files.remove_file(folder, name, before=before)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _remove_kept_states(context: Context, roots: _Roots) -> None:
    """Remove the states that `init` and `restore` kept aside long ago. The name begins with the root's id."""
    folder = os.path.join(context.user_state.folder, "kept")
    for name in _names_in(folder):
        match = _KEPT.fullmatch(name)
        _remove_if_old(folder, name, roots.before(match[1]) if match else None)


def _remove_if_old(folder: str, name: str, before: float | None) -> None:
    """Remove an entry that was changed last before a time; without a time it stays."""
    try:
        if before is not None and os.lstat(os.path.join(folder, name)).st_mtime < before:
            delete_files.remove(folder, name)
    except (OSError, MamError):
        # It stays, and a person may delete it.
        return


def _remove_states_kept_beside(context: Context, before: float) -> None:
    """Remove what lies beside the state, because the user state is on another file system.

    The name says since when: a rename leaves the times of a folder as they are.
    """
    folder, own = os.path.split(context.paths.state)
    for name in _names_in(folder):
        match = _KEPT_BESIDE.fullmatch(name.removeprefix(own)) if name.startswith(own) else None
        if match is None or match[1] != context.root_id:
            continue
        try:
            if calendar.timegm(time.strptime(match[2], "%Y-%m-%dT%H%M%SZ")) < before:
                delete_files.remove(folder, name)
        except (ValueError, MamError):
            # It stays, and a person may delete it.
            continue


def _remove_copies_of_lost_roots(context: Context, roots: _Roots) -> None:
    """Remove the copies of roots that are gone, once the newest of them is old."""
    folder = os.path.join(context.user_state.folder, backup_file.BACKUPS)
    for name in _names_in(folder):
        before = roots.before_lost(name)
        if before is None:
            continue
        try:
            copies = backup_file.copies_in(os.path.join(folder, name))
            if all(copy.made_at < before for copy in copies):
                delete_files.remove(folder, name)
        except MamError:
            # They stay, and a person may delete them.
            continue


def _remove_traces_of_residents(context: Context, roots: _Roots) -> None:
    """Remove the logs and the last starts of residents of roots that are gone."""
    folder = context.user_state.resident_logs
    for name in _names_in(folder):
        match = _RESIDENT_LOG.fullmatch(name)
        _remove_if_old(folder, name, roots.before_lost(match[1]) if match else None)
    for root_id, at in context.user_state.last_resident_starts().items():
        before = roots.before_lost(root_id)
        if before is not None and at < before:
            context.user_state.note_good_resident(root_id)


def _remove_stray_scripts(context: Context) -> None:
    """Delete the copies of scripts whose jobs do not exist any more."""
    root_id = context.root_id
    if root_id is None:
        return
    for job_id in context.user_state.script_jobs(root_id):
        if context.registry.peek(partial(jobs.find, job_id=job_id), None) is None:
            context.user_state.forget_script(root_id, job_id)
            script_file.discard(context.user_state.folder, (root_id, job_id))
