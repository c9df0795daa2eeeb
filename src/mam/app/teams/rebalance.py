"""Arrange the window of a team: the master in the main place, the members beside it in their order."""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.adapters.tmux import window as windows
from mam.app.teams.team_window import find_team
from mam.core import team_plan as rules
from mam.core.errors import PaneGone, Usage
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Team
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def rebalance(
    context: Context, caller: Caller, *, main: str | None = None, team: str | None = None
) -> dict[str, Any]:
    """Arrange the window, with the master left or on top; return `{team, layout, panes, expected, runs}`."""
    if main is not None and main not in rules.LAYOUTS:
        raise Usage(f"the place of the master must be {' or '.join(rules.LAYOUTS)}")
    target = find_team(context, caller, team)
    if main is not None:
        layout = rules.LAYOUTS[main]
        context.registry.note(lambda transaction: teams.change(transaction, target.id, layout=layout))
    arrangement = arrange(context, target.id)
    if arrangement is None:
        raise PaneGone(f"the window of the team {target.id} is gone", hint="mam team down ends the team")
    return arrangement


def arrange(context: Context, team_id: str) -> dict[str, Any] | None:
    """Arrange the window of a team; None if it is gone. Repeat once if a pane came or went meanwhile."""
    no_team: tuple[Team | None, list[str], list[str]] = (None, [], [])
    team, expected_panes, possible_panes = context.registry.peek(
        lambda transaction: _read(transaction, team_id), no_team
    )
    if team is None or team.window_id is None:
        return None
    tmux = context.tmux(team.server)
    if tmux.server_pid() != team.server_pid:
        return None
    if team.master_pane:
        _label_master(context, team)
    runs = 0
    try:
        while True:
            main = team.master_pane or next(iter(expected_panes), None)
            window = windows.arrange(tmux, team.window_id, layout=team.layout, main=main)
            runs += 1
            expected = len(expected_panes) + sum(pane in window.panes for pane in possible_panes)
            if len(window.panes) == expected or runs == 2:
                break
    except PaneGone:
        return None
    return {
        "team": team.id,
        "layout": team.layout,
        "panes": window.panes,
        "expected": expected,
        "runs": runs,
    }


def _label_master(context: Context, team: Team) -> None:
    assert team.master_pane is not None and team.window_id is not None
    colour = rules.COLOURS[rules.colour_of(rules.MASTER)]
    try:
        windows.label_pane(
            context.tmux(team.server), team.master_pane, team.window_id, label=rules.MASTER, colour=colour
        )
    except PaneGone:
        # The master closed its pane. The first member takes the main place.
        return


def _read(transaction: Transaction, team_id: str) -> tuple[Team | None, list[str], list[str]]:
    """Return a team, the panes that its window must have, and the panes that it may have.

    The master may have closed its pane. The pane of an ended member may be gone, or kept for review.
    """
    team = teams.find(transaction, team_id)
    expected_panes: list[str] = []
    possible_panes = [team.master_pane] if team and team.master_pane else []
    for member in teams.members(transaction, team_id):
        row = transaction.get(member.session_id)
        if not teams.is_open(member) or (team and member.window_id not in (None, team.window_id)):
            continue
        if row and is_running(row) and row["pane"].get("id"):
            expected_panes.append(row["pane"]["id"])
        elif member.pane:
            possible_panes.append(member.pane)
    return team, expected_panes, possible_panes
