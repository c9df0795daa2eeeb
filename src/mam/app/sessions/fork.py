"""Fork a session: start a second session from a copy of its conversation."""

from __future__ import annotations

import uuid

from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.system import process
from mam.app.context import claims
from mam.app.observation import conversations
from mam.app.sessions import launch, row_trust
from mam.app.sessions.create import bind, wait_until_ready
from mam.core import names
from mam.core.errors import IllegalTransition, NameTaken, Refused
from mam.core.session_row import has_mcp_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create import StartPlan
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def fork(
    context: Context,
    caller: Caller,
    target: str,
    *,
    name: str | None = None,
    role: str | None = None,
    wait: bool = True,
    run_recorded: bool = False,
    timeout: float | None = None,
) -> Row:
    """Start a new session whose conversation begins as a copy. The source session does not change."""
    new_name = names.parse_name(name) if name else None
    role = names.parse_role(role)
    source = context.registry.view().find(target)
    taken = {pane.session_name for pane in context.tmux(source["tmux_server"]).panes().panes}
    plan = claims.commit_claim(
        context,
        lambda transaction: claim(
            context,
            caller,
            transaction,
            source["id"],
            new_name,
            role=role,
            taken=taken,
            run_recorded=run_recorded,
        ),
    )
    try:
        row = start(context, caller, plan)
    except BaseException as error:
        claims.release_after_error(context, plan["id"], plan["at"], error)
        raise
    if wait:
        row = wait_until_ready(context, caller, row, plan["launch_file"], trust=False, seconds=timeout)
    return row


def claim(
    context: Context,
    caller: Caller,
    transaction: Transaction,
    target: str,
    name: str | None,
    *,
    role: str | None,
    taken: set[str],
    run_recorded: bool,
) -> StartPlan:
    """Commit the intent of a fork under `name`, or under a free name beside the `taken` ones."""
    source = transaction.find(target)
    kind = context.kind(source["agent"])
    if not kind.can_fork:
        raise Refused(f"{source['agent']} cannot fork a conversation")
    launch.check_recorded_workspace(context, source["workspace"])
    row_trust.refuse(context, caller, source, run_recorded=run_recorded)
    row_trust.refuse_flaws(source)
    choice = conversations.resume_choice(context, source, transaction.rows(), transaction.identities())
    if not choice.on_disk:
        raise IllegalTransition(
            f"'{source['name']}' has no conversation on disk to fork", hint="send it a prompt first"
        )
    session_id = new_session_id()
    row: Row = {
        "id": session_id,
        "name": name or _free_name(transaction, source, taken),
        "agent": source["agent"],
        "role": role or source.get("role"),
        "workspace": source["workspace"],
        "tmux_server": source["tmux_server"],
        "start_command": source["start_command"],
        "permissions": source.get("permissions") or "default",
        "model": source.get("model"),
        "stores": {**(source.get("stores") or {}), **kind.session_variables()},
        "parent": source["id"],
    }
    if transaction.named(row["name"]) or not claims.is_free(transaction, session_id, row["name"]):
        raise NameTaken(
            f"a session named '{row['name']}' is registered already",
            hint="choose another name with --session",
        )
    plan: StartPlan = {
        "id": session_id,
        "at": transaction.now,
        "anew": False,
        "row": row,
        "launch_file": launch.new_launch_file(context, session_id),
        "conversation": str(uuid.uuid4()) if kind.takes_conversation_id else None,
        "fork_of": choice.id,
        "mcp": has_mcp_server(source),
    }
    transaction.intents.put(claims.new_intent(session_id, row["name"], "fork", transaction.now, plan))
    transaction.log(caller.name, "fork", source, into=row["name"])
    return plan


def _free_name(transaction: Transaction, source: Row, taken: set[str]) -> str:
    for number in range(1, 1000):
        name = names.default_name(source["workspace"], source["agent"], number)
        if transaction.named(name) is None and name not in taken:
            return name
    raise NameTaken("no default name is free", hint="choose a name with --session")


def start(context: Context, caller: Caller, plan: StartPlan) -> Row:
    """Start the agent of a claimed fork, and commit its row."""
    row: Row = plan["row"]
    conversations.take_lease(context, row, plan["conversation"], process.me())
    context.progress(f"forking into {row['name']}")
    started_agent = launch.launch_agent(
        context,
        row,
        plan["launch_file"],
        mcp=plan["mcp"],
        conversation=plan["conversation"],
        fork_of=plan["fork_of"],
    )
    return launch.commit_start(
        context, row, started_agent, lambda: bind(context, caller, plan, started_agent)
    )
