"""Fork a session: a second one that starts from a copy of the conversation."""

from __future__ import annotations

import uuid

from mam.adapters.store.transaction import new_session_id
from mam.adapters.system import process
from mam.app.context import caller, claims
from mam.app.observation import conversations
from mam.app.sessions import launch, untrusted_rows
from mam.app.sessions.create import bind, wait_until_ready
from mam.core import names
from mam.core.errors import IllegalTransition, NameTaken, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import World
    from mam.core.session_row import Row


def fork(
    world: World,
    target: str,
    *,
    name: str | None = None,
    role: str | None = None,
    wait: bool = True,
    timeout: float | None = None,
) -> Row:
    """Start a new session whose conversation begins as a copy of another's; the other is not touched."""
    wanted = names.parse_name(name) if name else None
    role = names.parse_role(role)
    source = world.registry.view().find(target)
    taken = {pane.session_name for pane in world.tmux(source["tmux_server"]).panes().panes}
    plan = claims.claim(
        world, lambda draft: _claim(world, draft, source["id"], wanted, role=role, taken=taken)
    )
    try:
        row = _start(world, plan)
    except BaseException as error:
        claims.let_go(world, plan["id"], plan["at"], error)
        raise
    if wait:
        row = wait_until_ready(world, row, plan["launch_file"], trust=False, seconds=timeout)
    return row


def _claim(
    world: World, draft: Transaction, target: str, name: str | None, *, role: str | None, taken: set[str]
) -> dict[str, Any]:
    source = draft.find(target)
    kind = world.kind(source["agent"])
    if not kind.can_fork:
        raise Refused(f"{source['agent']} cannot fork a conversation")
    launch.check_workspace(source["workspace"])
    untrusted_rows.refuse(world, source, trust=False)
    choice = conversations.resume_choice(world, source, draft.rows(), draft.identities())
    if not choice.on_disk:
        raise IllegalTransition(
            f"'{source['name']}' has no conversation on disk to fork", hint="give it a prompt first"
        )
    session_id = new_session_id()
    row: Row = {
        "id": session_id,
        "name": name or _free_name(draft, source, taken),
        "agent": source["agent"],
        "role": role or source.get("role"),
        "workspace": source["workspace"],
        "tmux_server": source["tmux_server"],
        "start_command": source["start_command"],
        "permissions": source.get("permissions") or "default",
        "model": source.get("model"),
        "stores": {**(source.get("stores") or {}), **kind.marks()},
        "parent": source["id"],
    }
    if draft.named(row["name"]) or not claims.is_free(draft, session_id, row["name"]):
        raise NameTaken(
            f"a session named '{row['name']}' is registered already", hint="choose another with --session"
        )
    plan = {
        "id": session_id,
        "at": draft.now,
        "anew": False,
        "row": row,
        "launch_file": launch.new_launch_file(world, session_id),
        "conversation": str(uuid.uuid4()) if kind.chooses_id else None,
        "fork_of": choice.id,
        "mcp": launch.has_tools(source),
    }
    draft.intents.put(claims.new_intent(session_id, row["name"], "fork", draft.now, plan))
    draft.log(caller.actor(world), "fork", source, into=row["name"])
    return plan


def _free_name(draft: Transaction, source: Row, taken: set[str]) -> str:
    for number in range(1, 1000):
        name = names.default_name(source["workspace"], source["agent"], number)
        if draft.named(name) is None and name not in taken:
            return name
    raise NameTaken("no free name is left", hint="give one with --session")


def _start(world: World, plan: dict[str, Any]) -> Row:
    row: Row = plan["row"]
    conversations.take_lease(world, row, plan["conversation"], process.me())
    world.progress(f"forking into {row['name']}")
    started = launch.run(
        world,
        row,
        plan["launch_file"],
        mcp=plan["mcp"],
        conversation=plan["conversation"],
        fork_of=plan["fork_of"],
    )
    return launch.bound(world, row, started, lambda: bind(world, plan, started))
