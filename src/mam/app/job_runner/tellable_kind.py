"""Refuses a job for a program that mam could start, but could not give the task to."""

from __future__ import annotations

from mam.adapters.agents.catalogue import BUILT_IN
from mam.app.sessions.launch import find_program
from mam.core.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context


def check_tellable(context: Context, agent: str, *, is_reviewer: bool = False) -> None:
    """Raise Refused if mam cannot see whether this program waits for words; nothing is started yet.

    A program without a kind that is not on PATH raises AgentMissing: its name may be mistyped.
    """
    kind = context.kind(agent)
    if not kind.takes_prompt or kind.reads_screen:
        return
    if not kind.is_known:
        find_program(context, kind, [agent], dict(context.environ))
    hint = f"run it once, its exit status is the end: mam job submit --exec --prompt TEXT -- {agent} …"
    if is_reviewer:
        hint = f"name another reviewer: {', '.join(_tellable_kinds(context))}"
    raise Refused(f"mam cannot see whether {agent} waits for words, so it cannot give it a task", hint=hint)


def _tellable_kinds(context: Context) -> list[str]:
    kinds = [context.kind(name) for name in BUILT_IN]
    return [kind.name for kind in kinds if kind.takes_prompt and kind.reads_screen]
