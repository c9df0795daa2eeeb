"""Wait for several sessions at once, in the words of agents. Reads only.

It looks often at first and then less: what is waited for takes a moment or a while.
"""

from __future__ import annotations

import time

from mam.app.agent_tools.agent_view import agents
from mam.core.delegated_agent_state import ENDED, TARGETS, reached
from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.app.agent_tools.agent_view import Agent
    from mam.app.context.context import Context
    from mam.core.caller import Caller

_SOONEST, _LATEST, _SHARE = 0.1, 1.0, 0.05
# Seconds that rest must have lasted: between an Enter and the first sign of work an agent looks idle still.
_SETTLES = 0.5


def gather(
    context: Context,
    caller: Caller,
    *,
    ids: Sequence[str] = (),
    mine: bool = False,
    state: str = "done",
    timeout: float = 300.0,
    tell: Callable[[list[Agent]], None] = lambda _found: None,
    pause: Callable[[float], bool] | None = None,
) -> dict[str, Any]:
    """Return once every session is in the state or has ended; `matched` says whether all are in it.

    `tell` hears each look. `pause` sleeps so long and says whether to give up; a session that ended
    otherwise, or is blocked by a question, is not waited for: somebody has to act.
    """
    if state not in TARGETS:
        raise Usage(f"cannot wait for {state!r}", hint=f"wait for {', '.join(TARGETS)}")
    began = time.monotonic()
    rests: dict[str, float] = {}
    while True:
        found = agents(context, caller, ids=ids, mine=mine, thorough=True)
        elapsed = time.monotonic() - began
        tell(found)
        _note_rest(rests, found, elapsed)
        if all(_is_over(one, state, elapsed - rests.get(one["agent_id"], elapsed)) for one in found):
            return _answer(found, state, elapsed, timed_out=False)
        if elapsed >= timeout:
            return _answer(found, state, elapsed, timed_out=True)
        left = min(max(_SOONEST, min(_LATEST, elapsed * _SHARE)), timeout - elapsed)
        if (pause or _sleep)(left):
            return _answer(found, state, elapsed, timed_out=True)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _note_rest(rests: dict[str, float], found: list[Agent], now: float) -> None:
    """Keep since when each is idle; one that is blocked by a question is at rest by its own word."""
    for one in found:
        if one["state"] == "idle" and not one["blocked_on_prompt"]:
            rests.setdefault(one["agent_id"], now)
        else:
            rests.pop(one["agent_id"], None)


def _is_over(one: Agent, state: str, rested: float) -> bool:
    if one["state"] in ENDED or one["blocked_on_prompt"]:
        return True
    return reached(one["state"], state) and (one["state"] != "idle" or rested >= _SETTLES)


def _answer(found: list[Agent], state: str, elapsed: float, *, timed_out: bool) -> dict[str, Any]:
    results = [{**one, "matched": reached(one["state"], state)} for one in found]
    return {
        "matched": all(one["matched"] for one in results),
        "timed_out": timed_out,
        "elapsed_ms": round(elapsed * 1000),
        "results": results,
    }
