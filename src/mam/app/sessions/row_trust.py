"""Rows whose command this user's mam has not launched on this machine.

Such a row may come with a repository of somebody else, or an agent that may only edit files changed it. A row
that names only the program of its kind runs nothing that `create` would not run. mam runs any other such row
only if a person says so.
"""

from __future__ import annotations

from mam.adapters.agents.kind import Kind
from mam.core.errors import NotAllowed, Refused, Unavailable
from mam.core.row_checks import launch_flaws
from mam.core.safe_text import one_line
from mam.core.session_row import has_mcp_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_HARMLESS = (None, "default", "ask")
# The command before the last one, in the record of a launch that is not committed yet.
_FORMER = "former"
# Longer than most commands; a person has to see what would run.
_LONGEST_SHOWN = 400


def refuse(context: Context, caller: Caller, row: Row, *, run_recorded: bool) -> None:
    """Refuse to run the command of a row that mam has not launched as it is, unless a person says so.

    `run_recorded` is refused to every caller but the user: a session could have written the row itself.
    """
    if run_recorded:
        check_caller(caller)
        return
    if _is_plain(context, row):
        return
    command, launched = _command_of(row), context.user_state.launch_of(context.root_id, row["id"])
    if launched is None:
        # mam 0.1 recorded that it started a session, and not with which command.
        if context.user_state.has_started(context.paths.root, row["id"]):
            return
        problem = f"'{row['name']}' was never started by mam on this machine, and its row would run"
    elif _is_same(command, launched):
        return
    else:
        problem = f"'{row['name']}' was changed since mam last started it, and its row would now run"
    raise NotAllowed(
        f"{problem}: {one_line(_shown(command), _LONGEST_SHOWN)}",
        hint=f"look at the row: mam status {row['name']}; if it is what you want to run: "
        f"mam resume {row['name']} --run-recorded (create, restart, fork and stop take it too)",
    )


def check_caller(caller: Caller) -> None:
    """Raise NotAllowed unless the caller is the user."""
    if not caller.is_user:
        raise NotAllowed(
            "only a person may use --run-recorded: it runs a command that mam has not launched before",
            hint="ask the user to do it in a shell of their own",
        )


def refuse_flaws(row: Row) -> None:
    """Refuse to start a row with a value that its program would take for something else, as an option."""
    for field, reason in launch_flaws(row):
        raise Refused(
            f"mam cannot start '{row.get('name')}': {reason}",
            hint=_HINTS.get(field, "mam forget removes the row; its conversation stays where it is").format(
                name=row.get("name")
            ),
        )


_HINTS = {
    "name": "give it another name first: mam rename",
    "model": "mam create --session {name} --model MODEL starts it anew with another model",
    "permissions": "mam create --session {name} --permissions ask starts it anew with others",
    "start_command": "correct it in the registry file",
}


def note_launch(context: Context, row: Row, *, mcp: bool = False) -> None:
    """Record in the user state what a session runs from now on; with `mcp` it gets mam's own tools.

    The former command counts too until `confirm_launch`: if the start fails, the row keeps it.
    """
    assert context.root_id is not None
    command = {**_command_of(row), "mcp": mcp}
    former = context.user_state.launch_of(context.root_id, row["id"])
    if former is not None and not _is_same(command, former):
        command[_FORMER] = {key: value for key, value in former.items() if key != _FORMER}
    context.user_state.note_launch(context.root_id, row["id"], command)


def was_launched(context: Context, row: Row) -> bool:
    """Tell whether this user's mam has ever started, or adopted, a session."""
    if context.user_state.launch_of(context.root_id, row["id"]) is not None:
        return True
    return context.user_state.has_started(context.paths.root, row["id"])


def confirm_launch(context: Context, row: Row) -> None:
    """Forget the former command of a session whose new launch is committed."""
    assert context.root_id is not None
    try:
        launched = context.user_state.launch_of(context.root_id, row["id"])
        if launched is not None and launched.pop(_FORMER, None) is not None:
            context.user_state.note_launch(context.root_id, row["id"], launched)
    except Unavailable as error:
        context.warn(f"mam could not record what '{row['name']}' runs: {error}")


def _command_of(row: Row) -> dict[str, Any]:
    """Return all that a row adds to the argv and the environment of a launch."""
    return {
        "agent": row["agent"],
        "start_command": row.get("start_command") or [row["agent"]],
        "permissions": row.get("permissions") or "default",
        "model": row.get("model"),
        "stores": row.get("stores") or {},
        "mcp": has_mcp_server(row),
    }


def _is_same(command: dict[str, Any], launched: dict[str, Any]) -> bool:
    """Tell whether a command equals the launched one. A row that shows no tools is harmless."""
    return any(
        all(value == other.get(key) or (key == "mcp" and not value) for key, value in command.items())
        for other in (launched, launched.get(_FORMER) or {})
    )


def _shown(command: dict[str, Any]) -> str:
    """Return the command as a person reads it, with the variables before it."""
    import shlex

    words = [f"{name}={value}" for name, value in command["stores"].items()]
    text = " ".join(shlex.quote(word) for word in [*words, *command["start_command"]])
    others = [f"permissions {command['permissions']}", f"model {command['model']}", "mam's tools"]
    is_given = [command["permissions"] != "default", command["model"] is not None, command["mcp"]]
    shown = [other for other, given in zip(others, is_given, strict=True) if given]
    return f"{text} ({', '.join(shown)})" if shown else text


def _is_plain(context: Context, row: Row) -> bool:
    """Tell whether a row names nothing but the program of a kind that mam knows.

    Any program on PATH is a kind of its own, and one such as `make` runs what the directory holds.
    """
    stores = row.get("stores") or {}
    kind = context.kind(row["agent"])
    usual = kind.stores(context.environ)
    return (
        type(kind) is not Kind
        and (row.get("start_command") or [row["agent"]]) == [row["agent"]]
        and row.get("permissions") in _HARMLESS
        and all(usual.get(name, value) == value for name, value in stores.items())
        and stores.keys() <= usual.keys()
        and not has_mcp_server(row)
    )
