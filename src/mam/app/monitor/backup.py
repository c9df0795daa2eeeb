"""Makes copies of a root's state, in the user state or in a file that a person names, and lists them."""

from __future__ import annotations

import os

from mam.adapters.store import backup_file, database
from mam.adapters.store.files import job_files
from mam.core import backup_rotation
from mam.core.backup_rotation import MANUAL, Copy
from mam.core.errors import InvalidPath, NoRegistry, RegistryCorrupt, SchemaTooNew
from mam.core.root_state import RootState
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from mam.app.context.context import Context

    Document = dict[str, Any]


def backup(context: Context) -> Document:
    """Copy the state now, with the tokens of jobs, beside the automatic copies.

    Returns the copy as `copies` lists it, with `has_secrets`: whether there are tokens.
    """
    has_tokens = bool(job_files.tokens(context.paths.jobs))
    return {**_as_json(context, make_copy(context, MANUAL)), "has_secrets": has_tokens}


def backup_to(context: Context, file: str, *, with_secrets: bool = False, force: bool = False) -> Document:
    """Copy the state into a file, named from the caller's directory; `force` replaces a file.

    It has the tokens of jobs only `with_secrets`, and no free space, in which deleted text may be left.
    Returns the same as `backup`.
    """
    source, path = _source(context), _checked(context, file, force=force)
    now = context.now()
    facts = backup_file.facts_of(context.paths, context.root_id, now, MANUAL, with_tokens=with_secrets)
    backup_file.write(source, path, facts, is_compact=True)
    with database.errors(path):
        copy = Copy(path, now, MANUAL, os.stat(path).st_size, is_compressed=False)
    return {**_as_json(context, copy), "has_secrets": with_secrets}


def _checked(context: Context, file: str, *, force: bool) -> str:
    """Return the path of a file that a copy may be written to."""
    path = os.path.join(context.workspace, os.path.expanduser(file))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise InvalidPath(f"{folder} is not a directory", hint="name a file in a directory that exists")
    path = os.path.join(os.path.realpath(folder), os.path.basename(path))
    state = os.path.realpath(context.paths.state)
    if path == state or path.startswith(f"{state}/"):
        raise InvalidPath(
            f"{path} lies in the state that is copied", hint="name a file outside it, on another disk at best"
        )
    if os.path.isdir(path):
        example = os.path.join(path, "mam.db")
        raise InvalidPath(f"{path} is a directory", hint=f"name a file in it, such as {example}")
    if os.path.lexists(path) and not (force and os.path.isfile(path) and not os.path.islink(path)):
        hint = "name another file" if force else "name another file, or repeat with --force"
        raise InvalidPath(f"{path} exists already{', and is not a regular file' * force}", hint=hint)
    return path


def copies(context: Context) -> list[Document]:
    """Return the copies in the user state, the newest first.

    Each is `{path, made_at, age, size, reason, compressed}`, with the age in seconds.
    """
    return [_as_json(context, copy) for copy in listed(context)]


def listed(context: Context) -> list[Copy]:
    """Return the copies of this root, the newest first."""
    return backup_file.copies(context.user_state.folder, _root_id(context), context.paths.state)


def _root_id(context: Context) -> str | None:
    """Return the id of the root; the recorded one where its state is missing, or cannot be read."""
    state = context.paths.state
    known = context.user_state.root_at(state)
    try:
        verdict = context.root.verdict()
    except (RegistryCorrupt, SchemaTooNew):
        # Another folder at this path would be another root.
        if known is None or known.inode != os.stat(state).st_ino:
            raise
        return known.id
    return known.id if verdict.state == RootState.MISSING and known is not None else verdict.id


def _as_json(context: Context, copy: Copy) -> Document:
    return {
        "path": copy.path,
        "made_at": stamp(copy.made_at),
        "age": max(0.0, context.now() - copy.made_at),
        "size": copy.size,
        "reason": copy.reason,
        "compressed": copy.is_compressed,
    }


def make_copy(context: Context, reason: str) -> Copy:
    """Copy the state into the user state now, compress what was the newest copy, and drop what is too old.

    Raises a MamError if that is not possible; the state and the other copies are as they were then.
    """
    source, root_id = _source(context), context.root_id
    folder = folder_of(context)
    backup_file.remove_stray_scratch(context.user_state.folder)
    with backup_file.only_one(folder):
        if root_id is not None:
            backup_file.take_over(
                folder, backup_file.folder_of(context.user_state.folder, None, context.paths.state)
            )
        with database.errors(context.paths.db):
            backup_file.check_room(folder, os.stat(context.paths.db).st_size)
        now = context.now()
        path = backup_file.new_path(folder, reason, now)
        backup_file.write(source, path, backup_file.facts_of(context.paths, root_id, now, reason))
        _rotate(folder, now)
        # Before another process adds a copy: it compresses this one, which has another name then.
        return next(copy for copy in backup_file.copies_in(folder) if copy.path == path)


def folder_of(context: Context) -> str:
    """Return the folder of the copies of this root."""
    return backup_file.folder_of(context.user_state.folder, _root_id(context), context.paths.state)


def _source(context: Context) -> sqlite3.Connection:
    """Return a connection to the database; refuse a root that is not this user's."""
    context.root.check()
    source = context.registry.reader()
    if source is None:
        raise NoRegistry(f"{context.paths.root} has no state yet", hint="mam init makes it a root")
    return source


def _rotate(folder: str, now: float) -> None:
    """Compress all copies but the newest, and remove those that are too old, or too much together."""
    kept = backup_rotation.kept(backup_file.copies_in(folder), now)
    _remove_others(folder, kept)
    for copy in kept[1:]:
        if not copy.is_compressed:
            backup_file.compress(copy.path)
    most = backup_rotation.most_bytes(kept[0].size)
    _remove_others(folder, backup_rotation.kept(backup_file.copies_in(folder), now, most))


def _remove_others(folder: str, kept: list[Copy]) -> None:
    paths = {copy.path for copy in kept}
    for copy in backup_file.copies_in(folder):
        if copy.path not in paths:
            backup_file.remove(copy)
