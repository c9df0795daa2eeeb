"""Put the window of a team in order: the master in the main place, the others beside it in their order."""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.adapters.tmux import window as windows
from mam.app.teams.team_window import find_team
from mam.core import team as rules
from mam.core.errors import PaneGone, Usage
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.teams import Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def rebalance(
    context: Context, caller: Caller, *, main: str | None = None, team: str | None = None
) -> dict[str, Any]:
    """Lay the window out, with the master left or on top; `{team, layout, panes, expected, runs}`."""
    if main is not None and main not in rules.LAYOUTS:
        raise Usage(f"the master stands {' or '.join(rules.LAYOUTS)}")
    found = find_team(context, caller, team)
    if main is not None:
        layout = rules.LAYOUTS[main]
        context.registry.note(lambda draft: teams.change(draft, found.id, layout=layout))
    done = arrange(context, found.id)
    if done is None:
        raise PaneGone(f"the window of the team {found.id} is gone", hint="mam team down ends the team")
    return done


def arrange(context: Context, team_id: str) -> dict[str, Any] | None:
    """Lay out the window of a team, once more if a pane came or went meanwhile; None if it is gone."""
    nothing: tuple[Team | None, list[str], list[str]] = (None, [], [])
    team, wanted, perhaps = context.registry.peek(lambda draft: _read(draft, team_id), nothing)
    if team is None or team.window_id is None:
        return None
    tmux = context.tmux(team.server)
    if tmux.server_pid() != team.server_pid:
        return None
    if team.master_pane:
        _dress_master(context, team)
    runs = 0
    try:
        while True:
            main = team.master_pane or next(iter(wanted), None)
            seen = windows.arrange(tmux, team.window_id, layout=team.layout, main=main)
            runs += 1
            expected = len(wanted) + sum(pane in seen.panes for pane in perhaps)
            if len(seen.panes) == expected or runs == 2:
                break
    except PaneGone:
        return None
    return {
        "team": team.id,
        "layout": team.layout,
        "panes": seen.panes,
        "expected": expected,
        "runs": runs,
    }


def _dress_master(context: Context, team: Team) -> None:
    assert team.master_pane is not None and team.window_id is not None
    colour = rules.COLOURS[rules.colour_of(rules.MASTER)]
    try:
        windows.dress(
            context.tmux(team.server), team.master_pane, team.window_id, label=rules.MASTER, colour=colour
        )
    except PaneGone:
        # The team goes on without it; the first member takes the main place.
        return


def _read(draft: Transaction, team_id: str) -> tuple[Team | None, list[str], list[str]]:
    """Return a team, the panes that its window should have, and those that it may have.

    The master's may have been closed, and of one that has ended the pane may be gone, or kept for review.
    """
    team = teams.find(draft, team_id)
    wanted: list[str] = []
    perhaps = [team.master_pane] if team and team.master_pane else []
    for one in teams.members(draft, team_id):
        row = draft.get(one.session_id)
        if not teams.is_open(one) or (team and one.window_id not in (None, team.window_id)):
            continue
        if row and is_running(row) and row["pane"].get("id"):
            wanted.append(row["pane"]["id"])
        elif one.pane:
            perhaps.append(one.pane)
    return team, wanted, perhaps
