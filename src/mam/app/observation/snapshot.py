"""A snapshot of what exists, for a pass: every registered session, and agents without a row. Reads only."""

from __future__ import annotations

import os

from mam.adapters.store import root_paths
from mam.adapters.system import process
from mam.app.context.liveness import judge_liveness
from mam.app.observation import conversations
from mam.core.drift_detection import (
    LostIdentity,
    Observation,
    SessionObservation,
    UnregisteredSession,
    says_nothing,
)
from mam.core.errors import InvalidName
from mam.core.liveness_values import Liveness
from mam.core.names import kind_of_name, parse_name
from mam.core.session_row import current_conversation, id_or_name, is_running, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from mam.adapters.tmux.parse import Listing
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.app.observation.newest_hook_reports import HookReport
    from mam.core.session_row import Row

DEFAULT = "default"


class Snapshot:
    """An observation, with the listing of each tmux server and the liveness of each session by its id."""

    __slots__ = ("listings", "liveness_by_id", "observation")

    def __init__(
        self,
        observation: Observation,
        listings: dict[str, Listing],
        liveness_by_id: dict[str, SessionLiveness],
    ) -> None:
        self.observation = observation
        self.listings = listings
        self.liveness_by_id = liveness_by_id


def servers(context: Context, rows: Sequence[Row]) -> list[str]:
    """Return the tmux servers to look at: tmux's default, the one in use here, and those of all rows."""
    return sorted({DEFAULT, context.server_name(None), *(row["tmux_server"] for row in rows)})


def observe(
    context: Context,
    rows: Sequence[Row],
    reports: Mapping[str, HookReport],
    only: Collection[str] | None = None,
    *,
    identities: Mapping[str, Any] | None = None,
    with_ended: bool = True,
) -> Snapshot:
    """Look at every tmux server with one call each, and at the conversations of sessions and `identities`.

    With `only`, look at the sessions of these ids alone, and not for agents without a row. Without
    `with_ended`, do not look at the conversations of ended sessions: there may be many.
    """
    all_rows = rows
    if only is not None:
        rows = [row for row in rows if row.get("id") in only]
    names = servers(context, rows) if only is None else {row["tmux_server"] for row in rows}
    listings = {server: context.tmux(server).panes() for server in names}
    liveness_by_id: dict[str, SessionLiveness] = {}
    sessions: dict[str, SessionObservation] = {}
    mark = context.root_mark
    for row in rows:
        if is_running(row):
            liveness = judge_liveness(row, listings[row["tmux_server"]], mark)
            key = id_or_name(row)
            liveness_by_id[key] = liveness
            sessions[key] = _observe_session(context, row, liveness, reports)
        elif with_ended and not says_nothing(row):
            sessions[id_or_name(row)] = SessionObservation(
                Liveness.GONE, own_on_disk=conversations.on_disk(context, row, own_id(row))
            )
    confirmed = {server: listing.confirmed for server, listing in listings.items()}
    registered = {row["name"] for row in rows}
    strays = _unregistered(context, listings, registered) if only is None else []
    lost = list(_lost_identities(context, all_rows, identities or {})) if only is None else []
    return Snapshot(Observation(confirmed, sessions, strays, lost), listings, liveness_by_id)


def _observe_session(
    context: Context, row: Row, liveness: SessionLiveness, reports: Mapping[str, HookReport]
) -> SessionObservation:
    if liveness.state != Liveness.ALIVE:
        return SessionObservation(liveness.state, liveness.reason)
    reported = conversations.reported_conversation(context, row, dict(reports))
    conversation = reported[0] if reported else current_conversation(row)
    own = own_id(row)
    on_disk = conversations.on_disk(context, row, conversation)
    return SessionObservation(
        liveness.state,
        liveness.reason,
        conversation=conversation,
        on_disk=on_disk,
        own_on_disk=on_disk if own == conversation else conversations.on_disk(context, row, own),
    )


def _lost_identities(
    context: Context, rows: Sequence[Row], identities: Mapping[str, Any]
) -> Iterator[LostIdentity]:
    """Return the entries of the identity cache whose conversation is in no place where it could be.

    The drift of a row covers the entry of the same conversation. The cache does not say in which store the
    conversation was, so those of the kind's sessions count too.
    """
    for name, identity in identities.items():
        key = "session_id" if identity.get("session_id") else "conversation_id"
        conversation = identity.get(key)
        same_kind = [row for row in rows if row["agent"] == name]
        if not conversation or any(
            own_id(row) == conversation and not says_nothing(row) for row in same_kind
        ):
            continue
        kind = context.kind(name)
        stores = [kind.stores(context.environ), *(conversations.stores_of(context, row) for row in same_kind)]
        directory = identity.get("project_cwd")
        workspaces = (
            [directory] if directory else [context.paths.root, *(row["workspace"] for row in same_kind)]
        )
        places = {
            (workspace, *sorted(store.items())): (workspace, store)
            for workspace in workspaces
            for store in stores
        }
        if all(kind.on_disk(conversation, workspace, store) is False for workspace, store in places.values()):
            yield LostIdentity(name, f"agent_identities.{name}.{key}", conversation)


def _unregistered(
    context: Context, listings: Mapping[str, Listing], registered: Collection[str]
) -> list[UnregisteredSession]:
    """Return the tmux sessions without a row that belong to this root by their name and directory.

    A pane with a mark belongs to a session of some root, so it is not among them.
    """
    strays: dict[tuple[str, str], UnregisteredSession] = {}
    for server, listing in listings.items():
        for pane in listing.panes:
            name = pane.session_name
            if name in registered or pane.mark or pane.dead or not _is_name(name):
                continue
            path = process.working_directory(pane.pid)
            if path and os.path.isdir(path) and root_paths.find_root(path) == context.paths.root:
                # The first pane of a tmux session is the agent's; a person made the others by a split.
                strays.setdefault((server, name), UnregisteredSession(server, name, pane.id, pane.pid, path))
    return list(strays.values())


def _is_name(name: str) -> bool:
    """Tell whether a name has the pattern of the original tool, and is valid for a row."""
    try:
        return kind_of_name(name) is not None and parse_name(name) == name
    except InvalidName:
        return False
