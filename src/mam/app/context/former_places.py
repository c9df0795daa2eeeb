"""Where a root has been: after a move, the workspaces in its rows still name the former folder.

mam does not rewrite them, because agents keep their conversations by directory. A link at the former path
leads them here.
"""

from __future__ import annotations

import os
from shlex import quote

from mam.adapters.store import database
from mam.core.errors import MamError
from mam.core.root_state import Arrival, RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

_KEY = "places"
_MOST = 8


class FormerPlace:
    """The former folder of a moved root, and the command that makes a gone workspace there lead here."""

    __slots__ = ("command", "root")

    def __init__(self, root: str, command: str) -> None:
        self.root = root
        self.command = command


def note_place(context: Context) -> None:
    """Record the path of the root if it is new. A root that cannot be written records it another time."""
    try:
        if context.root.verdict().state != RootState.KNOWN or not os.path.exists(context.paths.db):
            return
        if _recorded(context)[-1:] != [context.paths.root]:
            # Before the change, which makes the user state forget the former path.
            places = _all(context)
            context.registry.note(lambda transaction: _record(transaction, places, context.paths.root))
    except MamError:
        return


def former_place_of(context: Context, workspace: str) -> FormerPlace | None:
    """Return the former place of the root that a gone workspace lies in, if the root has its folder now."""
    root = context.paths.root
    for former in reversed(_all(context)):
        if former == root or not f"{workspace}/".startswith(f"{former.rstrip('/')}/"):
            continue
        parts = os.path.relpath(workspace, former).split("/")
        parts = [] if parts == ["."] else parts
        if not os.path.isdir(os.path.join(root, *parts)):
            continue
        # Something else may stand at the former path: then the link belongs below it.
        for count in range(len(parts) + 1):
            link = os.path.join(former, *parts[:count])
            if not os.path.lexists(link):
                return FormerPlace(former, _link_command(os.path.join(root, *parts[:count]), link))
    return None


def _link_command(target: str, link: str) -> str:
    folder = os.path.dirname(link)
    make = "" if os.path.isdir(folder) else f"mkdir -p {quote(folder)} && "
    return f"{make}ln -s {quote(target)} {quote(link)}"


def _all(context: Context) -> list[str]:
    """Return the recorded paths, and the one of which the user state knows the root until its next change."""
    places = _recorded(context)
    verdict = context.root.verdict()
    if verdict.arrival == Arrival.MOVED and verdict.state == RootState.KNOWN and verdict.known is not None:
        places = [*(place for place in places if place != verdict.known.root), verdict.known.root]
    return places


def _recorded(context: Context) -> list[str]:
    connection = context.registry.reader()
    if connection is None:
        return []
    # Without a transaction: a resume looks at the workspace inside its own.
    places = database.read_meta(connection, context.paths.db, (_KEY,)).get(_KEY)
    # Somebody may have written the database.
    return [place for place in places if isinstance(place, str)] if isinstance(places, list) else []


def _record(transaction: Transaction, places: list[str], root: str) -> None:
    transaction.set_meta(_KEY, [*(place for place in places if place != root), root][-_MOST:])
