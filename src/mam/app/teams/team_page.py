"""Writing the pages of teams: what the database says, and which messages did not arrive."""

from __future__ import annotations

from mam.adapters.store.files import team_page_file
from mam.adapters.store.tables import messages, tasks, teams
from mam.core import team_page as pages
from mam.core.errors import MamError
from mam.core.message import MessageState
from mam.core.safe_text import one_line
from mam.core.task import shown
from mam.core.team import READY
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member, Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

_LOST = (MessageState.FAILED, MessageState.UNCONFIRMED)


def write(context: Context, team_ids: Iterable[str] | None = None) -> None:
    """Write the files of these teams, or of all that are up. It stops no verb: the next one writes again."""

    def work(draft: Transaction) -> None:
        for team in teams.listed(draft, ended=True):
            if (team.ended_at is None) if team_ids is None else (team.id in team_ids):
                _note_lost(draft, team)
                _write_one(context, draft, team)

    try:
        # Under the lock: of two who write, the later one has the later facts.
        context.registry.note(work)
    except MamError as error:
        context.warn(f"the session file could not be written: {error}")


def _write_one(context: Context, draft: Transaction, team: Team) -> None:
    found = [describe(draft, one) for one in teams.members(draft, team.id)]
    work = [described(draft, one) for one in tasks.listed(draft, team_id=team.id)]
    text = pages.render(describe_team(draft, team), found, work, teams.lines(draft, team.id))
    team_page_file.write(context.paths, team.id, text)


def _note_lost(draft: Transaction, team: Team) -> None:
    """Keep a line for each message to or from the team that failed or stayed unconfirmed."""
    found = teams.members(draft, team.id)
    names = {one.session_id: one.name for one in found}
    if team.master_id:
        names[team.master_id] = "master"
    for session_id, name in names.items():
        for one in messages.listed(draft, session_id=session_id):
            if one.state in _LOST and one.created_at >= team.started_at:
                sender = names.get(one.sender, one.sender)
                what = one_line(f"{one.id} from {sender} to {name}: {one.state}: {one.reason or '-'}", 400)
                teams.note(draft, team.id, one.id, what)


def describe_team(draft: Transaction, team: Team) -> dict[str, Any]:
    """Return a team as documents show it."""
    master = draft.get(team.master_id) if team.master_id else None
    return {
        "id": team.id,
        "name": team.name,
        "tmux_server": team.server,
        "window": team.window_id,
        "layout": team.layout,
        "master": master["name"] if master else team.master_pane,
        "master_pane": team.master_pane,
        "started_at": stamp(team.started_at),
        "ended_at": stamp(team.ended_at) if team.ended_at else None,
    }


def describe(draft: Transaction, one: Member) -> dict[str, Any]:
    """Return a member as documents show it, with its boxes."""
    at = tasks.claimed(draft, one.session_id)
    row = draft.get(one.session_id)
    return {
        "team": one.team_id,
        "session": one.name,
        "id": one.session_id,
        "agent": row["agent"] if row else None,
        "status": row["status"] if row else "forgotten",
        "role": one.role,
        "colour": one.colour,
        "pane": one.pane,
        "window": one.window_id,
        "workspace": one.workspace,
        "label": f"{one.role}-{one.pane}",
        "name_source": one.name_source,
        "conversation": one.conversation,
        "state": one.state,
        "task": shown(at[0].seq) if at else None,
        "boxes": boxes(draft, one),
        "spawned_at": stamp(one.spawned_at),
        "closed_at": stamp(one.closed_at) if one.closed_at else None,
    }


def boxes(draft: Transaction, one: Member) -> dict[str, bool]:
    """Return which of the four boxes are ticked."""
    return {
        "reported": one.reported_at is not None,
        "done": not tasks.claimed(draft, one.session_id),
        "saved": one.conversation is not None,
        "ready": one.state == READY or one.closed_at is not None,
    }


def described(draft: Transaction, one: Task) -> dict[str, Any]:
    """Return a task as documents show it."""
    row = draft.get(one.claimed_by) if one.claimed_by else None
    return {
        "id": shown(one.seq),
        "seq": one.seq,
        "status": one.status,
        "role": one.role,
        "text": one.text,
        "team": one.team_id,
        "claimed_by": row["name"] if row else one.claimed_by,
        "pane": one.pane,
        "result": one.result,
        "report": one.report_id,
        "created_at": stamp(one.created_at),
        "claimed_at": stamp(one.claimed_at) if one.claimed_at else None,
        "done_at": stamp(one.done_at) if one.done_at else None,
    }
