"""Removes from the copies of a root what was forgotten or purged after they were made.

The log of the root says what that was. A file beside the copies has the last entry that reached them, so a
removal that failed, or that nobody had time for, is made up for by whoever comes next.
"""

from __future__ import annotations

import json
import os
from functools import partial

from mam.adapters.store import backup_file, database
from mam.adapters.store.files import job_files
from mam.adapters.store.tables import removals
from mam.adapters.system import atomic_file
from mam.app.context.resident_start_and_lock import working_holder
from mam.app.monitor import backup
from mam.core.errors import MamError
from mam.core.record_limits import LARGEST_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.removals import Removal
    from mam.app.context.context import Context

_LAST, _LONGEST = "last_removal.json", 4096
# A verb waits for the removal if all copies together are not larger. Otherwise a resident does it.
_QUICK = 8 << 20


def remove_from_copies(context: Context) -> None:
    """Remove what was forgotten or purged from every copy.

    Raises the first error, which names its copy, after the others are done. The next call tries again.
    """
    if not backup.listed(context):
        return
    folder = backup.folder_of(context)
    with backup_file.only_one(folder):
        marker = os.path.join(folder, _LAST)
        none: list[Removal] = []
        pending = context.registry.peek(partial(removals.since, last=_last(marker)), none)
        if not pending:
            return
        problem: MamError | None = None
        for copy in backup.listed(context):
            try:
                backup_file.edit(copy, lambda connection: removals.remove_from(connection, pending))
            except MamError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        with database.errors(marker):
            atomic_file.replace(marker, json.dumps([pending[-1].seq, pending[-1].at]).encode(), flushed=True)


def _last(marker: str) -> tuple[int, float] | None:
    """Return the number and the time of the last removal that reached every copy."""
    with database.errors(marker):
        try:
            # The lock of the copies is held: this must not wait for a pipe.
            with job_files.open_plain(marker) as file:
                number, at = json.loads(file.read(_LONGEST))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RecursionError):
            # All are removed again, which changes nothing where they are gone.
            return None
    is_fit = type(number) is int and abs(number) < LARGEST_NUMBER and isinstance(at, float | int)
    return (number, float(at)) if is_fit and abs(at) < LARGEST_NUMBER else None


def remove_now(context: Context) -> None:
    """Remove what a verb has just forgotten or purged from the copies, unless that is for a resident.

    A failure is a warning: the verb itself is done.
    """
    try:
        if working_holder(context) is None and sum(copy.size for copy in backup.listed(context)) <= _QUICK:
            remove_from_copies(context)
    except MamError as error:
        context.warn(f"what was removed is still in a copy of the state, until a resident runs: {error}")
