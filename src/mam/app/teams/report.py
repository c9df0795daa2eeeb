"""Report that a task is done: tell the spawner, update the checklist, and assign the next task.

mam records the end of the task and the report before it types the first key. A repeated report is the same
message and is sent once.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages, tasks, teams
from mam.app.context.authority import check_sender
from mam.app.context.caller import calling_row
from mam.app.messages.send import new_message, send
from mam.app.observation import conversations
from mam.app.teams import team_page
from mam.app.teams.close import refresh_membership
from mam.app.teams.task import assign, warn_if_untold
from mam.core import caller as callers
from mam.core import task_format as rules
from mam.core import team_plan as team_rules
from mam.core.errors import Conflict, MamError, NotAllowed, Refused, TaskNotFound, Usage
from mam.core.message_rules import DELIVERED, MessageState
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# The state of a report to a person: the team page shows it.
RECORDED = "recorded"


def report(
    context: Context,
    caller: Caller,
    task_id: str | None = None,
    *,
    result: str | None = None,
    session: str | None = None,
) -> dict[str, Any]:
    """Report for the calling session, or for the session that a person names.

    Return `{report, receipt, task, next, member}`.
    """
    row, by = _reporter(context, caller, session), caller.name
    number = rules.parse(task_id) if task_id else None
    row = conversations.record_open_conversation(context, row)
    target = _recipient(context, row)
    recipient = target if target is not None and _may_message(context, row, target) else None
    text, message_id, task = context.registry.note(
        lambda transaction: _finish(transaction, context, row, number, result, by=by, target=recipient)
    )
    receipt = _send(context, row, text, message_id, target)
    next_task = context.registry.note(lambda transaction: _next_task(transaction, row, receipt, by))
    member, team_id = context.registry.note(lambda transaction: _describe_member(transaction, context, row))
    team_page.write(context, [team_id])
    if next_task is not None:
        warn_if_untold(context, caller, row, next_task)
    return {"report": text, "receipt": receipt, "task": task, "next": next_task, "member": member}


def _reporter(context: Context, caller: Caller, session: str | None) -> Row:
    calling_session = calling_row(context, caller)
    row = context.registry.view().find(session) if session else calling_session
    if row is None:
        raise Usage(
            "only a session can report", hint="run it inside of a session, or name one with --session"
        )
    if calling_session is not None and calling_session["id"] != row["id"]:
        raise NotAllowed(f"'{calling_session['name']}' may not report for '{row['name']}'")
    return row


def _finish(
    transaction: Transaction,
    context: Context,
    row: Row,
    number: int | None,
    result: str | None,
    *,
    by: str,
    target: Row | None,
) -> tuple[str, str, dict[str, Any] | None]:
    """End the task and record the report. Return its text, its message id, and the task."""
    member, _ = refresh_membership(transaction, context, row)
    if member is None or not teams.is_open(member):
        raise Refused(f"'{row['name']}' is in no team", hint="mam register --role ROLE joins one")
    task, last_id = _task(transaction, row, number), member.report_id
    if task is None:
        task = _repeated_task(transaction, member, result)
    if task is not None:
        last_id = task.report_id
    last_report = messages.find(transaction, last_id or "")
    is_repeated = task is not None and task.status == rules.DONE
    shown_result = (task.result if task is not None and is_repeated else None) or rules.parse_result(result)
    name = rules.shown(task.seq) if task is not None else member.role
    text = team_rules.report_line(name, shown_result, current_conversation(row))
    if last_report is not None and (
        team_rules.is_same_report(last_report.text, text) or (task is None and result is None)
    ):
        text, is_repeated = last_report.text, True
    # A repeated report is the same message, unless that one was never typed.
    is_failed = last_report is not None and last_report.state == MessageState.FAILED
    message_id = last_id if last_id and is_repeated and not is_failed else messages.new_id()
    if task is not None:
        task = tasks.finish(transaction, task.seq, shown_result, message_id)
    if target is not None:
        # The same transaction ends the task, so that a report is sent for it even if this process dies now.
        messages.add(transaction, new_message(message_id, row["id"], target, text))
    teams.update(transaction, member, report_id=message_id, reported_at=None)
    transaction.log(by, "report", row, shown_result, task=rules.shown(task.seq) if task else None)
    return text, message_id, team_page.describe_task(transaction, task) if task else None


def _repeated_task(transaction: Transaction, member: Member, result: str | None) -> Task | None:
    """Return the task of the member's last report, if this report without a task repeats it."""
    task = tasks.reported_by(transaction, member.report_id or "")
    is_same = task is not None and (result is None or rules.parse_result(result) == task.result)
    return task if is_same else None


def _task(transaction: Transaction, row: Row, number: int | None) -> Task | None:
    if number is None:
        return next(iter(tasks.claimed(transaction, row["id"])), None)
    task = tasks.find(transaction, number)
    if task is None:
        raise TaskNotFound(f"there is no {rules.shown(number)}", hint="mam task list")
    if task.claimed_by != row["id"]:
        raise Conflict(f"{rules.shown(number)} is not claimed by '{row['name']}'", hint="mam task list")
    return task


def _may_message(context: Context, row: Row, target: Row) -> bool:
    try:
        check_sender(context, callers.session(row["id"]), target)
    except NotAllowed:
        return False
    return True


def _send(context: Context, row: Row, text: str, message_id: str, target: Row | None) -> dict[str, Any]:
    """Send the report. Without a target, a person reads it on the team page."""
    if target is None:
        return {"message_id": message_id, "session": None, "state": RECORDED, "evidence": "session file"}
    # A repeated report goes to its first recipient, although the recipient may be another one by now.
    report = context.registry.peek(lambda transaction: messages.find(transaction, message_id), None)
    sender = callers.session(row["id"])
    try:
        if report is not None:
            return send(context, sender, report.session_id, report.text, message_id=message_id)
        return send(context, sender, target["id"], text, message_id=message_id)
    except MamError as error:
        # The task is done anyway. The checklist stays incomplete, and the team page gives the reason.
        context.warn(f"the report was not sent: {error}")
        return {
            "message_id": message_id,
            "session": target["name"],
            "state": MessageState.FAILED,
            "evidence": None,
            "reason": error.message,
        }


def _recipient(context: Context, row: Row) -> Row | None:
    """Return the session that gets the report: the spawner, or the master if the spawner has ended.

    None if mam cannot read the recipient's screen, or if it is a person. The team page shows the report then.
    """
    rows = {
        candidate.get("id"): candidate
        for candidate in context.registry.view().rows
        if context.kind(candidate["agent"]).reads_screen
    }
    parent = rows.get(row.get("parent"))
    if parent is not None and is_running(parent):
        return parent
    master = rows.get(context.registry.peek(lambda transaction: _master(transaction, row), None))
    if master is not None and master["id"] != row["id"] and is_running(master):
        return master
    return parent


def _master(transaction: Transaction, row: Row) -> str | None:
    member = teams.member(transaction, row["id"])
    team = teams.find(transaction, member.team_id) if member else None
    return team.master_id if team else None


def _next_task(transaction: Transaction, row: Row, receipt: dict[str, Any], by: str) -> dict[str, Any] | None:
    """Record the delivery and assign the next task. Without one the member is ready to close."""
    member = teams.member(transaction, row["id"])
    assert member is not None
    state = receipt["state"]
    facts: dict[str, Any] = {"state": team_rules.ACTIVE}
    if state in (*DELIVERED, RECORDED):
        facts["reported_at"] = transaction.now
    if state == MessageState.FAILED:
        line = f"{receipt['message_id']} from {member.name}: {state}: {receipt.get('reason') or '-'}"
        teams.note(transaction, member.team_id, receipt["message_id"], line)
    claimed_tasks = tasks.claimed(transaction, row["id"])
    task = claimed_tasks[0] if claimed_tasks else tasks.oldest(transaction, member.role, member.team_id)
    if task is None:
        facts["state"] = team_rules.READY
    elif not claimed_tasks:
        task = assign(transaction, task, row["id"], row, by=by)
    teams.update(transaction, member, **facts)
    return team_page.describe_task(transaction, task) if task else None


def _describe_member(transaction: Transaction, context: Context, row: Row) -> tuple[dict[str, Any], str]:
    member: Member | None
    member, _ = refresh_membership(transaction, context, row)
    assert member is not None
    return team_page.describe_member(transaction, member), member.team_id
