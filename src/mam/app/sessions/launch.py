"""Start an agent's program in a pane, for create, spawn, resume and fork.

The caller has committed an intent that names the launch file. One tmux call makes the pane and marks it. So
if this process dies at any point, there is either a marked pane, which recovery binds to its row, or no
pane.
"""

from __future__ import annotations

import os

from mam.adapters.agents import hook_command
from mam.adapters.agents.kind import Attachment, Request
from mam.adapters.store import launch_secret
from mam.adapters.store.user_state import VARIABLE
from mam.adapters.system import concurrent_program, process, program_lookup
from mam.adapters.tmux import launch_file as launches
from mam.adapters.tmux.client import clean_environment
from mam.adapters.tmux.error_translation import NoAnswer
from mam.app.context import claims, own_command, resident_start_and_lock
from mam.app.context.former_places import former_place_of
from mam.app.context.liveness import find_pane, identity_of
from mam.app.jobs.find import is_open
from mam.app.observation import versions
from mam.app.sessions import exit_status_and_cleanup, row_trust
from mam.core.errors import (
    AgentMissing,
    InvalidPath,
    MamError,
    PaneGone,
    Refused,
    StartUnconfirmed,
    Unconfirmed,
)
from mam.core.inherited_variables import is_inherited
from mam.core.root_mark import is_same_root
from mam.core.row_checks import is_conversation_id
from mam.core.session_row import MCP_SERVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mam.adapters.agents.kind import Kind, Launch
    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane as TmuxPane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Pane, Row


_DELETE_SECONDS = 60.0


class StartedAgent:
    """A pane in which the program of an agent was started."""

    __slots__ = ("launch_file", "pane", "reading", "tmux_session_id")

    def __init__(
        self,
        pane: Pane,
        tmux_session_id: str,
        launch_file: str,
        reading: versions.VersionReading | None = None,
    ) -> None:
        """Keep the reading of the program's version, which may still be running."""
        self.pane = pane
        self.tmux_session_id = tmux_session_id
        self.launch_file = launch_file
        self.reading = reading


class Placement:
    """Where a session gets its pane: in a window that exists, or as the first pane of a new tmux session."""

    __slots__ = ("keeps_pane", "session_name", "window_id")

    def __init__(
        self, *, window_id: str | None = None, session_name: str | None = None, keeps_pane: bool = False
    ) -> None:
        """With `keeps_pane` the session starts in its own dead pane if that still exists."""
        self.window_id = window_id
        self.session_name = session_name
        self.keeps_pane = keeps_pane


def find_program(context: Context, kind: Kind, command: list[str], environ: dict[str, str]) -> str:
    """Return the full path of the program, or raise AgentMissing with similar names as a hint."""
    program = kind.program(command)
    path = environ.get("PATH", os.defpath)
    location = program_lookup.which(program, path)
    if location:
        return os.path.abspath(location)
    from mam.adapters.agents.catalogue import BUILT_IN

    similar_names = (
        [] if program in BUILT_IN else program_lookup.similar(program, path, candidates=tuple(BUILT_IN))
    )
    hint = (
        f"did you mean {' or '.join(similar_names)}?"
        if similar_names
        else "install it, or put its folder on PATH"
    )
    raise AgentMissing(f"the program '{program}' is not on PATH", hint=hint)


def check_workspace(workspace: str) -> str:
    """Return the real path of a workspace that exists."""
    if os.path.isdir(workspace):
        return os.path.realpath(workspace)
    problem = f"the workspace {workspace} does not exist or is not a directory"
    raise InvalidPath(problem, hint="make this directory again, or start a session in another one")


def check_recorded_workspace(context: Context, workspace: str) -> str:
    """Return the real path of the workspace of a row.

    After the root was moved, another directory may have that path. No agent starts there.
    """
    place = former_place_of(context, workspace)
    if place is None:
        return check_workspace(workspace)
    is_there = os.path.isdir(workspace)
    problem = "is another directory now" if is_there else "does not exist or is not a directory"
    raise InvalidPath(
        f"the workspace {workspace} {problem}: this root was moved from {place.root} to {context.paths.root}",
        hint=place.way_on,
    )


def new_launch_file(context: Context, session_id: str) -> str:
    """Return a path for a new launch file; the intent names it."""
    return os.path.join(context.paths.launches, f"{session_id}-{os.urandom(8).hex()}.launch")


def settings_file(context: Context, session_id: str) -> str:
    """Return the path of the settings file that the last launch of a session got."""
    return os.path.join(context.paths.settings, f"{session_id}.json")


def forget_settings(context: Context, session_id: str) -> None:
    """Remove the settings file of a session that is forgotten."""
    launches.cancel_launch(settings_file(context, session_id))


def environment(context: Context, row: Row, extra: dict[str, str], launch: Launch) -> dict[str, str]:
    """Return the environment of the agent's process: the caller's, and variables that name the session."""
    env = {
        key: value
        for key, value in clean_environment(context.environ).items()
        if key not in launch.unset and not is_inherited(key)
    }
    env.update(extra)
    env.update(row.get("stores") or {})
    env.update(launch.env)
    env["MAM_SESSION"] = row["id"]
    env["MAM_ROOT"] = context.paths.root
    env.update(_user_state_variable(context))
    if is_open(context, row.get("delegate_job_id")):
        env["MAM_JOB_ID"] = row["delegate_job_id"] or ""
    if not context.paths.state.endswith("/.mam"):
        env["AGENT_SESSIONS_YAML"] = context.paths.yaml
    return env


def _user_state_variable(context: Context) -> dict[str, str]:
    """Return the variable that names another user state, for mam in the agent; usually there is none."""
    return {VARIABLE: context.environ[VARIABLE]} if context.environ.get(VARIABLE) else {}


def describe_launch(
    context: Context,
    row: Row,
    program: str,
    environ: dict[str, str],
    *,
    attachment: Attachment | None = None,
    conversation: str | None = None,
    resume: bool = False,
    fork_of: str | None = None,
    instructions: str | None = None,
    runner: list[str] | None = None,
) -> Launch:
    """Return what a launch of a row would execute. Nothing is started or written."""
    for chosen in (conversation, fork_of):
        check_conversation(chosen)
    kind = context.kind(row["agent"])
    return kind.launch(
        Request(
            command=row.get("start_command") or [row["agent"]],
            program=program,
            environ=environ,
            stores=row.get("stores") or kind.stores(environ),
            name=row["name"],
            role=row.get("role"),
            permissions=row.get("permissions"),
            model=row.get("model"),
            hook=hook_command.command(context.paths.spool) if kind.has_hooks else None,
            settings=context.settings().of_kind(kind.name),
            attachment=attachment,
            conversation=conversation,
            resume=resume,
            fork_of=fork_of,
            instructions=instructions,
            runner=runner,
        )
    )


def launch_agent(
    context: Context,
    row: Row,
    launch_file: str,
    *,
    env: Mapping[str, str] | None = None,
    placement: Placement | None = None,
    mcp: bool = False,
    conversation: str | None = None,
    resume: bool = False,
    fork_of: str | None = None,
    instructions: str | None = None,
    runner: list[str] | None = None,
) -> StartedAgent:
    """Start the agent of a row. `env` is for this launch alone; with `mcp` the agent gets mam's own tools.

    `instructions` are the task, for a kind that takes it as an argument. `runner` runs the command of a job.
    Empty conversation files that would make the program delete others are removed first.
    """
    row_trust.refuse_flaws(row)
    extra = dict(env or {})
    environ = {**context.environ, **(row.get("stores") or {}), **extra}
    kind = context.kind(row["agent"])
    program = find_program(context, kind, row.get("start_command") or [row["agent"]], environ)
    secret_file = context.user_state.new_secret_file()
    agent_launch = describe_launch(
        context,
        row,
        program,
        environ,
        attachment=attachment_of(context, row, secret_file) if mcp else None,
        conversation=conversation,
        resume=resume,
        fork_of=fork_of,
        instructions=instructions,
        runner=runner,
    )
    for note in agent_launch.notes:
        context.warn(note)
    _remove_empty_conversation_files(context, row, kind)
    row_trust.note_launch(context, row, mcp=mcp)
    assert context.root_id is not None
    context.user_state.begin_secret(context.root_id, row["id"], secret_file)
    extra[launch_secret.VARIABLE] = secret_file
    reading = versions.VersionReading(kind, program, environ)
    try:
        started_agent = start_program(context, row, agent_launch, launch_file, extra, placement=placement)
    except BaseException as error:
        reading.cancel()
        if not isinstance(error, StartUnconfirmed):
            context.user_state.end_secrets([secret_file])
        raise
    started_agent.reading = reading
    started_agent.pane["mcp_attachments"] = attachments(mcp)
    if reading.version:
        started_agent.pane["version"] = reading.version
    return started_agent


def attachment_of(context: Context, row: Row, secret_file: str) -> Attachment:
    """Return the command that connects the agent to the MCP server of this root, as this session."""
    env = {
        "MAM_ROOT": context.paths.root,
        "MAM_SESSION": row["id"],
        launch_secret.VARIABLE: secret_file,
        **_user_state_variable(context),
    }
    if not context.paths.state.endswith("/.mam"):
        env["AGENT_SESSIONS_YAML"] = context.paths.yaml
    return Attachment(MCP_SERVER, own_command.argv("mcp"), env)


def attachments(mcp: bool) -> list[str]:
    """Return the MCP servers that a launch got, as the row shows them."""
    return [MCP_SERVER] if mcp else []


def _remove_empty_conversation_files(context: Context, row: Row, kind: Kind) -> None:
    """Remove empty files that would make the program delete conversations when it starts."""
    from mam.adapters.agents.delete_files import remove

    stores = row.get("stores") or kind.stores(context.environ)
    for store, path in kind.leftovers(row["workspace"], stores):
        try:
            remove(store, path)
        except MamError as error:
            context.warn(f"{kind.name} may delete a conversation when it starts: {error}")


def start_program(
    context: Context,
    row: Row,
    launch: Launch,
    launch_file: str,
    extra: dict[str, str],
    *,
    placement: Placement | None = None,
) -> StartedAgent:
    """Start the program in the row's own dead pane, in `placement`, or in a new tmux session."""
    env = environment(context, row, extra, launch)
    if launch.settings is not None:
        variable, content = launch.settings
        env[variable] = settings_file(context, row["id"])
        launches.replace_private(env[variable], content.encode())
    if launch.text is not None:
        env["MAM_TEXT_FILE"] = f"{launch_file}.txt"
        launches.write_private(env["MAM_TEXT_FILE"], launch.text.encode())
    folder, name = os.path.split(launch_file)
    launches.write_launch(
        folder, name.removesuffix(".launch"), argv=launch.argv, env=env, cwd=row["workspace"]
    )
    try:
        pane = _start_in_pane(context, row, launches.launcher_command(launch_file), placement)
    except NoAnswer as error:
        row_pane = _find_row_pane(context, row)
        if row_pane is None and _withdraw(context, row, launch_file):
            raise
        if row_pane is None:
            raise StartUnconfirmed(error.message, hint=error.hint) from error
        pane = row_pane
    except BaseException:
        launches.cancel_launch(launch_file)
        raise
    return StartedAgent(
        pane_record(pane, os.path.basename(launch.argv[0]), row["workspace"]), pane.session_id, launch_file
    )


def _withdraw(context: Context, row: Row, launch_file: str) -> bool:
    """Cancel a launch that tmux may carry out later, and note it in the claim; False if it was taken.

    Its pane closes itself, but for a moment recovery could see it, and take it for the pane of the session.
    """
    if not launches.cancel_launch(launch_file):
        return False
    context.registry.note(lambda transaction: claims.annotate_withdrawn(transaction, row["id"], launch_file))
    return True


def _remove_forgotten_panes(context: Context, tmux: Tmux, panes: list[TmuxPane]) -> bool:
    """Remove panes that are dead, and whose session this root had and has no more; tell whether all are."""
    known = {row.get("id") for row in context.registry.view().rows}
    if any(
        not pane.dead or not is_same_root(pane.root, context.root_mark) or pane.mark in known
        for pane in panes
    ):
        return False
    for pane in panes:
        tmux.kill_pane(pane.id, mark=pane.mark)
    return True


def _start_in_pane(context: Context, row: Row, command: list[str], placement: Placement | None) -> TmuxPane:
    tmux = context.tmux(row["tmux_server"])
    listing = tmux.panes()
    old = find_pane(row, listing.panes) if listing.confirmed else None
    if old is not None and old.dead and old.mark == row["id"] and is_same_root(old.root, context.root_mark):
        if placement is not None and not placement.keeps_pane:
            # Two panes must not carry the same mark.
            tmux.kill_pane(old.id, mark=row["id"])
        else:
            try:
                return tmux.respawn(old.id, command, session_id=row["id"], root=context.root_mark)
            except PaneGone:
                # Somebody closed the pane between the two calls.
                context.progress("the old pane is gone, so the agent starts in a new one")
    if placement is not None and placement.window_id is not None:
        from mam.adapters.tmux.window import split

        return split(
            tmux,
            placement.window_id,
            command,
            cwd=row["workspace"],
            session_id=row["id"],
            root=context.root_mark,
        )
    name = (placement.session_name if placement else None) or row["name"]
    there = [pane for pane in listing.panes if pane.session_name == name]
    if there and not _remove_forgotten_panes(context, tmux, there):
        from mam.app.sessions.taken_tmux_name import taken_name

        raise taken_name(context, row, name, listing)
    return tmux.start(name, command, cwd=row["workspace"], session_id=row["id"], root=context.root_mark)


def _find_row_pane(context: Context, row: Row) -> TmuxPane | None:
    listing = context.tmux(row["tmux_server"]).panes()
    return find_pane(row, listing.panes) if listing.confirmed else None


def pane_record(pane: TmuxPane, command: str, cwd: str) -> Pane:
    """Return what a row records about a pane and the process in it."""
    identity = process.identify(pane.pid)
    return {
        "id": pane.id,
        "pid": pane.pid,
        "pid_start": identity.start if identity else 0,
        "boot_id": process.boot_id(),
        "server_pid": pane.server_pid,
        "cmd": command,
        "cwd": cwd,
        "mcp_attachments": [],
    }


def check_conversation(conversation: str | None) -> None:
    """Refuse an id of a conversation that a program would take for an option, or for another file."""
    if conversation is not None and not is_conversation_id(conversation):
        raise Refused(
            f"{conversation!r} is not the id of a conversation", hint="mam status NAME shows the ids"
        )


def delete_conversation(
    context: Context, caller: Caller, row: Row, conversation: str, *, run_recorded: bool = False
) -> list[str]:
    """Let the program itself delete a conversation, if its kind can; return the commands that ran."""
    kind = context.kind(row["agent"])
    if kind.purge_command(conversation, "") is None:
        return []
    row_trust.refuse(context, caller, row, run_recorded=run_recorded)
    program, environ = _purge_environment(context, row, kind)
    argv = kind.purge_command(conversation, program) or []
    result = concurrent_program.Running(argv, environ, row["workspace"]).finish(_DELETE_SECONDS)
    stores = row.get("stores") or kind.stores(environ)
    if result.status != 0 or kind.on_disk(conversation, row["workspace"], stores):
        output = result.output or f"exit {result.status}"
        raise Unconfirmed(
            f"{os.path.basename(program)} did not delete conversation {conversation}: {output}",
            hint=f"run it yourself: {' '.join(argv)}",
        )
    return [" ".join(argv[1:])]


def _purge_environment(context: Context, row: Row, kind: Kind) -> tuple[str, dict[str, str]]:
    """Return the program, and the environment that a launch of the session would have."""
    environ = {**context.environ, **(row.get("stores") or {})}
    command = (row.get("start_command") or [row["agent"]])[:1]
    program = find_program(context, kind, command, environ)
    stores = row.get("stores") or kind.stores(environ)
    agent_launch = kind.launch(Request(command=command, program=program, environ=environ, stores=stores))
    return program, environment(context, row, {}, agent_launch)


def commit_start(context: Context, row: Row, started_agent: StartedAgent, bind: Callable[[], Row]) -> Row:
    """Commit the row of a started agent, or undo the start. Start the resident; record the version."""
    try:
        new_row = bind()
    except BaseException as error:
        if started_agent.reading is not None:
            started_agent.reading.cancel()
        _undo(context, row, started_agent.launch_file, error)
        raise
    row_trust.confirm_launch(context, new_row)
    identity = identity_of(new_row)
    if identity is not None and context.root_id is not None:
        context.user_state.note_process(context.root_id, new_row["id"], identity.as_json())
    exit_status_and_cleanup.end_secrets_of_ended_sessions(context)
    resident_start_and_lock.ensure(context)
    return versions.record(context, new_row, started_agent.reading)


def _undo(context: Context, row: Row, launch_file: str, error: BaseException) -> None:
    """Undo a start whose row was refused, so that no pane stays without a row.

    After any other error the row may be committed or not. Recovery finds out later.
    """
    if not isinstance(error, Refused) or error.recorded:
        return
    launches.cancel_launch(launch_file)
    pane = _find_row_pane(context, row)
    if pane is not None and pane.mark == row["id"]:
        context.tmux(row["tmux_server"]).kill_pane(pane.id, mark=row["id"])
    context.user_state.release(row["id"], context.root_id)
