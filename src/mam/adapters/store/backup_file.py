"""Copies of a database, each in one file: the format, the names, and the folder in the user state.

A copy is a sound SQLite database with the tables of its source, without a log beside it. Its table `backup`
says of which root it is and when it was made, and may have the tokens of jobs. It has its name only once it
is complete and on the disk. All but the newest copies of a root are compressed with gzip.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from contextlib import ExitStack, contextmanager, suppress

from mam.adapters.store import database
from mam.adapters.system.atomic_file import discard, flush_folder, make_private_folder
from mam.core.backup_rotation import MIGRATION, RESTORED, Copy, run_and_time
from mam.core.errors import DiskFull, RegistryBusy
from mam.core.job_event import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, BinaryIO

    from mam.adapters.store.root_paths import RootPaths

BACKUPS, _SCRATCH = "backups", "scratch"
_BEFORE_MIGRATION = "before-migration-of-"
# With the time of the restore, in seconds.
_ROOT_ID = re.compile(r"[0-9a-f]{16}")
_RESTORED_AT = re.compile(rf"{RESTORED}-at-([0-9]{{1,11}})")
_PACKED, _UNFINISHED = ".gz", ".new"
# The time and, after the clock was put back, the run; the reason; whether it is compressed.
_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)(?:\.([0-9]{1,9}))?-([a-z][a-z0-9.-]*)\.db(\.gz)?")
_MAGIC = b"\x1f\x8b"
# Measured on a database of 23 MB: level 6 makes a third of it at 36 MB/s; LZMA a quarter at 2 MB/s.
_LEVEL = 6
# A compressed file that somebody hands over may claim to be of any size.
_LARGEST, _PIECE = 8 << 30, 1 << 20
_LONGEST_TOKEN = 4096
# The year 9999 begins.
_LAST_TIME = 253370764800.0
# An automatic copy leaves so many bytes of the disk free.
_ROOM = 16 << 20
_LOCK, _PATIENCE = "queue", 10.0
# A process that writes a file for so long is not there any more.
_STRAY_SECONDS = 3600.0
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What a copy says about itself in one text each.
_TEXTS = ("reason", "registry", "root", "state", "version")


class BackupFacts:
    """What a copy says about itself. `tokens` has the tokens of jobs by id; None if they were left out."""

    __slots__ = ("made_at", "reason", "registry", "root", "root_id", "state", "tokens", "version")

    def __init__(
        self,
        *,
        root_id: str | None,
        root: str,
        registry: str,
        state: str,
        made_at: float,
        version: str,
        reason: str,
        tokens: Mapping[str, str] | None = None,
    ) -> None:
        """`registry` and `state` are the paths of the YAML file and of the folder of the state."""
        self.root_id = root_id
        self.root = root
        self.registry = registry
        self.state = state
        self.made_at = made_at
        self.version = version
        self.reason = reason
        self.tokens = tokens

    def as_json(self) -> dict[str, Any]:
        """Return the facts as they are recorded."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name != "tokens"}
        return facts if self.tokens is None else {**facts, "tokens": dict(self.tokens)}


def facts_of(
    paths: RootPaths, root_id: str | None, now: float, reason: str, *, with_tokens: bool = True
) -> BackupFacts:
    """Return what a copy of a root's state says that is made now."""
    from mam.adapters.store.files import job_files
    from mam.core.mam_version import VERSION

    return BackupFacts(
        root_id=root_id,
        root=paths.root,
        registry=paths.yaml,
        state=paths.state,
        made_at=now,
        version=VERSION,
        reason=reason,
        tokens=job_files.tokens(paths.jobs) if with_tokens else None,
    )


def folder_of(user_folder: str, root_id: str | None, state: str) -> str:
    """Return the folder of the copies of a root."""
    return os.path.join(user_folder, BACKUPS, name_of_root(root_id, state))


def name_of_root(root_id: str | None, state: str) -> str:
    """Return the id of a root; one that has none yet is named by the path of its state."""
    if root_id is not None:
        return root_id
    import hashlib

    return f"path-{hashlib.sha256(os.fsencode(state)).hexdigest()[:16]}"


def copies(user_folder: str, root_id: str | None, state: str | None = None) -> list[Copy]:
    """Return the copies of a root, the newest first.

    With `state`, also those that were made before the root had an id.
    """
    folders = {folder_of(user_folder, root_id, state or "")} if root_id or state else set()
    if state:
        folders.add(folder_of(user_folder, None, state))
    listed = [copy for folder in folders for copy in copies_in(folder)]
    return sorted(listed, key=lambda copy: copy.order, reverse=True)


def root_ids(user_folder: str) -> list[str]:
    """Return the ids of the roots that have copies."""
    folder = os.path.join(user_folder, BACKUPS)
    with database.errors(folder):
        try:
            return sorted(name for name in os.listdir(folder) if _ROOT_ID.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []


def copies_in(folder: str) -> list[Copy]:
    """Return the copies in a folder, in no order."""
    with database.errors(folder):
        try:
            entries = {entry.name: entry for entry in os.scandir(folder)}
        except (FileNotFoundError, NotADirectoryError):
            return []
        listed = []
        for name, entry in entries.items():
            match = _NAME.fullmatch(name)
            # A crash may leave a file beside the compressed one that takes its place.
            if match is None or (match[4] and name.removesuffix(_PACKED) in entries):
                continue
            moment = _seconds(match[1])
            if moment is None:
                continue
            with suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(facts.st_mode):
                    listed.append(_copy_named(entry.path, match, moment, facts))
        return listed


def _copy_named(path: str, match: re.Match[str], moment: float, facts: os.stat_result) -> Copy:
    reason, since = match[3], None
    restored = _RESTORED_AT.fullmatch(reason)
    if restored is not None:
        reason, since = RESTORED, float(restored[1])
    elif reason.startswith(_BEFORE_MIGRATION):
        reason = MIGRATION
    return Copy(
        path,
        moment,
        reason,
        facts.st_size,
        is_compressed=bool(match[4]),
        since=since,
        run=int(match[2] or 0),
        written_at=facts.st_mtime,
    )


def _seconds(moment: str) -> float | None:
    """Return the time that a name says; None if it says none, or one after which no name has room."""
    import calendar
    import time

    try:
        seconds = float(calendar.timegm(time.strptime(moment, "%Y%m%dT%H%M%SZ")))
    except ValueError:
        return None
    return seconds if seconds < _LAST_TIME else None


def new_path(folder: str, reason: str, now: float, *, schema_number: str = "", prefix: str = "") -> str:
    """Return a path for a new copy in a folder. The name says the reason, and the schema before a migration.

    The name also gives the order. It has the time of the clock, and after the clock was put back a number:
    so one copy from the future does not make all that follow it copies of that time.
    """
    from time import gmtime, strftime

    newest = max(copies_in(folder), key=lambda copy: copy.order, default=None)
    run, at = run_and_time(newest, now)
    moment = strftime("%Y%m%dT%H%M%SZ", gmtime(at)) + (f".{run}" if run else "")
    word = f"{_BEFORE_MIGRATION}{schema_number}" if reason == MIGRATION else reason
    return os.path.join(folder, f"{prefix}{moment}-{word}.db")


def write(
    connection: sqlite3.Connection,
    path: str,
    facts: BackupFacts | None,
    *,
    is_checked: bool = True,
    is_compact: bool = False,
) -> None:
    """Copy a database as it is into a file, flushed to the disk; a file of that name is replaced.

    `facts` is None for a database that is not the state of a root. `is_checked` refuses a damaged source,
    so that no damaged copy takes the place of a sound one. `is_compact` leaves out the free space, which
    may hold what was deleted. Raises a MamError if the copy cannot be made, and leaves nothing then.
    """
    unfinished = _unfinished(path)
    with database.errors(path):
        make_private_folder(os.path.dirname(path))
        handle = os.open(unfinished, _FLAGS, 0o600)
        with _finished_or_removed(unfinished, path):
            try:
                # The log of the source is part of the copy already; a copy is one file.
                _fill(connection, unfinished, facts, is_checked=is_checked, is_compact=is_compact)
                os.fsync(handle)
            finally:
                os.close(handle)


def _unfinished(path: str) -> str:
    """Return a name for a copy that is being made. In a folder such as /tmp others may make files as well."""
    return f"{path}.{os.urandom(8).hex()}{_UNFINISHED}"


@contextmanager
def _finished_or_removed(unfinished: str, path: str) -> Iterator[None]:
    """Give an unfinished file its name if the block ends well; otherwise remove it."""
    try:
        yield
        os.replace(unfinished, path)
    except BaseException:
        _discard_database(unfinished)
        raise
    flush_folder(os.path.dirname(path))


def _fill(
    connection: sqlite3.Connection,
    target: str,
    facts: BackupFacts | None,
    *,
    is_checked: bool,
    is_compact: bool,
) -> None:
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        # The file is flushed once it is complete.
        copy.execute("PRAGMA synchronous=OFF")
        if is_checked:
            _check(copy, source=connection.execute("PRAGMA database_list").fetchone()[2])
        if facts is not None:
            _record(copy, facts)
        if is_compact:
            copy.execute("VACUUM")
    finally:
        copy.close()


def _check(copy: sqlite3.Connection, source: str) -> None:
    """Refuse a damaged copy: the database that it was made of is damaged as well."""
    with database.errors(source):
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise database.damaged(source, verdict.splitlines()[-1])


def _record(copy: sqlite3.Connection, facts: BackupFacts) -> None:
    copy.execute("BEGIN")
    copy.execute("CREATE TABLE IF NOT EXISTS backup(key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    copy.execute("DELETE FROM backup")
    rows = [(key, json.dumps(value)) for key, value in facts.as_json().items()]
    copy.executemany("INSERT INTO backup VALUES(?, ?)", rows)
    if facts.root_id is not None:
        # A root without an id is about to get this one: a copy that is put back by hand is no foreign root.
        copy.execute("INSERT OR IGNORE INTO meta VALUES(?, ?)", (database.ROOT_ID, json.dumps(facts.root_id)))
    copy.execute("COMMIT")


def read_facts(connection: sqlite3.Connection, path: str) -> BackupFacts | None:
    """Return what a copy says about itself; None if it says nothing, as copies of an older mam.

    Raises RegistryCorrupt if it says what no mam has written: anybody may hand over a file.
    """
    with database.errors(path):
        if not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type='table' AND name='backup'"
        ).fetchone():
            return None
        values = _values(connection, path)
    texts = {name: value for name, value in values.items() if name in _TEXTS and isinstance(value, str)}
    root_id, tokens, made_at = (values.get(name) for name in ("root_id", "tokens", "made_at"))
    if not (
        len(texts) == len(_TEXTS)
        and (root_id is None or isinstance(root_id, str))
        and isinstance(made_at, float | int)
        and abs(made_at) < _LAST_TIME
        and (tokens is None or _are_tokens(tokens))
    ):
        raise database.damaged(path, "its table 'backup' is not readable")
    return BackupFacts(root_id=root_id, made_at=float(made_at), tokens=tokens, **texts)


def _values(connection: sqlite3.Connection, path: str) -> dict[str, Any]:
    values = {}
    for row in connection.execute("SELECT * FROM backup"):
        if len(row) != 2 or not isinstance(row[1], str):
            raise database.damaged(path, "its table 'backup' is not readable")
        values[row[0]] = json.loads(row[1])
    return values


def _are_tokens(document: object) -> bool:
    return isinstance(document, dict) and all(
        is_job_id(job_id)
        and isinstance(token, str)
        and 0 < len(token) <= _LONGEST_TOKEN
        and token.isascii()
        and token.isprintable()
        for job_id, token in document.items()
    )


def keep_longer(path: str, user_folder: str, now: float) -> str:
    """Give a copy in the user state the reason `restored`, from now on; return its path.

    So the copies that follow do not take its place. One from before a migration stays longer anyway, and
    any other file is not mam's to rename.
    """
    folder, name = os.path.split(path)
    match = _NAME.fullmatch(name)
    home = os.path.realpath(os.path.join(user_folder, BACKUPS))
    if (
        match is None
        or match[3].startswith(_BEFORE_MIGRATION)
        or os.path.dirname(os.path.realpath(folder)) != home
    ):
        return path
    with only_one(folder), database.errors(path):
        # It may have been compressed, or dropped, since somebody saw it.
        moment = name[: match.start(3) - 1]
        for ending in dict.fromkeys((match[4] or "", _PACKED)):
            former = os.path.join(folder, f"{moment}-{match[3]}.db{ending}")
            if os.path.lexists(former):
                renamed = os.path.join(folder, f"{moment}-{RESTORED}-at-{int(now)}.db{ending}")
                os.rename(former, renamed)
                flush_folder(folder)
                return renamed
    return path


def present_path(path: str) -> str:
    """Return where a copy is now: it may have been compressed or kept longer since somebody saw its name."""
    folder, name = os.path.split(path)
    match = _NAME.fullmatch(name)
    if match is None or os.path.lexists(path):
        return path
    renamed = (
        copy.path for copy in copies_in(folder) if os.path.basename(copy.path).startswith(f"{match[1]}-")
    )
    return next(renamed, path)


@contextmanager
def scratch(user_folder: str) -> Iterator[str]:
    """Give a private folder in the user state until the block ends: a copy may hold secrets."""
    import shutil
    import tempfile

    remove_stray_scratch(user_folder)
    parent = os.path.join(user_folder, _SCRATCH)
    with database.errors(parent):
        os.makedirs(parent, mode=0o700, exist_ok=True)
        folder = tempfile.mkdtemp(suffix=_UNFINISHED, dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_stray_scratch(user_folder: str) -> None:
    """Remove the private folders that dead processes left."""
    parent = os.path.join(user_folder, _SCRATCH)
    with database.errors(parent), suppress(FileNotFoundError):
        _remove_strays(parent)
    _remove_stray_copies()


def _remove_stray_copies() -> None:
    """Remove what killed processes of this user left in the folder of all users: copies that were read."""
    import shutil
    import tempfile
    import time

    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(database.COPY_PREFIX):
                continue
            with suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
                if is_own and time.time() - facts.st_mtime > _STRAY_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)


@contextmanager
def open_copy(path: str, within: str | None = None) -> Iterator[str]:
    """Give the path of the database of a copy. A compressed one is unpacked into a private folder first.

    That folder lies `within` another one. The path is for `database.connect_to_copy` and for `salvage`: do
    not open it for writing.
    """
    import shutil
    import tempfile

    with _opened(path) as (file, is_packed):
        if not is_packed:
            yield path
            return
        folder = tempfile.mkdtemp(prefix=database.COPY_PREFIX, suffix=_UNFINISHED, dir=within)
        try:
            name = os.path.join(folder, "copy.db")
            with database.errors(folder):
                # Whoever opens it copies it once more.
                _unpack(file, name, path, most=_free(folder) // 2)
            yield name
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(path: str) -> Iterator[tuple[BinaryIO, bool]]:
    """Open a copy; tell whether it is compressed. A link, a pipe and all else that is no file is refused."""
    with database.errors(path):
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise database.damaged(path, "it is not a regular file")
        with database.errors(path):
            is_packed = file.read(len(_MAGIC)) == _MAGIC
            file.seek(0)
        yield file, is_packed


def _unpack(file: BinaryIO, name: str, path: str, *, most: int) -> None:
    """Unpack a file into a new private one; raise DiskFull if it has more than `most` bytes."""
    import gzip
    import zlib

    length = 0
    with gzip.GzipFile(fileobj=file) as source, os.fdopen(os.open(name, _FLAGS, 0o600), "wb") as target:
        try:
            while piece := source.read(_PIECE):
                length += len(piece)
                if length > _LARGEST:
                    raise database.damaged(path, "it is too large to be unpacked")
                if length > most:
                    raise DiskFull(
                        f"there is too little space in {os.path.dirname(name)} to unpack {path}",
                        hint="free some space, and repeat the command",
                    )
                target.write(piece)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise database.damaged(path, f"it cannot be unpacked ({error})") from error


def compress(path: str) -> str:
    """Replace a copy by a compressed one; return the path of that."""
    packed = path + _PACKED
    with database.errors(packed):
        _pack(path, packed)
        discard(path)
    return packed


def _pack(path: str, packed: str) -> None:
    import gzip
    import shutil

    unfinished = _unfinished(packed)
    with _opened(path) as (source, _is_packed):
        handle = os.open(unfinished, _FLAGS, 0o600)
        with _finished_or_removed(unfinished, packed), os.fdopen(handle, "wb") as file:
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_LEVEL, filename="") as target:
                shutil.copyfileobj(source, target, _PIECE)
            file.flush()
            os.fsync(file.fileno())


def edit(copy: Copy, work: Callable[[sqlite3.Connection], None]) -> bool:
    """Change the content of a copy; return False if nothing was to change.

    A new file takes the place of the copy. It has no free space: what was deleted is not left there.
    """
    # In the folder of the copies: what a crash leaves there is removed later.
    unfinished = _unfinished(copy.path.removesuffix(_PACKED))
    with database.errors(copy.path), ExitStack() as stack:
        # The edited file is removed, unless it took the place of the copy.
        stack.callback(_discard_database, unfinished)
        with _opened(copy.path) as (file, is_packed):
            if is_packed:
                _unpack(file, unfinished, copy.path, most=_free(os.path.dirname(unfinished)))
            else:
                database.copy_regular(copy.path, unfinished, is_required=True, largest=_LARGEST)
        try:
            is_changed = _changed(unfinished, work)
        except (AttributeError, KeyError, TypeError) as error:
            raise database.damaged(copy.path, "it has a record that no mam has written") from error
        if not is_changed:
            return False
        if copy.is_compressed:
            _pack(unfinished, copy.path)
        else:
            with _finished_or_removed(unfinished, copy.path):
                _flush(unfinished)
    return True


def _changed(path: str, work: Callable[[sqlite3.Connection], None]) -> bool:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # A crash leaves a file that nobody will read.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        before = connection.total_changes
        connection.execute("BEGIN")
        work(connection)
        connection.execute("COMMIT")
        if connection.total_changes == before:
            return False
        connection.execute("VACUUM")
        return True
    finally:
        connection.close()


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _discard_database(path: str) -> None:
    for name in (path, f"{path}-journal"):
        discard(name)


def remove(copy: Copy) -> None:
    """Remove a copy, also what a crash left of its compression."""
    with database.errors(copy.path):
        discard(copy.path)
        if not copy.is_compressed:
            discard(copy.path + _PACKED)


def take_over(folder: str, former: str) -> None:
    """Move the copies that were made before the root had an id to the others."""
    with database.errors(folder):
        for copy in copies_in(former):
            make_private_folder(folder)
            os.rename(copy.path, os.path.join(folder, os.path.basename(copy.path)))
        with suppress(OSError):
            # It does not exist, or something else is in it.
            os.rmdir(former)


def check_room(folder: str, size: int) -> None:
    """Raise DiskFull if a copy of that size, and its compression, would leave too little for the state."""
    needed = 2 * size + _ROOM
    with database.errors(folder):
        free = _free(folder)
    if free < needed:
        raise DiskFull(
            f"there is too little space for a copy in {folder}: it needs {needed >> 20} MiB",
            hint="free some space; what is recorded is not affected",
        )


def _free(folder: str) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


@contextmanager
def only_one(folder: str) -> Iterator[None]:
    """Let one process at a time add, change and remove copies in a folder; remove what a dead one left."""
    from mam.adapters.store import fifo_lock

    with database.errors(folder):
        make_private_folder(folder)
        try:
            with fifo_lock.hold(os.path.join(folder, _LOCK), _PATIENCE):
                _remove_strays(folder)
                yield
        except fifo_lock.QueueStuck:
            raise RegistryBusy(
                f"another process works on the copies in {folder}", hint="repeat the command"
            ) from None


def _remove_strays(folder: str) -> None:
    import shutil
    import time

    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            age = time.time() - entry.stat(follow_symlinks=False).st_mtime
            if _UNFINISHED not in entry.name or age <= _STRAY_SECONDS:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
