"""Tells of settings that are not valid, also in verbs that need none of them.

To read a settings file takes some milliseconds. So the database keeps what the files looked like when a verb
found them valid, and whoever finds the same again does not read them.
"""

from __future__ import annotations

import os

import mam
from mam.adapters.store import database
from mam.app.context.settings import files, load_settings
from mam.core.errors import InvalidSettings, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

    # The time of the last change, the size and the inode of each file; None for one that does not exist.
    Look = list[list[int] | None]

_KEY = "valid_settings"


def warn_of_settings(context: Context, *, is_changing: bool = False) -> None:
    """Warn once if the settings are not valid; a verb that changes something records valid ones."""
    look = _look(context)
    if not any(look):
        return
    try:
        if _record_of(look) == _recorded(context):
            return
        load_settings(context.paths.root, context.settings_environ, lambda _text: None)
        if is_changing and os.path.exists(context.paths.db):
            context.registry.note(lambda transaction: transaction.set_meta(_KEY, _record_of(look)))
    except InvalidSettings as error:
        context.warn_once(
            f"{error.message}; until that is corrected mam starts no agent and no resident, and a resident "
            "that runs goes on with the settings that it began with"
        )
    except MamError:
        # Whoever works on the database says what is wrong with it.
        return


def _look(context: Context) -> Look:
    look: Look = []
    for path in files(context.paths.root, context.settings_environ):
        try:
            facts = os.stat(path)
        except OSError:
            look.append(None)
        else:
            look.append([facts.st_mtime_ns, facts.st_size, facts.st_ino])
    return look


def _record_of(look: Look) -> dict[str, object]:
    """Return what is recorded: another mam may know other settings."""
    return {"mam": mam.__version__, "files": look}


def _recorded(context: Context) -> object:
    connection = context.registry.reader()
    if connection is None:
        return None
    return database.read_meta(connection, context.paths.db, (_KEY,)).get(_KEY)
