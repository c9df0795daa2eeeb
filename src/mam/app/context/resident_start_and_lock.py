"""Starting the resident on demand: every changing verb starts the resident of the root, if one is needed."""

from __future__ import annotations

import os

import mam
from mam.core.errors import MamError
from mam.core.mam_version import is_newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.process_lock import ProcessLock
    from mam.adapters.system.bounded_log import BoundedLog
    from mam.app.context.context import Context

# A resident ends within a second of a signal, or of the moment in which it has taken the lock.
_END_SECONDS, _STEP = 10.0, 0.05
# A resident that works shows life once a minute, and more seldom only in a pass that takes longer.
_SILENT_SECONDS = 300.0
# Variables that describe the caller's session and terminal, which are not the resident's.
_CALLER_PREFIXES = ("MAM_", "TMUX")
# Variables with these prefixes that the resident keeps: they name places, not a session or a terminal.
_KEPT = ("MAM_STATE_HOME", "TMUX_SERVER_NAME", "TMUX_TMPDIR")


def ensure_if_needed(context: Context) -> None:
    """Start a resident if this root needs one and none runs. It costs next to nothing where one runs."""
    from mam.adapters.store.tables.resident_need import needs_resident

    if has_resident(context) or not context.registry.peek(needs_resident, False):
        return
    # A tool of an agent may run in a container of its own, where a resident would see no process.
    if context.root.verdict().elsewhere is None:
        ensure(context)


def ensure(context: Context, *, for_client: bool = False) -> None:
    """Start a resident for this root unless one runs or the setting is off. A failure is only a warning.

    A resident of an older mam does not count: the new one takes its place. Where a newer mam has changed the
    root, this one starts none. After a start that failed the next one waits. With `for_client` the resident
    waits a moment for the client to connect, even if no session runs. Raises RootRefused for a root that mam
    may not change.
    """
    context.root.check()
    if context.settings().resident == "off" or has_resident(context):
        return
    if (version := newer_mam(context)) is not None:
        context.warn(
            f"no resident runs. This mam {mam.__version__} starts none, because mam {version} changed the "
            "root: use that one, or run mam monitor"
        )
    elif _may_start(context):
        _start(context, ["--awaits-client"] if for_client else [])


def _may_start(context: Context) -> bool:
    """Record a start in the user state; False if it is too early for one, or if nothing can be recorded."""
    root_id = context.root.verdict().id
    try:
        return root_id is None or context.user_state.begin_resident_start(root_id)
    except MamError as error:
        # The sandbox of an agent may forbid to write there. What the verb was asked for is done.
        context.warn(f"no resident is started: {error.message}")
        return False


def _start(context: Context, options: list[str]) -> None:
    from mam.adapters.system import detached_program
    from mam.core.inherited_variables import without_inherited

    environ = {
        key: value
        for key, value in without_inherited(context.environ).items()
        if not key.startswith(_CALLER_PREFIXES)
    }
    for name in _KEPT:
        if name in context.environ:
            environ[name] = context.environ[name]
    log = resident_log(context)
    output = log.path if log.prepare() else os.devnull
    if not detached_program.detach([*command(context), *options], environ, context.paths.root, output):
        context.warn("no resident could be started; start one by hand: mam monitor")


def end(context: Context) -> bool:
    """End the resident of this root; return whether there was one. Raises ResidentRuns if it does not end.

    The lock decides: a process that takes it now says a moment later who it is, and one in another container
    cannot be ended from here.
    """
    import signal

    from mam.adapters.system import exit_watch, process
    from mam.adapters.system.deadline import Deadline

    resident_lock, ends, is_there = lock(context), Deadline(_END_SECONDS), False
    while (holder := resident_lock.holder()) is not None:
        is_there = True
        identity = process.Identity.from_json(holder)
        if ends.has_passed():
            raise _not_ending(identity.pid if identity else None, resident_lock.path)
        if identity is not None and process.signal(identity, signal.SIGTERM):
            exit_watch.wait_gone([identity], _END_SECONDS)
        else:
            ends.pause(_STEP)
    return is_there


def _not_ending(pid: int | None, path: str) -> MamError:
    from mam.core.errors import ResidentRuns

    name, which = (
        (f", process {pid},", "that process") if pid else ("", f"the process that has locked {path}")
    )
    return ResidentRuns(
        f"the resident of this root{name} does not end", hint=f"end {which}, and repeat the command"
    )


def command(context: Context) -> list[str]:
    """Return the command that runs the resident of a root."""
    from mam.app.context import own_command

    root_options = ["--workspace", context.paths.root]
    if not context.paths.state.endswith("/.mam"):
        root_options += ["--registry", context.paths.yaml]
    return own_command.argv("monitor", "--resident", *root_options)


def lock(context: Context) -> ProcessLock:
    """Return the lock that the one resident of a root holds."""
    from mam.adapters.store.process_lock import ProcessLock

    return ProcessLock(_lock_file(context))


def _lock_file(context: Context) -> str:
    return os.path.join(context.paths.state, "resident.lock")


def lock_holder(context: Context) -> dict[str, Any] | None:
    """Return what the resident that runs says of itself; None without one."""
    return lock(context).holder() if os.path.exists(_lock_file(context)) else None


def working_holder(context: Context) -> dict[str, Any] | None:
    """Return what the resident that runs says of itself; None without one, or while it hangs.

    Then a verb does the resident's work itself. A resident that wakes up again does no harm: claims keep two
    processes from doing the same.
    """
    holder = lock_holder(context)
    return None if holder is None or hang_of(context, holder) is not None else holder


def hang_of(context: Context, holder: dict[str, Any]) -> tuple[str, str] | None:
    """Return how a resident hangs and the way out; None for one that works, or of which nobody can tell."""
    from mam.adapters.system import process

    identity = process.Identity.from_json(holder)
    if identity is None or identity.boot != process.boot_id():
        return None
    facts, pid = process.stat(identity.pid), identity.pid
    if facts is None or facts.start != identity.start:
        return None
    if facts.stopped:
        return f"process {pid} is stopped", f"kill -CONT {pid} lets it go on, kill -KILL {pid} ends it"
    seconds = lock(context).seconds_since_beat()
    # On a read-only file system nobody can show life.
    if seconds is None or seconds < _SILENT_SECONDS or not os.access(context.paths.state, os.W_OK):
        return None
    return (
        f"process {pid} has shown no life for {int(seconds // 60)} minutes",
        f"kill -KILL {pid} ends it, and the next change starts another",
    )


def has_resident(context: Context) -> bool:
    """Tell whether a resident runs that is not of an older mam."""
    holder = lock_holder(context)
    return holder is not None and not is_older(holder)


def is_older(holder: dict[str, Any]) -> bool:
    """Tell whether the holder of the lock is of an older mam. mam 0.1 does not name its version."""
    # In the moment in which a process takes the lock, the file says nothing of it yet.
    return "pid" in holder and is_newer(mam.__version__, str(holder.get("version", "0.1.0")))


def newer_mam(context: Context) -> str | None:
    """Return the version of a newer mam that has changed the root and is still installed."""
    from mam.app.context.context import THIS_MAM

    return context.registry.peek(THIS_MAM.newer, None)


def resident_log(context: Context) -> BoundedLog:
    """Return the log of the residents of a root. It is part of the user state: a resident watches `.mam`."""
    from mam.adapters.store.backup_file import name_of_root
    from mam.adapters.system.bounded_log import BoundedLog

    name = name_of_root(context.root.verdict().id, context.paths.state)
    return BoundedLog(os.path.join(context.user_state.resident_logs, f"{name}.log"))
