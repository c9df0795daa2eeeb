"""Close a member of a team: once its boxes are ticked, with its own exit first, and never the wrong pane."""

from __future__ import annotations

from mam.adapters.store.tables import messages, tasks, teams
from mam.app.context.liveness import see_one
from mam.app.sessions.forget import remove_dead_pane
from mam.app.sessions.stop import stop
from mam.app.teams import team_page
from mam.app.teams.caller_pane import here
from mam.app.teams.rebalance import arrange
from mam.core import team as rules
from mam.core.errors import NotAllowed, Refused
from mam.core.liveness import Liveness
from mam.core.message import DELIVERED
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.teams import Member, Team
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

CANNOT_RESUME = "-"


def close(context: Context, caller: Caller, target: str, *, force: bool = False) -> dict[str, Any]:
    """End a member and its pane, and put the window in order; `{session, member, changed, note}`.

    Refused while a box is not ticked, unless forced; never the caller's own pane, never a master's.
    """
    row = context.registry.view().find(target)
    member, team = context.registry.note(lambda draft: membership(draft, context, row))
    if member is None or team is None:
        raise Refused(f"'{row['name']}' is in no team", hint=f"mam stop {row['name']} ends a session")
    if not teams.is_open(member):
        return _answer(context, row, changed=False, note="closed already")
    check_may(context, caller, row, team)
    note = None
    if not is_running(row) or see_one(context, row).state in (Liveness.DEAD, Liveness.GONE, Liveness.LOOSE):
        note = "it had ended already"
    elif not force:
        _check_boxes(context, member)
    if is_running(row):
        row = stop(context, caller, row["id"], reason="closed").row
    else:
        remove_dead_pane(context, row)
    mark_closed(context, caller, member)
    arrange(context, team.id)
    team_page.write(context, [team.id])
    return _answer(context, row, changed=True, note=note)


def is_member(context: Context, target: str) -> bool:
    """Tell whether a session is a member of a team and has its pane still. Reads only."""
    session_id = context.registry.view().find(target)["id"]
    found: Member | None = context.registry.peek(lambda draft: teams.member(draft, session_id), None)
    return found is not None and teams.is_open(found)


def membership(draft: Transaction, context: Context, row: Row) -> tuple[Member | None, Team | None]:
    """Return a membership with what is known by now: the conversation, and whether the report came."""
    found = teams.member(draft, row["id"])
    if found is None:
        return None, None
    facts: dict[str, Any] = {}
    if found.reported_at is None and found.report_id is not None:
        sent = messages.find(draft, found.report_id)
        if sent is not None and sent.state in DELIVERED:
            facts["reported_at"] = draft.now
    conversation = saved_conversation(context, row)
    if conversation and conversation != found.conversation and teams.is_open(found):
        facts["conversation"] = conversation
    if facts:
        found = teams.update(draft, found, **facts)
    return found, teams.find(draft, found.team_id)


def saved_conversation(context: Context, row: Row) -> str | None:
    """Return the id that a session could be resumed by; `-` for a kind that has none."""
    return current_conversation(row) or (None if context.kind(row["agent"]).can_resume else CANNOT_RESUME)


def check_may(context: Context, caller: Caller, row: Row, team: Team) -> None:
    """Refuse to close the pane that the caller sits in, a master's, or a neighbour's."""
    place, who = here(context, caller), caller.name
    pane = (row["pane"].get("id"), row["pane"].get("server_pid"))
    if who == row["id"] or (place is not None and (place.pane.id, place.pane.server_pid) == pane):
        raise NotAllowed(f"'{row['name']}' is where this command runs", hint="whoever started it closes it")
    nothing: list[Team] = []
    for one in context.registry.peek(teams.listed, nothing):
        if row["id"] == one.master_id or (one.master_pane, one.server_pid) == pane:
            raise NotAllowed(
                f"'{row['name']}' is the master of the team {one.id}", hint="mam team down first"
            )
    if who not in ("user", team.master_id, team.by, row.get("parent")):
        raise NotAllowed(
            f"only the master closes '{row['name']}'", hint="mam report tells it that you are done"
        )


def _check_boxes(context: Context, member: Member) -> None:
    nothing = dict.fromkeys(rules.BOXES, False)
    ticked = context.registry.peek(lambda draft: team_page.boxes(draft, member), nothing)
    missing = [rules.BOXES[box] for box in rules.BOXES if not ticked[box]]
    if missing:
        raise Refused(
            f"'{member.name}' is not ready to be closed; missing: {', '.join(missing)}",
            hint=f"it says so with mam report; mam close {member.name} --force closes it all the same",
        )


def mark_closed(context: Context, caller: Caller, member: Member) -> list[int]:
    """Record that a member's pane is gone; what it had not finished waits again. Returns those tasks."""
    who = caller.name

    def work(draft: Transaction) -> list[int]:
        current = draft.get(member.session_id)
        released = tasks.release(draft, member.session_id)
        found = (saved_conversation(context, current) if current else None) or member.conversation
        teams.update(draft, member, state=rules.CLOSED, closed_at=draft.now, owner=None, conversation=found)
        draft.log(who, "close", current, team=member.team_id, released=released)
        return released

    return context.registry.note(work)


def _answer(context: Context, row: Row, *, changed: bool, note: str | None) -> dict[str, Any]:
    def read(draft: Transaction) -> dict[str, Any] | None:
        found = teams.member(draft, row["id"])
        return team_page.describe(draft, found) if found else None

    member = context.registry.peek(read, None)
    return {"session": row, "member": member, "changed": changed, "note": note}
