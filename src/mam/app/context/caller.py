"""Finding out who calls: a session, the user, or unknown.

A session is recognised by its process, which is an ancestor of the calling process, or by the secret of its
launch. A script of `--validate` acts for who submitted its job, whoever runs it. A process that claims to
belong to a session, or that a session may have detached, is no user.
"""

from __future__ import annotations

import sys

from mam.core import caller as callers
from mam.core.errors import RegistryCorrupt, RootUnsafe, SchemaTooNew
from mam.core.root_state import RootState
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.store.tables.running_scripts import RunningScript
    from mam.adapters.system.process import Identity, Stat
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# A process that has the secret of a launch waits this long until the launch is recorded.
_RECORD_SECONDS, _STEP = 5.0, 0.02


def find_caller(context: Context, pid: int) -> Caller:
    """Return who calls by a process."""
    return _find(context, pid, waits=True)


def find_reporter(context: Context, pid: int) -> Caller:
    """Return the caller of a report, which needs no session, and so does not wait for its record."""
    return _find(context, pid, waits=False)


def calling_row(context: Context, caller: Caller) -> Row | None:
    """Return the row of the calling session; None where the caller is no session."""
    if caller.session_id is None:
        return None
    return context.registry.view_to_show().by_id(caller.session_id)


def runs_inside(row: Row, pid: int) -> bool:
    """Tell whether a process is a descendant of the session's process."""
    from mam.adapters.system import process

    return _identity_of(row) in process.ancestors(pid)


def _find(context: Context, pid: int, *, waits: bool) -> Caller:
    """The rows come from the database, so that a report also works beside a broken YAML file."""
    from mam.adapters.store.tables.running_scripts import running_scripts
    from mam.adapters.system import process

    none: list[RunningScript] = []
    try:
        # The rows of a root that somebody else made prove nothing about the processes of this machine.
        is_foreign = context.root.verdict().state == RootState.FOREIGN
        rows = [] if is_foreign else context.registry.running_rows()
        scripts = none if is_foreign else context.registry.peek(running_scripts, none)
    except (RegistryCorrupt, SchemaTooNew):
        # A verb that needs the rows fails later. `restore` goes on, and a session is found by its process.
        return (
            _by_other_root(context, process.lineage(pid), pid)
            or _by_claim(context, [], pid)
            or callers.user(pid)
        )
    except RootUnsafe:
        # Whoever could have written the rows does not decide who calls. `init` works below such a root.
        return _by_other_root(context, process.lineage(pid), pid) or callers.user(pid)
    lineage = process.lineage(pid)
    by_process = {_identity_of(row): row for row in rows}
    for facts in lineage[1:]:
        if (row := by_process.get(facts.identity())) is not None:
            return callers.session(row["id"], pid)
    if scripts and (caller := _by_script(scripts, rows, lineage, pid)) is not None:
        return caller
    session_id = _session_by_secret(context, rows, waits=waits)
    if session_id is not None:
        return callers.session(session_id, pid)
    return (
        _by_other_root(context, lineage, pid)
        or _by_claim(context, rows, pid)
        or _unseen(lineage, pid)
        or _by_terminal_or_descent(context, rows, lineage, pid)
        or callers.user(pid)
    )


def _identity_of(row: Row) -> Identity | None:
    from mam.app.context.liveness import identity_of

    return identity_of(row)


def _session_by_secret(context: Context, rows: list[Row], *, waits: bool) -> str | None:
    """Return the running session of which the environment has the launch secret.

    The program of a new session may call before its row is recorded. The intent of its start is there by
    then, so a short wait is enough.
    """
    from mam.adapters.store.launch_secret import VARIABLE

    file = context.environ.get(VARIABLE)
    if not file:
        return None
    session_id = context.user_state.session_with_secret(context.root_id, file)
    if session_id is None:
        return None
    if not any(row.get("id") == session_id for row in rows) and not (waits and _starts(context, session_id)):
        return None
    # Its tools may run in a PID namespace of their own, from which nobody else may change the root.
    if not context.root.is_proven_session:
        context.root.is_proven_session = True
        context.root.forget_verdict()
        # From elsewhere it has opened a copy of the database.
        context.registry.close()
    return session_id


def _starts(context: Context, session_id: str) -> bool:
    """Wait while another process starts a session; tell whether the session runs then."""
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(_RECORD_SECONDS)
    while True:
        is_claimed = context.registry.peek(lambda it: it.intents.of(session_id) is not None, False)
        if any(row.get("id") == session_id for row in context.registry.running_rows()):
            return True
        if not is_claimed or not deadline.pause(_STEP):
            return False


def _by_script(scripts: list[RunningScript], rows: list[Row], lineage: list[Stat], pid: int) -> Caller | None:
    """Return the session that submitted the job whose script is an ancestor; None for a person's script.

    The resident runs the script, or a person who waits for the job, so its ancestors do not tell.
    """
    from mam.adapters.system import process
    from mam.adapters.system.process import Identity

    def is_unknown(script: RunningScript) -> bool:
        """Tell whether its process is not recorded yet: then only the one that started it tells."""
        identity = Identity.from_json(script.process)
        return identity is None or not process.is_alive(identity)

    ancestors = {facts.identity() for facts in lineage[1:]}
    own = [script for script in scripts if Identity.from_json(script.process) in ancestors]
    begun = [it for it in scripts if is_unknown(it) and Identity.from_json(it.starter) in ancestors]
    for script in own or begun:
        if script.created_by == "user":
            continue
        if any(row.get("id") == script.created_by for row in rows):
            return callers.session(script.created_by, pid)
        return callers.unknown(
            pid,
            reason="it runs in the script of a job that a session submitted",
            hint="a person does this in a terminal of their own",
        )
    return None


def _by_other_root(context: Context, lineage: list[Stat], pid: int) -> Caller | None:
    """Return an unknown caller if the process of a session of another root is an ancestor."""
    from mam.adapters.system.process import Identity

    sessions = {Identity.from_json(document) for document in context.user_state.processes()}
    if not any(facts.identity() in sessions for facts in lineage[1:]):
        return None
    return callers.unknown(
        pid,
        reason="it runs in a session of another root",
        hint="a session changes only its own root; a person does this in a terminal of their own",
    )


def _by_claim(context: Context, rows: list[Row], pid: int) -> Caller | None:
    """Return an unknown caller if the environment names a session that is no ancestor."""
    environ = context.environ
    if environ.get("MAM_SESSION"):
        names = [name for name in ("MAM_SESSION", "MAM_LAUNCH", "MAM_ROOT") if environ.get(name)]
        return callers.unknown(
            pid,
            reason="MAM_SESSION names a session, and this process does not run in it",
            hint=f"if your shell inherited it, and you are no agent: unset {' '.join(names)}",
        )
    from mam.adapters.system import process

    pane, server_pid = environ.get("TMUX_PANE"), tmux_server_pid(environ.get("TMUX", ""))
    for row in rows:
        recorded = row["pane"]
        if not pane or recorded.get("id") != pane or server_pid not in (None, recorded.get("server_pid")):
            continue
        # After its agent has died, a pane may show the shell of a person.
        identity = _identity_of(row)
        if identity is not None and process.is_alive(identity):
            return callers.unknown(
                pid,
                reason=f"TMUX_PANE names the pane of '{row['name']}', and this process does not run in it",
                hint="if your shell inherited it, and you are no agent: unset TMUX_PANE TMUX",
            )
    return None


def tmux_server_pid(variable: str) -> int | None:
    """Return the pid of the tmux server in the variable TMUX, which holds socket,pid,session."""
    parts = variable.rsplit(",", 2)
    return whole_number(parts[1]) if len(parts) == 3 else None


def _unseen(lineage: list[Stat], pid: int) -> Caller | None:
    """Return an unknown caller if the process has ended, or is in a PID namespace that is not to be seen."""
    if lineage:
        return None
    return callers.unknown(pid, reason="its process is not to be seen", hint="call from this machine")


def _by_terminal_or_descent(
    context: Context, rows: list[Row], lineage: list[Stat], pid: int
) -> Caller | None:
    """Return an unknown caller on the terminal of a session, or one that a session may have detached.

    A person's program may have left its terminal, as agents do with the commands that they run. So the
    terminal of an ancestor counts, too.
    """
    from mam.core.detached_process import below_reaper

    for server_pid, sessions in _by_server(rows).items():
        reapers = _reapers(server_pid)
        own_line = below_reaper(lineage, reapers)
        on_terminal = next((facts for facts in own_line if facts.tty), None)
        if on_terminal is not None:
            row = _session_on_terminal(sessions, on_terminal)
            if row is not None:
                return callers.unknown(
                    pid,
                    reason=f"this process uses the terminal of '{row['name']}', and does not run in it",
                    hint="use another terminal",
                )
        elif (
            own_line
            and own_line[-1].parent in reapers
            # The tmux server itself may be as old as its first session. It runs what a person's keys ask for.
            and own_line[-1].pid != server_pid
            and _is_detached(sessions, own_line[-1])
            and _detached_setting(context) != "user"
        ):
            return callers.unknown(
                pid,
                reason="it has no terminal, and a session may have started it in the background",
                hint="use a terminal; if your own services call mam, allow it: "
                'detached = "user" in ~/.config/mam/config.toml',
            )
    return None


def _by_server(rows: list[Row]) -> dict[int | None, list[Row]]:
    """Return the sessions of each tmux server that this boot of the machine has started."""
    from mam.adapters.system import process

    servers: dict[int | None, list[Row]] = {}
    for row in rows:
        identity = _identity_of(row)
        if identity is not None and identity.boot == process.boot_id():
            servers.setdefault(row["pane"].get("server_pid"), []).append(row)
    return servers


def _reapers(server_pid: int | None) -> set[int]:
    """Return the processes that may become the parent of what a session of a tmux server detaches."""
    from mam.adapters.system import process

    return {1, *(facts.pid for facts in process.lineage(server_pid or 0)[1:])}


def _session_on_terminal(sessions: Sequence[Row], caller: Stat) -> Row | None:
    """Return the session whose pane is the terminal of a process.

    The process of a pane leads the terminal session, which tells it from most others without a look at them.
    macOS does not tell the terminal session.
    """
    from mam.adapters.system import process

    for row in sessions:
        leader = row["pane"]["pid"]
        if caller.session in (0, leader) and (facts := process.stat(leader)) and facts.tty == caller.tty:
            return row
    return None


def _is_detached(sessions: Sequence[Row], top: Stat) -> bool:
    """Tell whether one of the sessions may have detached the process `top`, which is a child of a reaper."""
    if sys.platform != "linux":
        return False
    from mam.adapters.system import process
    from mam.core.detached_process import may_be_orphan_of

    reaper, leader = process.stat(top.parent), process.stat(top.session)
    starts = {row["pane"]["pid"]: row["pane"]["pid_start"] for row in sessions}
    suspects = [pid for pid, start in starts.items() if may_be_orphan_of(top, reaper, leader, start)]
    if not suspects:
        return False
    # A service manager gives each service control groups of its own.
    own = process.control_groups(top.pid)
    return any(own is None or process.control_groups(pid) in (None, own) for pid in suspects)


def _detached_setting(context: Context) -> str:
    from mam.core.errors import InvalidSettings
    from mam.core.settings import DETACHED

    try:
        return context.settings().detached
    except InvalidSettings:
        # A report must not fail because of a wrong setting. Every other verb names the problem.
        return DETACHED[0]
