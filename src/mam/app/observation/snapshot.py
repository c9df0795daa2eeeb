"""One look at everything that the registry speaks of, and at what it does not. Reads only."""

from __future__ import annotations

import os

from mam.adapters.store import root_paths as places
from mam.adapters.system import process
from mam.app.context.liveness import see
from mam.app.observation import conversations
from mam.core.drift import Observation, Seen, Stray
from mam.core.errors import InvalidName
from mam.core.liveness import Liveness
from mam.core.names import kind_of_name, parse_name
from mam.core.session_row import current_conversation, is_running, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mam.adapters.tmux.parse import Listing
    from mam.app.context.context import Context
    from mam.app.context.liveness import Sight
    from mam.app.observation.hook_reports import HookReport
    from mam.core.session_row import Row

DEFAULT = "default"


class Snapshot:
    """An observation with what it was made of, for those who act on it."""

    __slots__ = ("found", "listings", "sights")

    def __init__(self, found: Observation, listings: dict[str, Listing], sights: dict[str, Sight]) -> None:
        self.found = found
        self.listings = listings
        self.sights = sights


def servers(context: Context, rows: Sequence[Row]) -> list[str]:
    """Return the tmux servers to look at: the usual one, the one chosen here, and each that a row names."""
    return sorted({DEFAULT, context.server_name(None), *(row["tmux_server"] for row in rows)})


def observe(
    context: Context,
    rows: Sequence[Row],
    reports: Mapping[str, HookReport],
    only: Collection[str] | None = None,
) -> Snapshot:
    """Look at every server with one call each, and at the conversation of each session that is alive.

    With `only` some ids are looked at and no others, and nobody asks what has no row.
    """
    if only is not None:
        rows = [row for row in rows if row.get("id") in only]
    asked = servers(context, rows) if only is None else {row["tmux_server"] for row in rows}
    listings = {server: context.tmux(server).panes() for server in asked}
    sights: dict[str, Sight] = {}
    seen: dict[str, Seen] = {}
    for row in rows:
        if is_running(row) and row.get("id"):
            sight = sights[row["id"]] = see(row, listings[row["tmux_server"]], context.paths.root)
            seen[row["id"]] = _seen(context, row, sight, reports)
    confirmed = {server: listing.confirmed for server, listing in listings.items()}
    named = {row["name"] for row in rows}
    strays = _strays(context, listings, named) if only is None else []
    return Snapshot(Observation(confirmed, seen, strays), listings, sights)


def _seen(context: Context, row: Row, sight: Sight, reports: Mapping[str, HookReport]) -> Seen:
    if sight.state != Liveness.ALIVE:
        return Seen(sight.state, sight.reason)
    said = conversations.told(context, row, dict(reports))
    conversation = said[0] if said else current_conversation(row)
    own = own_id(row)
    on_disk = conversations.on_disk(context, row, conversation)
    return Seen(
        sight.state,
        sight.reason,
        conversation=conversation,
        on_disk=on_disk,
        own_on_disk=on_disk if own == conversation else conversations.on_disk(context, row, own),
    )


def _strays(context: Context, listings: Mapping[str, Listing], named: Collection[str]) -> list[Stray]:
    """Return the sessions without a row that would be ours: by name, by directory, and by nobody's mark."""
    found: dict[tuple[str, str], Stray] = {}
    for server, listing in listings.items():
        for pane in listing.panes:
            name = pane.session_name
            if name in named or pane.mark or pane.dead or not _is_name(name):
                continue
            path = process.working_directory(pane.pid)
            if path and os.path.isdir(path) and places.find_root(path) == context.paths.root:
                # The first pane of a session is the agent's; what a person split off is theirs.
                found.setdefault((server, name), Stray(server, name, pane.id, pane.pid, path))
    return list(found.values())


def _is_name(name: str) -> bool:
    """Tell whether a name is of the original's pattern, and one that a row may have."""
    try:
        return kind_of_name(name) is not None and parse_name(name) == name
    except InvalidName:
        return False
