"""Whether the caller may do something to another session: a person always, a session as the settings say."""

from __future__ import annotations

from mam.adapters.store import teams
from mam.app import caller
from mam.core import authority
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.draft import Draft
    from mam.app.world import World
    from mam.core.row import Row

_HINT = "a person sets it, in config.toml in ~/.config/mam"


def check_writer(world: World, target: Row) -> str:
    """Return who calls; raise NotAllowed where that session may not write to the target."""
    me = caller.actor(world)
    if me == "user":
        return me
    if me == target["id"]:
        raise NotAllowed("a session does not write to itself")
    rule = world.settings().messages
    if rule != authority.ALL:
        sender = world.registry.view().find(me)
        share = world.registry.peek(lambda draft: _share_team(draft, me, target["id"]), False)
        if not authority.may_write(rule, sender, target, share_team=share):
            raise NotAllowed(
                f"the setting 'messages' lets '{sender['name']}' not write to '{target['name']}'", hint=_HINT
            )
    return me


def check_answerer(world: World, target: Row) -> str:
    """Return who calls; raise NotAllowed where that session may not answer the target's dialogs."""
    me = caller.actor(world)
    if me == "user":
        return me
    sender = world.registry.view().find(me)
    if not authority.may_answer(world.settings().answers, sender, target):
        raise NotAllowed(
            f"the setting 'answers' lets '{sender['name']}' not answer for '{target['name']}'", hint=_HINT
        )
    return me


def _share_team(draft: Draft, one: str, other: str) -> bool:
    mine = _team_of(draft, one)
    return mine is not None and mine == _team_of(draft, other)


def _team_of(draft: Draft, session_id: str) -> str | None:
    """Return the team of a session, as its member or as its master."""
    member = teams.member(draft, session_id)
    if member is not None and teams.is_open(member):
        return member.team_id
    return next((one.id for one in teams.listed(draft) if one.master_id == session_id), None)
