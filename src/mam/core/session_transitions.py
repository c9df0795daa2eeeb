"""The state machine of a session: which status follows which event, and how the row changes.

No other code assigns a status. A verb names the event, a function here returns the changed row, and the
store commits it if the row still has the version that was read.
"""

from __future__ import annotations

from mam.core.errors import IllegalTransition
from mam.core.session_row import EXEC, Status, is_own_id_field, merged, own_id_field
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.core.session_row import Action, Conversation, Pane, Row

GONE = "gone"

TABLE: dict[tuple[Status, str], str] = {
    (Status.RUNNING, "stop"): Status.STOPPED,
    (Status.RUNNING, "died"): Status.TERMINATED,
    (Status.STOPPED, "died"): Status.TERMINATED,
    (Status.RUNNING, "purge"): Status.TERMINATED,
    (Status.STOPPED, "purge"): Status.TERMINATED,
    (Status.TERMINATED, "purge"): Status.TERMINATED,
    (Status.ARCHIVED, "purge"): Status.TERMINATED,
    (Status.STOPPED, "resume"): Status.RUNNING,
    (Status.TERMINATED, "resume"): Status.RUNNING,
    (Status.ARCHIVED, "resume"): Status.RUNNING,
    (Status.STOPPED, "create"): Status.RUNNING,
    (Status.TERMINATED, "create"): Status.RUNNING,
    (Status.ARCHIVED, "create"): Status.RUNNING,
    (Status.STOPPED, "archive"): Status.ARCHIVED,
    (Status.TERMINATED, "archive"): Status.ARCHIVED,
    (Status.STOPPED, "forget"): GONE,
    (Status.TERMINATED, "forget"): GONE,
    (Status.ARCHIVED, "forget"): GONE,
}

_HINTS = {
    (Status.RUNNING, "create"): "stop it first, or give the new session another name",
    (Status.RUNNING, "resume"): "it is already running; attach to it",
    (Status.RUNNING, "archive"): "stop it first: mam stop {name}",
    (Status.RUNNING, "forget"): "stop it first: mam stop {name}",
}


def next_status(status: Status, event: str, name: str) -> str:
    """Return the status after an event of the session `name`, or raise IllegalTransition with a hint."""
    try:
        return TABLE[status, event]
    except KeyError:
        consequence = "it cannot have died" if event == "died" else f"mam does not {event} it"
        raise IllegalTransition(
            f"'{name}' is {status}, so {consequence}", hint=_HINTS.get((status, event), "").format(name=name)
        ) from None


def stopped(row: Row, action: Action, *, reason: str, mode: str, exit_status: int | None) -> Row:
    """Return the row after a proven stop."""
    at = action["at_epoch"]
    return _changed(
        row,
        "stop",
        action,
        resumable=True,
        stopped_at=stamp(at),
        stopped_at_epoch=at,
        stop_reason=reason,
        termination_mode=mode,
        exit_status=exit_status,
        last_visible_status=Status.STOPPED,
    )


def purged(row: Row, action: Action, *, reason: str | None, exit_status: int | None) -> Row:
    """Return the row after a purge: the session has ended, and the row has no conversation ids.

    `reason` is why it ended. None keeps the reason of an earlier stop.
    """
    at = action["at_epoch"]
    cleared = {key: None for key in row if is_own_id_field(key)} | {own_id_field(row["agent"]): None}
    return _changed(
        row,
        "purge",
        action,
        resumable=False,
        conversations=[],
        terminated_at=stamp(at),
        terminated_at_epoch=at,
        stop_reason=reason if reason is not None else row.get("stop_reason"),
        termination_mode="purge",
        exit_status=exit_status if exit_status is not None else row.get("exit_status"),
        last_visible_status=Status.TERMINATED,
        **cleared,
    )


def died(
    row: Row, action: Action, *, on_disk: bool, exit_status: int | None, is_success: bool = False
) -> Row:
    """Return the row after its process was found gone; it is resumable if its conversation is on disk.

    `is_success` is for a command that exited with 0: it was started to end.
    """
    at = action["at_epoch"]
    return _changed(
        row,
        "died",
        action,
        resumable=on_disk,
        terminated_at=stamp(at),
        terminated_at_epoch=at,
        termination_mode="graceful" if is_success else "auto-detected",
        exit_status=exit_status,
        last_visible_status=Status.TERMINATED,
    )


def started_anew(
    row: Row,
    action: Action,
    *,
    pane: Pane,
    tmux_session_id: str,
    conversation: Conversation | None,
    **fields: Any,
) -> Row:
    """Return an ended row after a start with a new conversation."""
    conversations = [*(row.get("conversations") or []), *([conversation] if conversation else [])]
    return _changed(
        row,
        "create",
        action,
        pane=pane,
        tmux_session_id=tmux_session_id,
        conversations=conversations,
        **{own_id_field(row["agent"]): None},
        **alive_fields(),
        **fields,
    )


def resumed(
    row: Row,
    action: Action,
    *,
    pane: Pane,
    tmux_session_id: str,
    tier: int | None,
    own: str | None,
    **fields: Any,
) -> Row:
    """Return an ended row after a resume of its conversation."""
    return _changed(
        row,
        "resume",
        action,
        pane=pane,
        tmux_session_id=tmux_session_id,
        resumed_at=stamp(action["at_epoch"]),
        resume_count=(row.get("resume_count") or 0) + 1,
        resume_tier=tier,
        **({own_id_field(row["agent"]): own} if own else {}),
        **alive_fields(),
        **fields,
    )


def found_alive(row: Row, action: Action, *, pane: Pane, tmux_session_id: str, tmux_server: str) -> Row:
    """Return a row that is older than its session, with the pane in which the session runs now."""
    place: dict[str, Any] = {"pane": pane, "tmux_session_id": tmux_session_id, "tmux_server": tmux_server}
    if row["status"] == Status.RUNNING:
        return merged(row, **place, last_action=action)
    return _changed(row, "resume", action, **place, **alive_fields())


def archived(row: Row, action: Action) -> Row:
    """Return an ended row after it was archived."""
    return _changed(row, "archive", action, last_visible_status=Status.ARCHIVED)


def alive_fields() -> dict[str, Any]:
    """Return the fields that have the same values in every running row."""
    return {
        "resumable": True,
        "exit_status": None,
        "stopped_at": None,
        "stopped_at_epoch": None,
        "stop_reason": None,
        "terminated_at": None,
        "terminated_at_epoch": None,
        "termination_mode": None,
        "last_visible_status": Status.RUNNING,
    }


def _changed(row: Row, event: str, action: Action, **fields: Any) -> Row:
    status = next_status(row["status"], event, row["name"])
    if row["agent"] == EXEC:
        fields["resumable"] = False
    return merged(row, **fields, status=status, last_action=action)
