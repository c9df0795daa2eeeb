"""Starting a program in a pane, for every verb that does: create, spawn, resume, fork.

The caller has committed an intent that names the launch file. The pane is marked in the same
tmux call that makes it, so a death at any point leaves either a marked pane that recovery
binds to its row, or nothing.
"""

from __future__ import annotations

import os

from mam.adapters.agents import hook_command
from mam.adapters.agents.kind import Attachment, Request
from mam.adapters.system import process, program_lookup
from mam.adapters.tmux import launch_file as launches
from mam.adapters.tmux.client import clean_environment
from mam.adapters.tmux.failures import NoAnswer
from mam.app.context import own_command, start_resident
from mam.app.context.liveness import find_pane
from mam.app.jobs.session_events import is_open
from mam.app.observation import versions
from mam.core.errors import (
    AgentMissing,
    InvalidPath,
    MamError,
    NameTaken,
    PaneGone,
    Refused,
    StartUnconfirmed,
    Unconfirmed,
)
from mam.core.inherited_variables import is_inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mam.adapters.agents.kind import Kind, Launch
    from mam.adapters.tmux.parse import Pane as TmuxPane
    from mam.app.context.context import Context
    from mam.core.session_row import Pane, Row


_DELETE_SECONDS = 60.0
# What mam's own MCP server is called.
TOOLS = "mam"


class Started:
    """A program that runs, or at least a pane in which it was started."""

    __slots__ = ("launch_file", "pane", "reading", "tmux_session_id")

    def __init__(
        self, pane: Pane, tmux_session_id: str, launch_file: str, reading: versions.Reading | None = None
    ) -> None:
        """Keep the reading of the program's version, which may not be finished."""
        self.pane = pane
        self.tmux_session_id = tmux_session_id
        self.launch_file = launch_file
        self.reading = reading


class Where:
    """The window that gets one more pane; without one, the tmux session whose first pane it is."""

    __slots__ = ("keeps_pane", "session_name", "window_id")

    def __init__(
        self, *, window_id: str | None = None, session_name: str | None = None, keeps_pane: bool = False
    ) -> None:
        """With `keeps_pane` the session's own dead pane comes first, where it still stands."""
        self.window_id = window_id
        self.session_name = session_name
        self.keeps_pane = keeps_pane


def find_program(context: Context, kind: Kind, command: list[str], environ: dict[str, str]) -> str:
    """Return the program's full path, or refuse with the nearest names that exist."""
    wanted = kind.program(command)
    path = environ.get("PATH", os.defpath)
    found = program_lookup.which(wanted, path)
    if found:
        return os.path.abspath(found)
    from mam.adapters.agents.catalogue import BUILT_IN

    near = [] if wanted in BUILT_IN else program_lookup.similar(wanted, path, known=tuple(BUILT_IN))
    hint = f"did you mean {' or '.join(near)}?" if near else "install it, or put its folder on PATH"
    raise AgentMissing(f"the program '{wanted}' is not on PATH", hint=hint)


def check_workspace(workspace: str) -> str:
    """Return the real path of a workspace that exists."""
    if not os.path.isdir(workspace):
        raise InvalidPath(
            f"the workspace {workspace} is gone or not a directory", hint="name one that exists"
        )
    return os.path.realpath(workspace)


def new_launch_file(context: Context, session_id: str) -> str:
    """Return the path of a launch file that does not exist yet, for the intent to name."""
    return os.path.join(context.paths.launches, f"{session_id}-{os.urandom(8).hex()}.launch")


def settings_file(context: Context, session_id: str) -> str:
    """Return the file with the settings that the last launch of a session was given."""
    return os.path.join(context.paths.settings, f"{session_id}.json")


def forget_settings(context: Context, session_id: str) -> None:
    """Remove the settings of a session that is forgotten."""
    launches.cancel_launch(settings_file(context, session_id))


def environment(context: Context, row: Row, extra: dict[str, str], launch: Launch) -> dict[str, str]:
    """Return what the agent's process gets: the caller's own environment, and who it is."""
    env = {
        key: value
        for key, value in clean_environment(context.environ).items()
        if key not in launch.without and not is_inherited(key)
    }
    env.update(extra)
    env.update(row.get("stores") or {})
    env.update(launch.env)
    env["MAM_SESSION"] = row["id"]
    env["MAM_ROOT"] = context.paths.root
    if is_open(context, row.get("delegate_job_id")):
        env["MAM_JOB_ID"] = row["delegate_job_id"] or ""
    if not context.paths.state.endswith("/.mam"):
        env["AGENT_SESSIONS_YAML"] = context.paths.yaml
    return env


def run(
    context: Context,
    row: Row,
    launch_file: str,
    *,
    env: Mapping[str, str] | None = None,
    where: Where | None = None,
    mcp: bool = False,
    conversation: str | None = None,
    resume: bool = False,
    fork_of: str | None = None,
    instructions: str | None = None,
) -> Started:
    """Start a row's agent: `env` is for this launch alone, and with `mcp` it gets mam's own tools.

    `instructions` are for a kind that is told its task when it starts.
    """
    kind = context.kind(row["agent"])
    extra = dict(env or {})
    environ = {**context.environ, **(row.get("stores") or {}), **extra}
    command = row.get("start_command") or [row["agent"]]
    program = find_program(context, kind, command, environ)
    what = kind.launch(
        Request(
            command=command,
            program=program,
            environ=environ,
            stores=row.get("stores") or kind.stores(environ),
            name=row["name"],
            role=row.get("role"),
            permissions=row.get("permissions"),
            model=row.get("model"),
            hook=hook_command.command(context.paths.spool) if kind.has_hooks else None,
            settings=context.settings().of_kind(kind.name),
            attachment=_attachment(context, row) if mcp else None,
            conversation=conversation,
            resume=resume,
            fork_of=fork_of,
            instructions=instructions,
        )
    )
    for note in what.notes:
        context.warn(note)
    _clear_leftovers(context, row, kind)
    context.user_state.note_start(context.paths.root, row["id"])
    reading = versions.Reading(kind, program, environ)
    try:
        started = start(context, row, what, launch_file, extra, where=where)
    except BaseException:
        reading.cancel()
        raise
    started.reading = reading
    started.pane["mcp_attachments"] = attachments(mcp)
    if reading.version:
        started.pane["version"] = reading.version
    return started


def _attachment(context: Context, row: Row) -> Attachment:
    """Return the bridge to the server of this root, as a program of this session."""
    env = {"MAM_ROOT": context.paths.root, "MAM_SESSION": row["id"]}
    if not context.paths.state.endswith("/.mam"):
        env["AGENT_SESSIONS_YAML"] = context.paths.yaml
    return Attachment(TOOLS, own_command.argv("mcp"), env)


def attachments(mcp: bool) -> list[str]:
    """Return the MCP servers that a launch was given, as the row shows them."""
    return [TOOLS] if mcp else []


def has_tools(row: Row) -> bool:
    """Tell whether the last launch of a session was given mam's own tools: another one gets them, too."""
    return TOOLS in ((row.get("pane") or {}).get("mcp_attachments") or [])


def _clear_leftovers(context: Context, row: Row, kind: Kind) -> None:
    """Remove empty files that would make the program delete conversations when it starts."""
    from mam.adapters.agents.delete_files import remove

    stores = row.get("stores") or kind.stores(context.environ)
    for store, path in kind.leftovers(row["workspace"], stores):
        try:
            remove(store, path)
        except MamError as error:
            context.warn(f"a conversation may be lost to the start of {kind.name}: {error}")


def start(
    context: Context,
    row: Row,
    launch: Launch,
    launch_file: str,
    extra: dict[str, str],
    *,
    where: Where | None = None,
) -> Started:
    """Start the program in a new tmux session of the row's name, in the row's own dead pane, or `where`."""
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
        pane = _in_pane(context, row, launches.launcher_command(launch_file), where)
    except NoAnswer as error:
        found = _look_for(context, row)
        if found is None and launches.cancel_launch(launch_file):
            raise
        if found is None:
            raise StartUnconfirmed(error.message, hint=error.hint) from error
        pane = found
    except BaseException:
        launches.cancel_launch(launch_file)
        raise
    return Started(
        pane_record(pane, os.path.basename(launch.argv[0]), row["workspace"]), pane.session_id, launch_file
    )


def _in_pane(context: Context, row: Row, command: list[str], where: Where | None) -> TmuxPane:
    tmux = context.tmux(row["tmux_server"])
    listing = tmux.panes()
    old = find_pane(row, listing.panes) if listing.confirmed else None
    if old is not None and old.dead and (old.mark, old.root) == (row["id"], context.paths.root):
        if where is not None and not where.keeps_pane:
            # No two panes carry one mark.
            tmux.kill_pane(old.id, mark=row["id"])
        else:
            try:
                return tmux.respawn(old.id, command, session_id=row["id"], root=context.paths.root)
            except PaneGone:
                # It went away between the two calls; a new one takes its place.
                context.progress("the old pane is gone, starting in a new one")
    if where is not None and where.window_id is not None:
        from mam.adapters.tmux.window import split

        return split(
            tmux,
            where.window_id,
            command,
            cwd=row["workspace"],
            session_id=row["id"],
            root=context.paths.root,
        )
    name = (where.session_name if where else None) or row["name"]
    if any(pane.session_name == name for pane in listing.panes):
        raise NameTaken(
            f"tmux server '{row['tmux_server']}' has a session named '{name}' that is not ours",
            hint=f"choose another name, or end it, or take it in: mam adopt {name} --session OTHER",
        )
    return tmux.start(name, command, cwd=row["workspace"], session_id=row["id"], root=context.paths.root)


def _look_for(context: Context, row: Row) -> TmuxPane | None:
    listing = context.tmux(row["tmux_server"]).panes()
    return find_pane(row, listing.panes) if listing.confirmed else None


def pane_record(pane: TmuxPane, command: str, cwd: str) -> Pane:
    """Return what the row remembers of a pane and the process in it."""
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


def delete_conversation(context: Context, row: Row, conversation: str) -> list[str]:
    """Have the program itself delete a conversation, where its kind does so; return what was run."""
    kind = context.kind(row["agent"])
    if kind.purge_command(conversation, "") is None:
        return []
    program, environ = _deleting(context, row, kind)
    argv = kind.purge_command(conversation, program) or []
    done = program_lookup.Running(argv, environ, row["workspace"]).finish(_DELETE_SECONDS)
    stores = row.get("stores") or kind.stores(environ)
    if done.status != 0 or kind.on_disk(conversation, row["workspace"], stores):
        said = done.words or f"exit {done.status}"
        raise Unconfirmed(
            f"{os.path.basename(program)} did not delete conversation {conversation}: {said}",
            hint=f"try it yourself: {' '.join(argv)}",
        )
    return [" ".join(argv[1:])]


def _deleting(context: Context, row: Row, kind: Kind) -> tuple[str, dict[str, str]]:
    """Return the program, and the environment that a launch of the session would have."""
    environ = {**context.environ, **(row.get("stores") or {})}
    command = (row.get("start_command") or [row["agent"]])[:1]
    program = find_program(context, kind, command, environ)
    stores = row.get("stores") or kind.stores(environ)
    what = kind.launch(Request(command=command, program=program, environ=environ, stores=stores))
    return program, environment(context, row, {}, what)


def leave_to_stranger(context: Context, row: Row, pane: TmuxPane | None) -> None:
    """Take our mark off a pane in which a process of somebody else runs: it is theirs, and may be adopted."""
    is_ours = pane is not None and (pane.mark, pane.root) == (row["id"], context.paths.root)
    if pane is None or not is_ours or pane.dead or pane.pid == row["pane"].get("pid"):
        return
    try:
        context.tmux(row["tmux_server"]).unmark(pane.id, row["id"])
    except PaneGone:
        # It is nobody's any more.
        return


def discard(context: Context, session_id: str) -> None:
    """Remove what no launcher will read any more: its session was ended before it came to it."""
    try:
        names = os.listdir(context.paths.launches)
    except OSError:
        return
    for name in names:
        if name.startswith(f"{session_id}-"):
            launches.cancel_launch(os.path.join(context.paths.launches, name))


def bound(context: Context, row: Row, started: Started, bind: Callable[[], Row]) -> Row:
    """Commit the row of what was started, or take the start back; then note the version, if it came late."""
    try:
        done = bind()
    except BaseException as error:
        if started.reading is not None:
            started.reading.cancel()
        _undo(context, row, started.launch_file, error)
        raise
    start_resident.ensure(context)
    return versions.record(context, done, started.reading)


def _undo(context: Context, row: Row, launch_file: str, error: BaseException) -> None:
    """Take back a start whose row was refused: no pane is left without a row.

    After any other error the row may be committed, and nobody can say so now; recovery can.
    """
    if not isinstance(error, Refused) or error.recorded:
        return
    launches.cancel_launch(launch_file)
    pane = _look_for(context, row)
    if pane is not None and pane.mark == row["id"]:
        context.tmux(row["tmux_server"]).kill_pane(pane.id, mark=row["id"])
