"""Describes sessions for an agent that delegates: one word for the state, and the parent. Reads only."""

from __future__ import annotations

from mam.app.observation.ls import describe
from mam.core import authority
from mam.core.activity import WAITING
from mam.core.delegated_agent_state import agent_state
from mam.core.session_row import Status, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Agent = dict[str, Any]


def agents(
    context: Context,
    caller: Caller,
    *,
    ids: Sequence[str] = (),
    mine: bool = False,
    parent: str | None = None,
    thorough: bool = False,
) -> list[Agent]:
    """Return all sessions, or the selected ones; raise SessionNotFound for an unknown id or name.

    `mine` selects the sessions that the caller started, and those that they started; for a person, all.
    """
    view = context.view_to_show()
    session_ids = {view.find(name)["id"] for name in ids}
    above = view.find(parent)["id"] if parent else None
    me = caller.name

    def fits(row: Row) -> bool:
        return (
            (not ids or row["id"] in session_ids)
            and (above is None or row.get("parent") == above)
            and (not mine or me == authority.OPERATOR or authority.is_descendant(row["id"], me, view.rows))
        )

    return [as_agent(name) for name in describe(context, view, fits, thorough=thorough)]


def agent(context: Context, caller: Caller, target: str) -> Agent:
    """Return one session, with a thorough look at its activity."""
    return agents(context, caller, ids=[target], thorough=True)[0]


def as_agent(session: dict[str, Any]) -> Agent:
    """Return the description of a session of `ls` for agents."""
    spoken = None if own_id(session) else session["resume"]["on_disk"]  # type: ignore[arg-type]  # a row and more
    return {
        "agent_id": session["id"],
        "name": session["name"],
        "state": agent_state(
            session["status"],
            session["activity"],
            termination_mode=session.get("termination_mode"),
            has_spoken=spoken,
        ),
        "blocked_on_prompt": session["status"] == Status.RUNNING and session["activity"] == WAITING,
        "waiting_for": session["waiting_for"],
        "cli": session["agent"],
        "model": session.get("model"),
        "role": session.get("role"),
        "parent_agent_id": session.get("parent"),
        "cwd": session["workspace"],
        "job_id": session["job"],
    }
