"""Who calls: a session counts as the caller only if its own process is an ancestor of the calling one."""

from __future__ import annotations

from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import World
    from mam.core.session_row import Action, Row


def actor(world: World) -> str:
    """Return who is calling: a session's id, or `user`."""
    if world.known_actor is None:
        row = calling_session(world)
        world.known_actor = row["id"] if row else "user"
    return world.known_actor


def reporter(world: World) -> str:
    """Return the same for a report, which must get through where the registry's file cannot be read.

    The rows are those of the database; of a session that is claimed only its own.
    """
    claimed = world.environ.get("MAM_SESSION")
    if world.known_actor is None and not claimed and not world.environ.get("TMUX_PANE"):
        world.known_actor = "user"
    if world.known_actor is None:
        none: list[Row] = []
        rows = world.registry.peek(
            lambda draft: [row] if claimed and (row := draft.get(claimed)) else draft.rows(), none
        )
        found = _among(world, rows)
        world.known_actor = found["id"] if found else "user"
    return world.known_actor


def action(world: World, verb: str) -> Action:
    """Return the record of who does what now."""
    return {"by": actor(world), "verb": verb, "at_epoch": int(world.now())}


def calling_session(world: World) -> Row | None:
    """Return the session that the calling process runs in, or None for a person."""
    if not world.environ.get("MAM_SESSION") and not world.environ.get("TMUX_PANE"):
        return None
    return _among(world, world.registry.view().rows)


def _among(world: World, rows: list[Row]) -> Row | None:
    claimed, pane = world.environ.get("MAM_SESSION"), world.environ.get("TMUX_PANE")
    if claimed:
        found = [row for row in rows if row.get("id") == claimed]
    else:
        # An agent that was started by hand, and registered since, has only its pane; a pane of another
        # server may be called the same.
        found = [row for row in rows if pane and is_running(row) and row["pane"].get("id") == pane]
    return next((row for row in found if runs_inside(row, world.pid)), None)


def runs_inside(row: Row, pid: int) -> bool:
    """Tell whether a process is a descendant of the session's process."""
    from mam.adapters.system import process

    pane = row.get("pane") or {}
    identity = (pane.get("pid"), pane.get("pid_start"), pane.get("boot_id"))
    return any((one.pid, one.start, one.boot) == identity for one in process.ancestors(pid))
