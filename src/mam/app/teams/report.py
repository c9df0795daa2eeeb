"""Report that a task is done: the spawner is told, the boxes are ticked, and the next task is handed out.

The end of the task and the report are recorded before the first key; a report that is repeated is the same
message and goes out once.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages, tasks, teams
from mam.app.context.authority import check_writer
from mam.app.context.caller import calling_row
from mam.app.messages.send import send, written
from mam.app.observation import conversations
from mam.app.teams import team_page
from mam.app.teams.close import membership
from mam.app.teams.task import take
from mam.core import caller as callers
from mam.core import task as rules
from mam.core import team as team_rules
from mam.core.errors import Conflict, MamError, NotAllowed, Refused, TaskNotFound, Usage
from mam.core.message import DELIVERED, MessageState
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.tasks import Task
    from mam.adapters.store.tables.teams import Member
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# What becomes of a report to a person: it stands in the session file.
RECORDED = "recorded"


def report(
    context: Context,
    caller: Caller,
    which: str | None = None,
    *,
    result: str | None = None,
    session: str | None = None,
) -> dict[str, Any]:
    """Report for the calling session, or for one that a person names.

    `{report, receipt, task, next, member}`
    """
    row, by = _reporter(context, caller, session), caller.name
    number = rules.parse(which) if which else None
    row = conversations.note_open(context, row)
    target = _spawner(context, row)
    letter_to = target if target is not None and _may_write(context, row, target) else None
    text, message_id, done = context.registry.note(
        lambda draft: _finish(
            draft, context, row, number, rules.parse_result(result), by=by, target=letter_to
        )
    )
    receipt = _send(context, row, text, message_id, target)
    following = context.registry.note(lambda draft: _next(draft, row, receipt, by))
    member, team_id = context.registry.note(lambda draft: _described(draft, context, row))
    team_page.write(context, [team_id])
    return {"report": text, "receipt": receipt, "task": done, "next": following, "member": member}


def _reporter(context: Context, caller: Caller, session: str | None) -> Row:
    me = calling_row(context, caller)
    row = context.registry.view().find(session) if session else me
    if row is None:
        raise Usage("a session reports", hint="run it inside of one, or name it with --session")
    if me is not None and me["id"] != row["id"]:
        raise NotAllowed(f"'{me['name']}' does not report for '{row['name']}'")
    return row


def _finish(
    draft: Transaction,
    context: Context,
    row: Row,
    number: int | None,
    result: str,
    *,
    by: str,
    target: Row | None,
) -> tuple[str, str, dict[str, Any] | None]:
    """End the task and record the report: its words, and the id of the message that carries them."""
    member, _ = membership(draft, context, row)
    if member is None or not teams.is_open(member):
        raise Refused(f"'{row['name']}' is in no team", hint="mam register --role ROLE joins one")
    found, conversation = _task(draft, row, number), current_conversation(row)
    if found is None:
        text = team_rules.report_line(member.role, result, conversation)
        sent = messages.find(draft, member.report_id or "")
        message_id = sent.id if sent is not None and sent.text == text else messages.new_id()
    elif found.status == rules.DONE:
        text = team_rules.report_line(rules.shown(found.seq), found.result or result, conversation)
        message_id = found.report_id or messages.new_id()
    else:
        text = team_rules.report_line(rules.shown(found.seq), result, conversation)
        message_id = messages.new_id()
    if found is not None:
        found = tasks.finish(draft, found.seq, found.result or result, message_id)
    if target is not None:
        # In the same transaction: a task that is done is told of, whoever dies now.
        messages.add(draft, written(message_id, row["id"], target, text))
    teams.update(draft, member, report_id=message_id, reported_at=None)
    draft.log(by, "report", row, result, task=rules.shown(found.seq) if found else None)
    return text, message_id, team_page.described(draft, found) if found else None


def _task(draft: Transaction, row: Row, number: int | None) -> Task | None:
    if number is None:
        return next(iter(tasks.claimed(draft, row["id"])), None)
    found = tasks.find(draft, number)
    if found is None:
        raise TaskNotFound(f"there is no {rules.shown(number)}", hint="mam task list")
    if found.claimed_by != row["id"]:
        raise Conflict(f"{rules.shown(number)} is not claimed by '{row['name']}'", hint="mam task list")
    return found


def _may_write(context: Context, row: Row, target: Row) -> bool:
    try:
        check_writer(context, callers.session(row["id"]), target)
    except NotAllowed:
        return False
    return True


def _send(context: Context, row: Row, text: str, message_id: str, target: Row | None) -> dict[str, Any]:
    """Tell the spawner, or the master where the spawner has ended; a person reads it in the session file."""
    if target is None:
        return {"message_id": message_id, "session": None, "state": RECORDED, "evidence": "session file"}
    # One that is repeated goes where it went, though somebody else is to be told by now.
    known = context.registry.peek(lambda draft: messages.find(draft, message_id), None)
    sender = callers.session(row["id"])
    try:
        if known is not None:
            return send(context, sender, known.session_id, known.text, message_id=message_id)
        return send(context, sender, target["id"], text, message_id=message_id)
    except MamError as error:
        # The task is done all the same; the box stays open, and the session file says why.
        context.warn(f"the report did not go out: {error}")
        return {
            "message_id": message_id,
            "session": target["name"],
            "state": MessageState.FAILED,
            "evidence": None,
            "reason": error.message,
        }


def _spawner(context: Context, row: Row) -> Row | None:
    """Return who is told: an agent whose box can be seen. Anybody else reads the session file."""
    rows = {
        one.get("id"): one for one in context.registry.view().rows if context.kind(one["agent"]).reads_screen
    }
    parent = rows.get(row.get("parent"))
    if parent is not None and is_running(parent):
        return parent
    master = rows.get(context.registry.peek(lambda draft: _master(draft, row), None))
    if master is not None and master["id"] != row["id"] and is_running(master):
        return master
    return parent


def _master(draft: Transaction, row: Row) -> str | None:
    member = teams.member(draft, row["id"])
    team = teams.find(draft, member.team_id) if member else None
    return team.master_id if team else None


def _next(draft: Transaction, row: Row, receipt: dict[str, Any], by: str) -> dict[str, Any] | None:
    """Tick the box of a report that arrived; hand out the next task, or say that all is done."""
    member = teams.member(draft, row["id"])
    assert member is not None
    state = receipt["state"]
    facts: dict[str, Any] = {"state": team_rules.ACTIVE}
    if state in (*DELIVERED, RECORDED):
        facts["reported_at"] = draft.now
    if state == MessageState.FAILED:
        line = f"{receipt['message_id']} from {member.name}: {state}: {receipt.get('reason') or '-'}"
        teams.note(draft, member.team_id, receipt["message_id"], line)
    at = tasks.claimed(draft, row["id"])
    found = at[0] if at else tasks.oldest(draft, member.role, member.team_id)
    if found is None:
        facts["state"] = team_rules.READY
    elif not at:
        found = take(draft, found, row["id"], row, by=by)
    teams.update(draft, member, **facts)
    return team_page.described(draft, found) if found else None


def _described(draft: Transaction, context: Context, row: Row) -> tuple[dict[str, Any], str]:
    member: Member | None
    member, _ = membership(draft, context, row)
    assert member is not None
    return team_page.describe(draft, member), member.team_id
