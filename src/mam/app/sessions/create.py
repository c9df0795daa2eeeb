"""Create a session: a name, a row, a pane with the agent in it, and proof that the agent is ready.

`create` checks everything that can be checked, commits the intent, starts the pane, commits the row and
waits. If the process dies in between, the next verb finishes the start or cleans it up.
"""

from __future__ import annotations

import uuid

from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.store.tables import evidence
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.app.context import claims
from mam.app.messages.launch_end import end_messages_of_former_launch
from mam.app.observation import conversations
from mam.app.sessions import launch, row_trust
from mam.app.sessions.create_options import CreateOptions
from mam.app.sessions.first_prompt import first_prompt, refuse_command
from mam.app.sessions.readiness import ReadinessWait
from mam.core import names, session_transitions
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
from mam.core.session_row import EXEC, Status, is_running, merged
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create_options import AllOptions
    from mam.app.sessions.launch import StartedAgent
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class StartPlan(TypedDict, total=False):
        """What recovery needs to know about an interrupted start; the intent keeps it as JSON."""

        id: str
        at: float
        # Whether an ended session starts again in its old row, with a new conversation.
        anew: bool
        row: Row
        launch_file: str
        mcp: bool
        conversation: str | None
        fork_of: str | None
        # The worktree that git makes now.
        new_worktree: dict[str, str] | None
        is_started: bool


_MOST_NUMBERS = 1000
# The fields that a new start of an ended session replaces in its row.
RENEWED = (
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
    create_options = CreateOptions(context, agent, **options)
    row, launch_file = start_session(context, caller, create_options)
    if create_options.wait:
        row = wait_until_ready(
            context, caller, row, launch_file, trust=create_options.trust, seconds=create_options.timeout
        )
        if create_options.prompt and context.kind(row["agent"]).takes_prompt:
            first_prompt(context, caller, row, create_options.prompt)
            row = conversations.record_conversation(context, row)
    return row


def check_create(context: Context, caller: Caller, agent: str | None, **options: Unpack[AllOptions]) -> None:
    """Raise what `create` would raise before it starts anything: a wrong option, a taken name, no program."""
    create_options = CreateOptions(context, agent, **options)
    workspace = _check_request(context, create_options)
    _check_program(context, create_options)

    def check(transaction: Transaction) -> None:
        old = _choose_name(context, caller, transaction, create_options, workspace)[1]
        _refuse_start(context, caller, transaction, create_options, old)
        if old:
            row_trust.refuse_flaws(_renewed(context, caller, old, create_options))

    context.registry.peek(check, None)


def start_session(context: Context, caller: Caller, options: CreateOptions) -> tuple[Row, str]:
    """Start a session; return its row and its launch file, which `wait_until_ready` needs."""
    workspace = _check_request(context, options)
    options.look_for_names(context)
    plan = _reserve(context, caller, options, workspace)
    try:
        row = _start(context, caller, options, plan)
    except BaseException as error:
        if isinstance(error, Refused) or not plan.get("is_started"):
            undo_new_worktree(context, plan)
        claims.release_after_error(context, plan["id"], plan["at"], error)
        raise
    return row, plan["launch_file"]


def _check_request(context: Context, options: CreateOptions) -> str:
    """Return the workspace of a request that names an agent or a session."""
    if options.agent is None and options.name is None:
        raise Usage("name an agent kind", hint="mam create --agent claude")
    return launch.check_workspace(context.workspace)


def _reserve(context: Context, caller: Caller, options: CreateOptions, workspace: str) -> StartPlan:
    """Commit the intent: it reserves the name, and recovery notices if this process dies."""
    deadline = Deadline(claims.WAIT_SECONDS)
    while True:
        _check_program(context, options)
        plan = claims.commit_claim(
            context, lambda transaction: _claim(context, caller, transaction, options, workspace)
        )
        if plan is not None:
            return plan
        if not deadline.pause(claims.STEP):
            raise claims.busy_error(context, options.name or "")


def _check_program(context: Context, options: CreateOptions) -> None:
    if options.agent:
        kind = context.kind(options.agent)
        options.check_kind(kind)
        launch.find_program(context, kind, [options.agent, *options.args], {**context.environ, **options.env})
        if options.prompt and kind.takes_prompt:
            refuse_command(kind, options.prompt)


def _claim(
    context: Context, caller: Caller, transaction: Transaction, options: CreateOptions, workspace: str
) -> StartPlan | None:
    name, old = _choose_name(context, caller, transaction, options, workspace)
    session_id = old["id"] if old else new_session_id()
    if not claims.is_free(transaction, session_id, name):
        if options.name:
            return None
        raise RegistryBusy(f"another command is changing '{name}'", hint="repeat the command")
    _refuse_start(context, caller, transaction, options, old)
    row = old or _new_row(context, caller, options, session_id, name, workspace)
    new_row = _renewed(context, caller, row, options) if old else row
    row_trust.refuse_flaws(new_row)
    plan: StartPlan = {
        "id": session_id,
        "at": transaction.now,
        "anew": bool(old),
        "row": new_row,
        "launch_file": launch.new_launch_file(context, session_id),
        "mcp": options.mcp,
        "conversation": str(uuid.uuid4()) if context.kind(new_row["agent"]).takes_conversation_id else None,
    }
    transaction.intents.put(claims.new_intent(session_id, name, "create", transaction.now, plan))
    if options.on_claim is not None:
        options.on_claim(transaction, new_row)
    return plan


def _refuse_start(
    context: Context, caller: Caller, transaction: Transaction, options: CreateOptions, old: Row | None
) -> None:
    """Refuse an ended session that may not run its command, and a caller with too many sessions."""
    if old:
        row_trust.refuse(context, caller, old, run_recorded=options.run_recorded)
    elif options.run_recorded:
        row_trust.check_caller(caller)
    if options.child_limit:
        from mam.app.context.authority import check_child_limit

        check_child_limit(context, caller, transaction)


def _choose_name(
    context: Context, caller: Caller, transaction: Transaction, options: CreateOptions, workspace: str
) -> tuple[str, Row | None]:
    if options.name:
        row = transaction.named(options.name)
        if row and is_running(row):
            raise NameTaken(
                f"a session named '{options.name}' is running",
                hint=f"attach to it with mam attach {options.name}, or choose another name",
            )
        if row is None and options.agent is None:
            raise Usage(f"'{options.name}' is not registered, so name its agent", hint="--agent KIND")
        if row and options.agent and options.agent != row["agent"]:
            raise Refused(
                f"'{options.name}' is a session of {row['agent']}, not of {options.agent}",
                hint=f"choose another name, or mam forget {options.name} first",
            )
        return options.name, row
    for number in range(1, _MOST_NUMBERS):
        name = (
            names.numbered(options.stem, number)
            if options.stem
            else names.default_name(workspace, options.agent or "", number)
        )
        row = transaction.named(name)
        if not claims.is_free(transaction, row["id"] if row else "", name):
            continue
        if (
            row is not None
            and not is_running(row)
            and _fits(row, options, workspace)
            and _may_renew(context, caller, row)
        ):
            return name, row
        if row is None and name not in options.taken:
            return name, None
    raise InvalidName("no default name is free", hint="choose a name with --session")


def _fits(row: Row, options: CreateOptions, workspace: str) -> bool:
    """Tell whether an ended session has the wanted kind, workspace (or repository) and role."""
    repository = (row.get("worktree") or {}).get("repo")
    is_same_workspace = row["workspace"] == workspace or bool(
        repository and f"{workspace}/".startswith(f"{repository}/")
    )
    is_same_kind = row["agent"] == options.agent
    return (
        is_same_kind and is_same_workspace and (not options.role or row.get("role") in (None, options.role))
    )


def _may_renew(context: Context, caller: Caller, row: Row) -> bool:
    """Tell whether the caller may reuse this ended session without naming it.

    A session may not reuse arguments that somebody else gave to the program.
    """
    caller_name = caller.name
    return caller_name in ("user", row.get("parent")) or len(row.get("start_command") or ()) <= 1


def _new_row(
    context: Context, caller: Caller, options: CreateOptions, session_id: str, name: str, workspace: str
) -> Row:
    agent = options.agent or ""
    environ = {**context.environ, **options.env}
    row: Row = {
        "id": session_id,
        "name": name,
        "agent": agent,
        "role": options.role,
        "workspace": workspace,
        "tmux_server": options.server or context.server_name(None),
        "start_command": [agent, *options.args],
        "permissions": options.permissions or _usual_permissions(context, agent),
        "model": options.model,
        "stores": {**context.kind(agent).stores(environ), **context.kind(agent).session_variables()},
        "delegate_job_id": options.job,
        "parent": _parent(context, caller),
    }
    return row


def _parent(context: Context, caller: Caller) -> str | None:
    caller_name = caller.name
    return None if caller_name == "user" else caller_name


def _usual_permissions(context: Context, agent: str) -> str:
    """Return the permissions of the settings, or "default" where mam cannot pass them to the program."""
    permissions = context.settings().permissions
    if permissions == "default" or context.kind(agent).takes_permissions:
        return permissions
    context.warn(
        f"mam does not know how {agent} takes permissions; {agent} uses its own, not '{permissions}'"
    )
    return "default"


def _renewed(context: Context, caller: Caller, row: Row, options: CreateOptions) -> Row:
    if options.role and row.get("role") and options.role != row["role"]:
        raise Refused(f"'{row['name']}' has the role '{row['role']}', and a role never changes")
    if not row.get("worktree"):
        launch.check_recorded_workspace(context, row["workspace"])
    command = row.get("start_command") or [row["agent"]]
    kind = context.kind(row["agent"])
    options.check_kind(kind)
    return merged(
        row,
        role=row.get("role") or options.role,
        start_command=[command[0], *options.args] if options.args else command,
        permissions=options.permissions or row.get("permissions") or "default",
        model=options.model or row.get("model"),
        tmux_server=options.server or row["tmux_server"],
        parent=_parent(context, caller),
        delegate_job_id=options.job,
        stores={**kind.stores({**context.environ, **options.env}), **kind.session_variables()},
    )


def _start(context: Context, caller: Caller, options: CreateOptions, plan: StartPlan) -> Row:
    row = _with_worktree(context, plan, options)
    conversations.take_lease(context, row, plan["conversation"], process.me())
    context.progress(f"starting {row['agent']} as {row['name']}")
    started_agent = launch.launch_agent(
        context,
        row,
        plan["launch_file"],
        env=options.env,
        mcp=options.mcp,
        conversation=plan["conversation"],
        placement=options.placement,
        instructions=None if context.kind(row["agent"]).takes_prompt else options.prompt,
        runner=options.runner,
    )
    plan["is_started"] = True
    return launch.commit_start(
        context, row, started_agent, lambda: bind(context, caller, plan, started_agent)
    )


def bind(context: Context, caller: Caller, plan: StartPlan, started_agent: StartedAgent) -> Row:
    """Commit the row of a started pane and end the intent. Recovery calls this too."""
    row: Row = plan["row"]
    at = context.now()
    started_agent.pane["mcp_attachments"] = launch.attachments(plan.get("mcp", False))
    entry: Any = None
    if plan["conversation"]:
        entry = {"id": plan["conversation"], "source": "chosen", "since": stamp(at)}
        if plan.get("fork_of"):
            entry["fork_of"] = plan["fork_of"]

    def work(transaction: Transaction) -> Row:
        action = caller.action("create", context.now())
        if plan["anew"]:
            current = transaction.get(row["id"]) or row
            fields = {key: value for key, value in row.items() if key in RENEWED}
            new_row = transaction.put(
                session_transitions.started_anew(
                    current,
                    action,
                    pane=started_agent.pane,
                    tmux_session_id=started_agent.tmux_session_id,
                    conversation=entry,
                    **fields,
                )
            )
            end_messages_of_former_launch(transaction, new_row, by=action["by"])
        else:
            new_row = transaction.add(_first_row(row, started_agent, entry, action))
        evidence.clear(transaction.connection, row["id"])
        transaction.intents.end(row["id"])
        transaction.log(action["by"], "create", new_row, server=row["tmux_server"], anew=plan["anew"])
        return new_row

    new_row = claims.change(context, work)
    bind_lease(context, new_row, plan["conversation"])
    return new_row


def _first_row(row: Row, started_agent: StartedAgent, entry: Any, action: Any) -> Row:
    at = action["at_epoch"]
    alive_fields = session_transitions.alive_fields()
    if row["agent"] == EXEC:
        alive_fields["resumable"] = False
    return merged(
        row,
        **alive_fields,
        status=Status.RUNNING,
        pane=started_agent.pane,
        tmux_session_id=started_agent.tmux_session_id,
        conversations=[entry] if entry else [],
        created_at=stamp(at),
        created_at_epoch=at,
        last_action=action,
    )


def bind_lease(context: Context, row: Row, conversation: str | None) -> None:
    """Pass the lease of the conversation from this process to the agent's process."""
    from mam.app.context.liveness import identity_of

    identity = identity_of(row)
    if conversation and identity:
        try:
            conversations.take_lease(context, row, conversation, identity)
        except Unavailable as error:
            context.warn(f"mam could not record that '{row['name']}' has its conversation open: {error}")


def wait_until_ready(
    context: Context, caller: Caller, row: Row, launch_file: str, *, trust: bool, seconds: float | None = None
) -> Row:
    """Wait for readiness and record the conversation. If the agent ends while booting, record its death."""
    context.progress(f"waiting until {row['name']} is ready")
    try:
        ReadinessWait(context, row, launch_file, trust=trust, seconds=seconds).run()
    except NotReady as error:
        from mam.app.sessions.death import record_if_dead

        record_if_dead(context, caller, row, error)
        raise
    return conversations.record_open_conversation(context, row)


def _with_worktree(context: Context, plan: StartPlan, options: CreateOptions) -> Row:
    """Give the session a worktree. The intent knows it before git is called, so recovery can remove it."""
    row: Row = plan["row"]
    if not options.worktree and not row.get("worktree"):
        return row
    from mam.app.sessions.worktree import add_worktree

    def announce(tree: dict[str, str]) -> None:
        announced: StartPlan = {**plan, "new_worktree": tree}
        context.registry.note(lambda transaction: claims.annotate(transaction, row["id"], announced))

    branch = options.worktree if isinstance(options.worktree, str) else None
    moved = add_worktree(context, row, branch, announce)
    plan["row"] = moved
    context.registry.note(lambda transaction: claims.annotate(transaction, row["id"], plan))
    return moved


def undo_new_worktree(context: Context, plan: StartPlan) -> None:
    """Remove the worktree of a session that did not start; a session keeps the one that its row has.

    Raises Unavailable while the git of a create that died still makes it.
    """
    announced = plan.get("new_worktree")
    if not announced and not plan["row"].get("worktree"):
        return
    from mam.app.sessions.worktree import undo_announced, undo_worktree

    try:
        if announced:
            undo_announced(context, plan["row"], announced)
        else:
            undo_worktree(context, plan["row"])
    except MamError as error:
        if announced and isinstance(error, Unavailable):
            raise
        context.progress(f"the new worktree is kept: {error}")
