"""Close a member of a team when its checklist is complete: stop its session and remove its pane."""

from __future__ import annotations

from mam.adapters.store.tables import messages, tasks, teams
from mam.app.context.liveness import check_liveness
from mam.app.messages.launch_end import end_messages
from mam.app.sessions.forget import remove_dead_pane
from mam.app.sessions.stop import stop
from mam.app.teams import team_page
from mam.app.teams.caller_pane import find_caller_pane, is_master
from mam.app.teams.rebalance import arrange
from mam.core import team_plan as rules
from mam.core.errors import NotAllowed, Refused
from mam.core.liveness_values import Liveness
from mam.core.message_rules import MessageState
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Member, Team
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

CANNOT_RESUME = "-"


def close(
    context: Context, caller: Caller, target: str, *, force: bool = False, accept: bool = False
) -> dict[str, Any]:
    """End a member and its pane, and rearrange the window; return `{session, member, changed, note}`.

    Raise Refused while the checklist is incomplete, unless `force` is set. With `accept` the caller takes the
    report of the member as received, although nothing proves that. The caller's own pane and a master's pane
    are never closed.
    """
    row = context.registry.view().find(target)
    _check_no_master(context, row)
    member, team = context.registry.note(lambda transaction: refresh_membership(transaction, context, row))
    if member is None or team is None:
        raise Refused(f"'{row['name']}' is in no team", hint=f"mam stop {row['name']} ends a session")
    if not teams.is_open(member):
        return _result(context, row, changed=False, note="closed already")
    check_may_close(context, caller, row, team)
    has_ended = not is_running(row) or check_liveness(context, row).state in (
        Liveness.DEAD,
        Liveness.GONE,
        Liveness.LOOSE,
    )
    note = "the session had ended already" if has_ended else None

    def check(transaction: Transaction) -> None:
        if accept:
            _accept(transaction, caller, row)
        if not has_ended and not force:
            _check_checklist(transaction, row)

    # In one transaction: a refusal takes the acceptance back.
    context.registry.note(check)
    if is_running(row):
        row = stop(context, caller, row["id"], reason="closed").row
    else:
        remove_dead_pane(context, row)
    mark_closed(context, caller, member)
    arrange(context, team.id)
    team_page.write(context, [team.id])
    return _result(context, row, changed=True, note=note)


def is_member(context: Context, target: str) -> bool:
    """Tell whether a session is a member of a team that is not closed yet. Reads only."""
    session_id = context.registry.view().find(target)["id"]
    member: Member | None = context.registry.peek(
        lambda transaction: teams.member(transaction, session_id), None
    )
    return member is not None and teams.is_open(member)


def refresh_membership(
    transaction: Transaction, context: Context, row: Row
) -> tuple[Member | None, Team | None]:
    """Update the conversation and the report of a membership; return the membership and its team."""
    member = teams.member(transaction, row["id"])
    if member is None:
        return None, None
    facts: dict[str, Any] = {}
    if member.reported_at is None and team_page.is_reported(transaction, member):
        facts["reported_at"] = transaction.now
    conversation = saved_conversation(context, row)
    if conversation and conversation != member.conversation and teams.is_open(member):
        facts["conversation"] = conversation
    if facts:
        member = teams.update(transaction, member, **facts)
    return member, teams.find(transaction, member.team_id)


def saved_conversation(context: Context, row: Row) -> str | None:
    """Return the conversation that a resume would use; `-` for a kind that cannot resume."""
    return current_conversation(row) or (None if context.kind(row["agent"]).can_resume else CANNOT_RESUME)


def check_may_close(context: Context, caller: Caller, row: Row, team: Team) -> None:
    """Refuse to close the caller's own pane, a master's pane, or a member of somebody else."""
    _check_no_master(context, row)
    caller_pane, caller_name = find_caller_pane(context, caller), caller.name
    pane = _pane_of(row)
    if caller_name == row["id"] or (
        caller_pane is not None and (caller_pane.pane.id, caller_pane.pane.server_pid) == pane
    ):
        raise NotAllowed(
            f"'{row['name']}' is where this command runs", hint="the session that started it closes it"
        )
    may_close = caller_name in ("user", team.by, row.get("parent")) or is_master(context, caller, team)
    if not may_close:
        raise NotAllowed(
            f"only the master closes '{row['name']}'", hint="mam report tells the master that you are done"
        )


def _check_no_master(context: Context, row: Row) -> None:
    """Refuse to close the master of a team that is up, which is not always a member of a team itself."""
    no_teams: list[Team] = []
    for team in context.registry.peek(teams.listed, no_teams):
        is_in_its_pane = team.master_pane is not None and (team.master_pane, team.server_pid) == _pane_of(row)
        if row["id"] == team.master_id or is_in_its_pane:
            raise NotAllowed(
                f"'{row['name']}' is the master of the team {team.id}",
                hint=f"mam team down {team.id} first; mam stop {row['name']} ends the session",
            )


def _pane_of(row: Row) -> tuple[str | None, int | None]:
    return row["pane"].get("id"), row["pane"].get("server_pid")


def _accept(transaction: Transaction, caller: Caller, row: Row) -> None:
    """Record that the caller has the report of a member, although nothing proves that it arrived."""
    member = teams.member(transaction, row["id"])
    assert member is not None
    if team_page.is_reported(transaction, member):
        return
    report = messages.find(transaction, member.report_id or "")
    force = f"mam close {member.name} --force closes it anyway"
    if report is None:
        raise Refused(
            f"there is no report of '{member.name}' to accept", hint=f"the member runs mam report; {force}"
        )
    if report.state == MessageState.FAILED:
        raise Refused(
            f"the report of '{member.name}' failed, and nobody got it: {report.reason or '-'}",
            hint=f"the member runs mam report once more; {force}",
        )
    if report.state != MessageState.UNCONFIRMED:
        raise Refused(
            f"the report of '{member.name}' is not typed yet: {report.reason or 'mam is typing it'}",
            hint=f"repeat this once it has arrived: mam inbox {member.name} --sent; {force}",
        )
    transaction.log(caller.name, "accept", row, report.reason, message=report.id, state=report.state)
    teams.update(transaction, member, reported_at=transaction.now)


def _check_checklist(transaction: Transaction, row: Row) -> None:
    member = teams.member(transaction, row["id"])
    assert member is not None
    checklist = team_page.checklist(transaction, member)
    missing = [rules.CHECKLIST[item] for item in rules.CHECKLIST if not checklist[item]]
    if missing:
        way = "the member runs mam report"
        report = messages.find(transaction, member.report_id or "")
        is_unproven = report is not None and report.state == MessageState.UNCONFIRMED
        if missing == [rules.CHECKLIST["reported"]] and is_unproven:
            way = f"mam close {member.name} --accept takes its report, which nothing proves"
        raise Refused(
            f"'{member.name}' is not ready to be closed; missing: {', '.join(missing)}",
            hint=f"{way}; mam close {member.name} --force closes it anyway",
        )


def mark_closed(context: Context, caller: Caller, member: Member) -> list[int]:
    """Record that a member is closed, release its unfinished tasks, and return their numbers."""
    caller_name = caller.name

    def work(transaction: Transaction) -> list[int]:
        current = transaction.get(member.session_id)
        released = tasks.release(transaction, member.session_id)
        conversation = (saved_conversation(context, current) if current else None) or member.conversation
        teams.update(
            transaction,
            member,
            state=rules.CLOSED,
            closed_at=transaction.now,
            owner=None,
            conversation=conversation,
            unfinished=len(released),
        )
        if current is not None:
            end_messages(transaction, current, f"'{member.name}' was closed", by=caller_name)
        transaction.log(caller_name, "close", current, team=member.team_id, released=released)
        return released

    return context.registry.note(work)


def _result(context: Context, row: Row, *, changed: bool, note: str | None) -> dict[str, Any]:
    def read(transaction: Transaction) -> dict[str, Any] | None:
        membership = teams.member(transaction, row["id"])
        return team_page.describe_member(transaction, membership) if membership else None

    member = context.registry.peek(read, None)
    return {"session": row, "member": member, "changed": changed, "note": note}
