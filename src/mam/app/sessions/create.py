"""Create a session: a name, a row, a pane with the agent in it, and proof that it is ready.

The order is: check everything that can be checked, commit the intent, start the pane, commit the
row, wait. Whatever dies in between is finished or cleaned by the next changing verb.
"""

from __future__ import annotations

import uuid

from mam.adapters.store.tables import evidence
from mam.adapters.store.transaction import new_session_id
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.app.context import claims
from mam.app.observation import conversations
from mam.app.sessions import launch, untrusted_rows
from mam.app.sessions.create_options import CreateOptions
from mam.app.sessions.first_prompt import first_prompt, refuse_command
from mam.app.sessions.init import warn_of_network
from mam.app.sessions.readiness import Watch
from mam.core import names, transitions
from mam.core.errors import (
    InvalidName,
    MamError,
    NameTaken,
    NotReady,
    Refused,
    RegistryBusy,
    Unavailable,
    Usage,
)
from mam.core.session_row import Status, is_running, merged
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create_options import AllOptions
    from mam.app.sessions.launch import Started
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class StartPlan(TypedDict, total=False):
        """What recovery needs to know of a start that is cut off; the intent keeps it as JSON."""

        id: str
        at: float
        # Whether an ended session is started anew in its row.
        anew: bool
        row: Row
        launch_file: str
        mcp: bool
        conversation: str | None
        fork_of: str | None
        is_started: bool


_MOST_NUMBERS = 1000
_RENEWED = (
    "role",
    "start_command",
    "permissions",
    "model",
    "tmux_server",
    "stores",
    "workspace",
    "worktree",
    "parent",
    "delegate_job_id",
)


def create(context: Context, caller: Caller, agent: str | None, **options: Unpack[AllOptions]) -> Row:
    """Create a session and return its row once the agent is ready."""
    order = CreateOptions(context, agent, **options)
    row, launch_file = begin(context, caller, order)
    if order.wait:
        row = wait_until_ready(context, caller, row, launch_file, trust=order.trust, seconds=order.timeout)
        if order.prompt and context.kind(row["agent"]).takes_prompt:
            first_prompt(context, caller, row, order.prompt)
            row = conversations.capture(context, row)
    return row


def begin(context: Context, caller: Caller, order: CreateOptions) -> tuple[Row, str]:
    """Start a session; return its row and its launch file, which `wait_until_ready` wants."""
    if order.agent is None and order.name is None:
        raise Usage("name an agent kind", hint="mam create --agent claude")
    workspace = launch.check_workspace(context.workspace)
    order.look_for_names(context)
    plan = _reserve(context, caller, order, workspace)
    try:
        context.user_state.remember_root(context.paths.root, context.paths.yaml)
        warn_of_network(context)
        row = _start(context, caller, order, plan)
    except BaseException as error:
        if isinstance(error, Refused) or not plan.get("is_started"):
            drop_worktree(context, plan)
        claims.let_go(context, plan["id"], plan["at"], error)
        raise
    return row, plan["launch_file"]


def _reserve(context: Context, caller: Caller, order: CreateOptions, workspace: str) -> StartPlan:
    """Commit the intent: from here on the name is ours, and a death is noticed."""
    deadline = Deadline(claims.WAIT_SECONDS)
    while True:
        _check_program(context, order)
        plan = claims.claim(context, lambda draft: _claim(context, caller, draft, order, workspace))
        if plan is not None:
            return plan
        if not deadline.pause(claims.STEP):
            raise claims.busy(context, order.name or "")


def _check_program(context: Context, order: CreateOptions) -> None:
    if order.agent:
        kind = context.kind(order.agent)
        order.check_kind(kind)
        launch.find_program(context, kind, [order.agent, *order.args], {**context.environ, **order.env})
        if order.prompt and kind.takes_prompt:
            refuse_command(kind, order.prompt)


def _claim(
    context: Context, caller: Caller, draft: Transaction, order: CreateOptions, workspace: str
) -> StartPlan | None:
    name, old = _choose_name(context, caller, draft, order, workspace)
    session_id = old["id"] if old else new_session_id()
    if not claims.is_free(draft, session_id, name):
        if order.name:
            return None
        raise RegistryBusy(f"'{name}' is being worked on", hint="repeat the command")
    if old:
        untrusted_rows.refuse(context, old, trust=order.trust)
    if order.child_limit:
        from mam.app.context.authority import check_child_limit

        check_child_limit(context, caller, draft)
    row = old or _new_row(context, caller, order, session_id, name, workspace)
    changed = _renewed(context, caller, row, order) if old else row
    plan: StartPlan = {
        "id": session_id,
        "at": draft.now,
        "anew": bool(old),
        "row": changed,
        "launch_file": launch.new_launch_file(context, session_id),
        "mcp": order.mcp,
        "conversation": str(uuid.uuid4()) if context.kind(changed["agent"]).chooses_id else None,
    }
    draft.intents.put(claims.new_intent(session_id, name, "create", draft.now, plan))
    if order.also is not None:
        order.also(draft, changed)
    return plan


def _choose_name(
    context: Context, caller: Caller, draft: Transaction, order: CreateOptions, workspace: str
) -> tuple[str, Row | None]:
    if order.name:
        row = draft.named(order.name)
        if row and is_running(row):
            raise NameTaken(
                f"a session named '{order.name}' is running",
                hint=f"mam attach {order.name}, or choose another name",
            )
        if row is None and order.agent is None:
            raise Usage(f"'{order.name}' is not registered, so its agent must be named", hint="--agent KIND")
        if row and order.agent and order.agent != row["agent"]:
            raise Refused(
                f"'{order.name}' is a session of {row['agent']}, not of {order.agent}",
                hint=f"choose another name, or mam forget {order.name} first",
            )
        return order.name, row
    for number in range(1, _MOST_NUMBERS):
        name = (
            names.numbered(order.stem, number)
            if order.stem
            else names.default_name(workspace, order.agent or "", number)
        )
        row = draft.named(name)
        if not claims.is_free(draft, row["id"] if row else "", name):
            continue
        if (
            row is not None
            and not is_running(row)
            and _fits(row, order, workspace)
            and _may_renew(context, caller, row)
        ):
            return name, row
        if row is None and name not in order.taken:
            return name, None
    raise InvalidName("no free name is left", hint="give one with --session")


def _fits(row: Row, order: CreateOptions, workspace: str) -> bool:
    """Tell whether an ended session may be started anew: of this kind, workspace (or worktree) and role."""
    repository = (row.get("worktree") or {}).get("repo")
    is_here = row["workspace"] == workspace or bool(
        repository and f"{workspace}/".startswith(f"{repository}/")
    )
    is_same = row["agent"] == order.agent
    return is_same and is_here and (not order.role or row.get("role") in (None, order.role))


def _may_renew(context: Context, caller: Caller, row: Row) -> bool:
    """Tell whether the caller may have this one started anew unasked: a session, no other's options."""
    me = caller.name
    return me in ("user", row.get("parent")) or len(row.get("start_command") or ()) <= 1


def _new_row(
    context: Context, caller: Caller, order: CreateOptions, session_id: str, name: str, workspace: str
) -> Row:
    agent = order.agent or ""
    environ = {**context.environ, **order.env}
    row: Row = {
        "id": session_id,
        "name": name,
        "agent": agent,
        "role": order.role,
        "workspace": workspace,
        "tmux_server": order.server or context.server_name(None),
        "start_command": [agent, *order.args],
        "permissions": order.permissions or _usual_permissions(context, agent),
        "model": order.model,
        "stores": {**context.kind(agent).stores(environ), **context.kind(agent).marks()},
        "delegate_job_id": order.job,
        "parent": _parent(context, caller),
    }
    return row


def _parent(context: Context, caller: Caller) -> str | None:
    who = caller.name
    return None if who == "user" else who


def _usual_permissions(context: Context, agent: str) -> str:
    """Return what the settings say, where the kind can be told; else what the program does by itself."""
    wanted = context.settings().permissions
    if wanted == "default" or context.kind(agent).takes_permissions:
        return wanted
    context.warn(
        f"mam does not know how {agent} takes permissions: it runs with its own, not with '{wanted}'"
    )
    return "default"


def _renewed(context: Context, caller: Caller, row: Row, order: CreateOptions) -> Row:
    if order.role and row.get("role") and order.role != row["role"]:
        raise Refused(f"'{row['name']}' has the role '{row['role']}', which never changes")
    if not row.get("worktree"):
        launch.check_workspace(row["workspace"])
    command = row.get("start_command") or [row["agent"]]
    kind = context.kind(row["agent"])
    order.check_kind(kind)
    return merged(
        row,
        role=row.get("role") or order.role,
        start_command=[command[0], *order.args] if order.args else command,
        permissions=order.permissions or row.get("permissions") or "default",
        model=order.model or row.get("model"),
        tmux_server=order.server or row["tmux_server"],
        parent=_parent(context, caller),
        delegate_job_id=order.job,
        stores={**kind.stores({**context.environ, **order.env}), **kind.marks()},
    )


def _start(context: Context, caller: Caller, order: CreateOptions, plan: StartPlan) -> Row:
    row = _with_worktree(context, plan, order)
    conversations.take_lease(context, row, plan["conversation"], process.me())
    context.progress(f"starting {row['agent']} as {row['name']}")
    started = launch.run(
        context,
        row,
        plan["launch_file"],
        env=order.env,
        mcp=order.mcp,
        conversation=plan["conversation"],
        where=order.where,
        instructions=None if context.kind(row["agent"]).takes_prompt else order.prompt,
    )
    plan["is_started"] = True
    return launch.bound(context, row, started, lambda: bind(context, caller, plan, started))


def bind(context: Context, caller: Caller, plan: StartPlan, started: Started) -> Row:
    """Commit the row of a pane that was started, and end the intent; recovery does the same."""
    row: Row = plan["row"]
    at = context.now()
    started.pane["mcp_attachments"] = launch.attachments(plan.get("mcp", False))
    entry: Any = None
    if plan["conversation"]:
        entry = {"id": plan["conversation"], "source": "chosen", "since": stamp(at)}
        if plan.get("fork_of"):
            entry["fork_of"] = plan["fork_of"]

    def work(draft: Transaction) -> Row:
        action = caller.action("create", context.now())
        if plan["anew"]:
            current = draft.get(row["id"]) or row
            fields = {key: value for key, value in row.items() if key in _RENEWED}
            done = draft.put(
                transitions.started_anew(
                    current,
                    action,
                    pane=started.pane,
                    tmux_session_id=started.tmux_session_id,
                    conversation=entry,
                    **fields,
                )
            )
        else:
            done = draft.add(_born(row, started, entry, action))
        evidence.clear(draft.connection, row["id"])
        draft.intents.end(row["id"])
        draft.log(action["by"], "create", done, server=row["tmux_server"], anew=plan["anew"])
        return done

    done = claims.change(context, work)
    bind_lease(context, done, plan["conversation"])
    return done


def _born(row: Row, started: Started, entry: Any, action: Any) -> Row:
    at = action["at_epoch"]
    return merged(
        row,
        **transitions.alive_fields(),
        status=Status.RUNNING,
        pane=started.pane,
        tmux_session_id=started.tmux_session_id,
        conversations=[entry] if entry else [],
        created_at=stamp(at),
        created_at_epoch=at,
        last_action=action,
    )


def bind_lease(context: Context, row: Row, conversation: str | None) -> None:
    """Hand the conversation's lease from this process to the agent's."""
    from mam.app.context.liveness import identity_of

    identity = identity_of(row)
    if conversation and identity:
        try:
            conversations.take_lease(context, row, conversation, identity)
        except Unavailable as error:
            context.warn(f"the conversation of '{row['name']}' could not be marked as taken: {error}")


def wait_until_ready(
    context: Context, caller: Caller, row: Row, launch_file: str, *, trust: bool, seconds: float | None = None
) -> Row:
    """Wait for readiness and note the conversation; an agent that ended while booting is recorded as such."""
    context.progress(f"waiting until {row['name']} is ready")
    try:
        Watch(context, row, launch_file, trust=trust, seconds=seconds).run()
    except NotReady as error:
        from mam.app.sessions.death import record_if_dead

        record_if_dead(context, caller, row, error)
        raise
    return conversations.note_open(context, row)


def _with_worktree(context: Context, plan: StartPlan, order: CreateOptions) -> Row:
    """Give the session a worktree, and tell recovery about it."""
    row: Row = plan["row"]
    if not order.worktree and not row.get("worktree"):
        return row
    from mam.app.sessions.worktree import add_worktree

    moved = add_worktree(context, row, order.worktree if isinstance(order.worktree, str) else None)
    plan["row"] = moved
    context.registry.note(lambda draft: claims.annotate(draft, row["id"], plan))
    return moved


def drop_worktree(context: Context, plan: StartPlan) -> None:
    """Take back the worktree of a new session that was never started; an ended session keeps its own."""
    if not plan["anew"] and plan["row"].get("worktree"):
        from mam.app.sessions.worktree import take_back

        try:
            take_back(context, plan["row"])
        except MamError as error:
            context.progress(f"the new worktree stays: {error}")
