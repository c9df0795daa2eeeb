"""Waits for several sessions at once, for an agent that delegates. Reads only.

The pause between two looks grows with the elapsed time: a wait is usually either very short or long.
"""

from __future__ import annotations

import time

from mam.app.agent_tools.agent_view import agents
from mam.core.delegated_agent_state import ENDED, TARGETS, is_reached
from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.app.agent_tools.agent_view import Agent
    from mam.app.context.context import Context
    from mam.core.caller import Caller

_SOONEST, _LATEST, _SHARE = 0.1, 1.0, 0.05
# Seconds that a session must have been idle: after an Enter an agent looks idle until its first sign of work.
_SETTLES = 0.5


def wait_for_agents(
    context: Context,
    caller: Caller,
    *,
    ids: Sequence[str] = (),
    mine: bool = False,
    state: str = "done",
    timeout: float = 300.0,
    tell: Callable[[list[Agent]], None] = lambda _agents: None,
    pause: Callable[[float], bool] | None = None,
) -> dict[str, Any]:
    """Return once every session is in the state, has ended, or waits at a dialog.

    `matched` says whether all are in the state. `tell` gets the listing of each look. `pause` sleeps for the
    given seconds and returns True to give up. A session at a dialog ends the wait for it, because somebody
    has to answer first.
    """
    if state not in TARGETS:
        raise Usage(f"cannot wait for {state!r}", hint=f"wait for {', '.join(TARGETS)}")
    began = time.monotonic()
    idle_since: dict[str, float] = {}
    while True:
        listing = agents(context, caller, ids=ids, mine=mine, thorough=True)
        elapsed = time.monotonic() - began
        tell(listing)
        _note_idle_since(idle_since, listing, elapsed)
        if all(
            _is_over(agent, state, elapsed - idle_since.get(agent["agent_id"], elapsed)) for agent in listing
        ):
            return _answer(listing, state, elapsed, timed_out=False)
        if elapsed >= timeout:
            return _answer(listing, state, elapsed, timed_out=True)
        seconds = min(max(_SOONEST, min(_LATEST, elapsed * _SHARE)), timeout - elapsed)
        if (pause or _sleep)(seconds):
            return _answer(listing, state, elapsed, timed_out=True)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _note_idle_since(idle_since: dict[str, float], listing: list[Agent], now: float) -> None:
    """Note since when each session is idle; a session at a dialog does not count as idle."""
    for agent in listing:
        if agent["state"] == "idle" and not agent["blocked_on_prompt"]:
            idle_since.setdefault(agent["agent_id"], now)
        else:
            idle_since.pop(agent["agent_id"], None)


def _is_over(agent: Agent, state: str, idle_seconds: float) -> bool:
    if agent["state"] in ENDED or agent["blocked_on_prompt"]:
        return True
    return is_reached(agent["state"], state) and (agent["state"] != "idle" or idle_seconds >= _SETTLES)


def _answer(listing: list[Agent], state: str, elapsed: float, *, timed_out: bool) -> dict[str, Any]:
    results = [{**agent, "matched": is_reached(agent["state"], state)} for agent in listing]
    return {
        "matched": all(agent["matched"] for agent in results),
        "timed_out": timed_out,
        "elapsed_ms": round(elapsed * 1000),
        "results": results,
    }
