"""Whose tmux session has the name that a session was to get, and what a person does about it."""

from __future__ import annotations

import os
from shlex import quote

from mam.adapters.system import process
from mam.app.sessions.pane_marks import has_lost_record
from mam.core import names
from mam.core.errors import MamError, NameTaken
from mam.core.root_mark import directory_of, id_of, is_same_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.parse import Listing, Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def taken_name(context: Context, row: Row, name: str, listing: Listing) -> NameTaken:
    """Return the error for a tmux session of this name. Each command of its hint works as it is printed."""
    panes = [pane for pane in listing.panes if pane.session_name == name]
    free = _free_name(context, name, listing)
    another = _way_to_another_name(context, row, name, free)
    taken = f"tmux server '{row['tmux_server']}' has a session named '{name}'"
    marked = next((pane for pane in panes if pane.mark and not has_lost_record(context, pane)), None)
    if marked is None:
        adopt = _adopt_command(context, row, name, panes, free)
        return NameTaken(
            f"{taken} that is not ours", hint=f"{another}; end that session; or adopt it: {adopt}"
        )
    if is_same_root(marked.root, context.root_mark):
        other = context.registry.view().by_id(marked.mark)
        if other is None:
            return NameTaken(f"{taken}, with the pane of '{marked.mark}'", hint=another)
        return NameTaken(
            f"{taken}, with the pane of '{other['name']}'",
            hint=f"{another}; or give that session this name: mam rename {other['name']} {name}",
        )
    root = _root_of(context, marked)
    return NameTaken(
        f"{taken}, which is a session of another root: {root}",
        hint=f"{another}; or go to that session: cd {quote(root)}",
    )


def _root_of(context: Context, pane: Pane) -> str:
    """Return the directory of the root that marked a pane. It may have been moved since."""
    known = context.user_state.root_by_id(id_of(pane.root))
    return known.root if known is not None else directory_of(pane.root)


def _free_name(context: Context, name: str, listing: Listing) -> str:
    taken = {row["name"] for row in context.registry.view().rows}
    taken.update(pane.session_name for pane in listing.panes)
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _way_to_another_name(context: Context, row: Row, name: str, free: str) -> str:
    if row["name"] != name:
        # The window of a team.
        return "choose another name"
    if context.registry.view().by_id(row["id"]) is None:
        return f"choose another name, such as --session {free}"
    return f"give this session another name, and repeat: mam rename {name} {free}"


def _adopt_command(context: Context, row: Row, name: str, panes: list[Pane], free: str) -> str:
    live = next((pane for pane in panes if not pane.dead), panes[0])
    words = ["mam", "adopt", name, "--agent", _program_of(live), "--session", free]
    if row["tmux_server"] != context.server_name(None):
        words += ["--tmux-server", row["tmux_server"]]
    if len(panes) > 1:
        words += ["--pane", live.id]
    return " ".join(map(quote, words))


def _program_of(pane: Pane) -> str:
    """Return the program in a pane, as a kind of agent: one of mam's own, or what runs there."""
    argv = process.command_line(pane.pid) or []
    try:
        return names.parse_kind(os.path.basename(argv[0]).lstrip("-") if argv else "")
    except MamError:
        return "human"
