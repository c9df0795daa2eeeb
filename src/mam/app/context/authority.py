"""Whether the caller may do something to another session: `core/authority.py` on the registry as it is."""

from __future__ import annotations

import os

from mam.adapters.store.tables import teams
from mam.core import authority, names
from mam.core.errors import NotAllowed
from mam.core.session_row import Status, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_HINT = "a person sets it, in config.toml in ~/.config/mam"


def check_writer(context: Context, caller: Caller, target: Row) -> str:
    """Return who calls; raise NotAllowed where that session may not write to the target."""
    me = caller.name
    if caller.is_user:
        return me
    if me == target["id"]:
        raise NotAllowed("a session does not write to itself")
    rule = context.settings().messages
    if rule != authority.ALL:
        sender = context.registry.view().find(me)
        share = context.registry.peek(lambda draft: _share_team(draft, me, target["id"]), False)
        if not authority.may_write(rule, sender, target, share_team=share):
            raise NotAllowed(
                f"the setting 'messages' lets '{sender['name']}' not write to '{target['name']}'", hint=_HINT
            )
    return me


def check_answerer(context: Context, caller: Caller, target: Row) -> str:
    """Return who calls; raise NotAllowed where that session may not answer the target's dialogs."""
    me = caller.name
    if caller.is_user:
        return me
    sender = context.registry.view().find(me)
    if not authority.may_answer(context.settings().answers, sender, target):
        raise NotAllowed(
            f"the setting 'answers' lets '{sender['name']}' not answer for '{target['name']}'", hint=_HINT
        )
    return me


def check(context: Context, caller: Caller, act: str, target: str) -> Row:
    """Return the session that is meant, or refuse."""
    view = context.registry.view()
    row = view.find(target)
    authority.check(act, caller.name, row, view.rows, context.settings().mcp, masters=_masters(context))
    return row


def reachable(context: Context, caller: Caller, act: str) -> list[str]:
    """Return the ids of the sessions to which the caller may do something."""
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
    return {one.master_id for one in context.registry.peek(teams.listed, none) if one.master_id}


def check_child(
    context: Context, caller: Caller, agent: str, permissions: str | None, usual: str, name: str | None = None
) -> str | None:
    """Return the permissions that a child of the caller runs with, or refuse the birth.

    The operator's own wish is left as it is; None means what the settings say, or the program does. A `name`
    of a session that has ended starts that one anew: it must be one that the caller may resume.
    """
    me = caller.name
    if caller.is_user:
        return permissions
    view = context.registry.view()
    own = view.find(me)
    authority.check_birth(me, view.rows)
    _check_directory(context, own)
    if any(row["name"] == name for row in view.rows):
        check(context, caller, "resume", name or "")
    kind, has = context.kind(names.parse_kind(agent)), own.get("permissions") or "default"
    if not kind.is_known and context.kind(own["agent"]).is_known:
        authority.check_program(agent, has)
    given = authority.child_permissions(permissions, usual, has)
    return given if permissions or kind.takes_permissions else None


def check_child_limit(context: Context, caller: Caller, draft: Transaction) -> None:
    """Refuse one child too many where it is claimed: calls that came at once see each other only there."""
    coming = [one.data["row"] for one in draft.intents.all() if one.verb == "create"]
    rows = {
        row["id"]: row for row in (*draft.rows(), *(merged(row, status=Status.RUNNING) for row in coming))
    }
    authority.check_birth(caller.name, list(rows.values()))


def _check_directory(context: Context, own: Row) -> None:
    """A session starts others where it works itself, or elsewhere in its root."""
    wanted = os.path.join(context.workspace, "")
    if not any(wanted.startswith(os.path.join(one, "")) for one in (context.paths.root, own["workspace"])):
        raise NotAllowed(
            f"a session starts others below {context.paths.root}, not in {context.workspace}",
            hint="name a directory of this root",
        )


def _share_team(draft: Transaction, one: str, other: str) -> bool:
    mine = _team_of(draft, one)
    return mine is not None and mine == _team_of(draft, other)


def _team_of(draft: Transaction, session_id: str) -> str | None:
    """Return the team of a session, as its member or as its master."""
    member = teams.member(draft, session_id)
    if member is not None and teams.is_open(member):
        return member.team_id
    return next((one.id for one in teams.listed(draft) if one.master_id == session_id), None)
