"""Whether the caller may do something to another session.

The rules are pure and lie in `core/authority.py`; this module applies them to the registry and the settings.
"""

from __future__ import annotations

import os

from mam.adapters.store.tables import teams
from mam.core import authority, names, verb_rights
from mam.core.errors import NotAllowed
from mam.core.session_row import Status, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_HINT = "a person can change this setting in ~/.config/mam/config.toml"


def check_sender(context: Context, caller: Caller, target: Row) -> str:
    """Return the name of the caller; raise NotAllowed where the caller may not message the target."""
    me = caller.name
    if caller.is_user:
        return me
    if me == target["id"]:
        raise NotAllowed("a session cannot message itself")
    rule = context.settings().messages
    if rule != authority.ALL:
        sender = context.registry.view().find(me)
        share = context.registry.peek(lambda transaction: _share_team(transaction, me, target["id"]), False)
        if not authority.may_message(rule, sender, target, share_team=share):
            raise NotAllowed(
                f"the setting 'messages' does not let '{sender['name']}' message '{target['name']}'",
                hint=_HINT,
            )
    return me


def check_answerer(context: Context, caller: Caller, target: Row) -> str:
    """Return the name of the caller; raise NotAllowed where it may not answer the target's dialogs."""
    me = caller.name
    if caller.is_user:
        return me
    sender = context.registry.view().find(me)
    if not authority.may_answer(context.settings().answers, sender, target):
        raise NotAllowed(
            f"the setting 'answers' does not let '{sender['name']}' answer dialogs of '{target['name']}'",
            hint=_HINT,
        )
    return me


def check(context: Context, caller: Caller, act: str, target: str) -> Row:
    """Return the row of the target; raise NotAllowed where the caller may not do the act to it."""
    view = context.registry.view()
    row = view.find(target)
    authority.check(act, caller.name, row, view.rows, context.settings().mcp, masters=_masters(context))
    return row


def reachable(context: Context, caller: Caller, act: str) -> list[str]:
    """Return the ids of the sessions to which the caller may do the act."""
    me, rows, grants, masters = (
        caller.name,
        context.registry.view().rows,
        context.settings().mcp,
        _masters(context),
    )

    def may(row: Row) -> bool:
        try:
            authority.check(act, me, row, rows, grants, masters=masters)
        except NotAllowed:
            return False
        return True

    return [row["id"] for row in rows if row.get("id") and may(row)]


def _masters(context: Context) -> set[str]:
    none: list[teams.Team] = []
    return {team.master_id for team in context.registry.peek(teams.listed, none) if team.master_id}


def check_child(
    context: Context, caller: Caller, agent: str, permissions: str | None, usual: str, name: str | None = None
) -> str | None:
    """Return the permissions for a new child of the caller; raise NotAllowed where it may not start one.

    The operator's choice stays as it is. None means that the settings or the program decide. Where `name` is
    a session that has ended, that session starts again: the caller must be allowed to resume it.
    """
    me = caller.name
    if caller.is_user:
        return permissions
    view = context.registry.view()
    own = view.find(me)
    authority.check_child_limit(me, view.rows)
    _check_directory(context, own)
    if any(row["name"] == name for row in view.rows):
        check(context, caller, "resume", name or "")
    kind, own_permissions = context.kind(names.parse_kind(agent)), own.get("permissions") or "default"
    if not kind.is_known and context.kind(own["agent"]).is_known:
        authority.check_program(agent, own_permissions)
    granted = authority.child_permissions(permissions, usual, own_permissions)
    return granted if permissions or kind.takes_permissions else None


def check_child_limit(context: Context, caller: Caller, transaction: Transaction) -> None:
    """Raise NotAllowed for one child too many, inside the transaction that claims the child.

    Several calls at the same time learn of each other only there.
    """
    starting = [intent.data["row"] for intent in transaction.intents.all() if intent.verb == "create"]
    rows = {
        row["id"]: row
        for row in (*transaction.rows(), *(merged(row, status=Status.RUNNING) for row in starting))
    }
    authority.check_child_limit(caller.name, list(rows.values()))


def _check_directory(context: Context, own: Row) -> None:
    """Raise NotAllowed unless a new session starts in the root, or where the calling session works."""
    directory = os.path.join(context.workspace, "")
    allowed = (context.paths.root, own["workspace"])
    if not any(directory.startswith(os.path.join(parent, "")) for parent in allowed):
        raise NotAllowed(
            f"a session can start others only below {context.paths.root}, not in {context.workspace}",
            hint="name a directory of this root",
        )


def _share_team(transaction: Transaction, session_id: str, other_id: str) -> bool:
    team = _team_of(transaction, session_id)
    return team is not None and team == _team_of(transaction, other_id)


def _team_of(transaction: Transaction, session_id: str) -> str | None:
    """Return the team in which a session is a member, or the master."""
    member = teams.member(transaction, session_id)
    if member is not None and teams.is_open(member):
        return member.team_id
    return next((team.id for team in teams.listed(transaction) if team.master_id == session_id), None)


def require_person(caller: Caller, command: str) -> None:
    """Raise NotAllowed where the caller is no person: nobody else decides what counts as trusted here."""
    verb_rights.check(caller, command.removeprefix("mam "))
