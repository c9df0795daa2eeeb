"""An ordinary turn: think, perhaps use a tool, answer."""

from __future__ import annotations

from .answers import asks_for_history, compose, recall, thinking_words
from .stage import Stage
from .tools import tool_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .stage import Turn


def ordinary_turn(stage: Stage, prompt: str, earlier: list[str]) -> Turn:
    """Answer a prompt; `earlier` is what the person said before it."""
    yield stage.seconds(thinking_words(prompt))
    if asks_for_history(prompt):
        answer = recall(earlier)
    else:
        command = tool_for(prompt)
        if command and not (yield from stage.use_tool(command)):
            return None
        answer = compose(prompt, after_tool=command)
    yield from stage.say(answer)
    return answer
