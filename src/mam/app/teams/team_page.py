"""Write the team pages from the database, and describe teams, members and tasks for documents."""

from __future__ import annotations

from mam.adapters.store.files import team_page_file
from mam.adapters.store.tables import messages, tasks, teams
from mam.app.context import setting_aside
from mam.core import team_page as pages
from mam.core.errors import MamError
from mam.core.message_rules import DELIVERED, MessageState
from mam.core.safe_text import one_line
from mam.core.task_format import shown
from mam.core.team_plan import READY
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member, Team
    from mam.app.context.context import Context

_UNDELIVERED = (MessageState.FAILED, MessageState.UNCONFIRMED)


def write(context: Context, team_ids: Collection[str] | None = None) -> None:
    """Write the pages of these teams, or of all that are up. After an error the next verb tries again.

    A named team that is not recorded any more was removed by a spawn that failed. Its page is removed.
    """

    def work(transaction: Transaction) -> None:
        listed = teams.listed(transaction, ended=True)
        for team in listed:
            if (team.ended_at is None) if team_ids is None else (team.id in team_ids):
                with setting_aside.isolated(transaction, setting_aside.TEAM, team.id):
                    _note_undelivered(transaction, team)
                    _write_one(context, transaction, team)
        for team_id in {*(team_ids or ())} - {team.id for team in listed}:
            team_page_file.remove(context.paths, team_id)

    try:
        # Write under the lock, so that of two writers the later one has the later facts.
        context.registry.note(work)
    except MamError as error:
        context.warn(f"the team page could not be written: {error}")


def _write_one(context: Context, transaction: Transaction, team: Team) -> None:
    members = [describe_member(transaction, member) for member in teams.members(transaction, team.id)]
    work = [describe_task(transaction, task) for task in tasks.listed(transaction, team_id=team.id)]
    text = pages.render(describe_team(transaction, team), members, work, teams.lines(transaction, team.id))
    team_page_file.write(context.paths, team.id, text)


def _note_undelivered(transaction: Transaction, team: Team) -> None:
    """Keep a line for each message to a member or the master that failed or stayed unconfirmed."""
    members = teams.members(transaction, team.id)
    names = {member.session_id: member.name for member in members}
    if team.master_id:
        names[team.master_id] = "master"
    for session_id, name in names.items():
        for message in messages.listed(transaction, session_id=session_id):
            if message.state in DELIVERED:
                teams.remove_note(transaction, message.id)
            elif message.state in _UNDELIVERED and message.created_at >= team.started_at:
                sender = names.get(message.sender, message.sender)
                line = one_line(
                    f"{message.id} from {sender} to {name}: {message.state}: {message.reason or '-'}", 400
                )
                teams.note(transaction, team.id, message.id, line)


def describe_team(transaction: Transaction, team: Team) -> dict[str, Any]:
    """Return a team as documents show it."""
    master = transaction.get(team.master_id) if team.master_id else None
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


def describe_member(transaction: Transaction, member: Member) -> dict[str, Any]:
    """Return a member as documents show it, with its checklist."""
    claimed_tasks = _claimed_tasks(transaction, member)
    row = transaction.get(member.session_id)
    return {
        "team": member.team_id,
        "session": member.name,
        "id": member.session_id,
        "agent": row["agent"] if row else None,
        "status": row["status"] if row else "forgotten",
        "role": member.role,
        "colour": member.colour,
        "pane": member.pane,
        "window": member.window_id,
        "workspace": member.workspace,
        "label": f"{member.role}-{member.pane}",
        "name_source": member.name_source,
        "conversation": member.conversation,
        "state": member.state,
        "task": shown(claimed_tasks[0].seq) if claimed_tasks else None,
        "boxes": checklist(transaction, member),
        "spawned_at": stamp(member.spawned_at),
        "closed_at": stamp(member.closed_at) if member.closed_at else None,
    }


def checklist(transaction: Transaction, member: Member) -> dict[str, bool]:
    """Return which of the four items of the checklist are done.

    A member that never had a task has done its task once it has reported what it did instead. A closed member
    was ready if it had reported and left no task unfinished.
    """
    has_done_something = member.report_id is not None or tasks.has_finished(
        transaction, member.session_id, since=member.spawned_at, until=member.closed_at
    )
    is_done = has_done_something and not _claimed_tasks(transaction, member) and not member.unfinished
    was_ready = member.closed_at is not None and is_done and member.report_id is not None
    return {
        "reported": is_reported(transaction, member),
        "done": is_done,
        "saved": member.conversation is not None,
        "ready": member.state == READY or was_ready,
    }


def _claimed_tasks(transaction: Transaction, member: Member) -> list[Task]:
    """Return the unfinished tasks of a member. A session that joins again has them in its new membership."""
    return tasks.claimed(transaction, member.session_id) if teams.is_open(member) else []


def is_reported(transaction: Transaction, member: Member) -> bool:
    """Tell whether the report of a member was received; its proof may come after `mam report` has ended."""
    if member.reported_at is not None or member.report_id is None:
        return member.reported_at is not None
    report = messages.find(transaction, member.report_id)
    return report is not None and report.state in DELIVERED


def describe_task(transaction: Transaction, task: Task) -> dict[str, Any]:
    """Return a task as documents show it."""
    row = transaction.get(task.claimed_by) if task.claimed_by else None
    return {
        "id": shown(task.seq),
        "seq": task.seq,
        "status": task.status,
        "role": task.role,
        "text": task.text,
        "team": task.team_id,
        "claimed_by": row["name"] if row else task.claimed_by,
        "pane": task.pane,
        "result": task.result,
        "report": task.report_id,
        "created_at": stamp(task.created_at),
        "claimed_at": stamp(task.claimed_at) if task.claimed_at else None,
        "done_at": stamp(task.done_at) if task.done_at else None,
    }
