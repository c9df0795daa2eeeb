"""Tells of settings that are not valid, also in verbs that need none of them.

To read a settings file takes some milliseconds. So the database keeps what the files looked like when a verb
found them valid, and whoever finds the same again does not read them. Beside that it keeps the setting
`resident`, which each listing asks for.
"""

from __future__ import annotations

import os

import mam
from mam.adapters.store import database
from mam.app.context.settings import files, load_settings
from mam.core.errors import InvalidSettings, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        if _record_of(context, look) is not None:
            return
        settings = load_settings(context.paths.root, context.settings_environ, lambda _text: None)
        if is_changing and os.path.exists(context.paths.db):
            record = {"mam": mam.__version__, "files": look, "resident": settings.resident}
            context.registry.note(lambda transaction: transaction.set_meta(_KEY, record))
    except InvalidSettings as error:
        context.warn_once(
            f"{error.message}; until that is corrected mam starts no agent and no resident, and a resident "
            "that runs goes on with the settings that it began with"
        )
    except MamError:
        # Whoever works on the database says what is wrong with it.
        return


def resident_setting(context: Context) -> str:
    """Return the setting `resident`, without reading a file that is still as a verb has recorded it."""
    look = _look(context)
    if any(look):
        record = _record_of(context, look)
        if record is not None:
            return str(record["resident"])
    return context.settings().resident


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


def _record_of(context: Context, look: Look) -> dict[str, Any] | None:
    """Return what was recorded of these files by this mam, as another one may know other settings."""
    connection = context.registry.reader()
    if connection is None:
        return None
    record = database.read_meta(connection, context.paths.db, (_KEY,)).get(_KEY)
    if not isinstance(record, dict) or not isinstance(record.get("resident"), str):
        return None
    return record if (record.get("mam"), record.get("files")) == (mam.__version__, look) else None
