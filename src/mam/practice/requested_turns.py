"""Turns on request: slow, hanging, crashing, flooding, asking, failing.

They make every state of an agent reachable on purpose, for demonstrations and tests.
"""

from __future__ import annotations

from .dialog import CANCEL, limit, question
from .scrollback import INTERRUPTED
from .turn_actions import Crash, Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .turn_actions import Turn

_COLOURS = ["Red", "Green", "Blue"]
_RETRIES = 3
_FLOOD_ROW = 64
_FLOOD_ROWS = 1024
_A_LONG_TIME = 3600.0


def _slow(stage: Stage, rest: str) -> Turn:
    yield float(rest)
    answer = f"Done after {float(rest):g} seconds."
    yield from stage.say(answer)
    return answer


def _hang(_stage: Stage, _rest: str) -> Turn:
    while True:
        yield _A_LONG_TIME


def _crash(_stage: Stage, rest: str) -> Turn:
    # One step first, so that the prompt is on the screen and its hook is under way.
    yield 0.0
    raise Crash(int(rest or 1))


def _flood(stage: Stage, rest: str) -> Turn:
    rows = int(rest) * 1024 // _FLOOD_ROW
    for start in range(0, rows, _FLOOD_ROWS):
        block = range(start, min(start + _FLOOD_ROWS, rows))
        stage.output.plain([f"  flood {number:08d} ".ljust(_FLOOD_ROW - 1, "~") for number in block])
        yield 0.0
    answer = f"Printed {int(rest)} KB."
    yield from stage.say(answer)
    return answer


def _ask(stage: Stage, rest: str) -> Turn:
    command = rest.strip()
    if not (yield from stage.use_tool(command)):
        return None
    answer = f"`{command}` is done."
    yield from stage.say(answer)
    return answer


def _question(stage: Stage, _rest: str) -> Turn:
    text = "Which colour should the practice page have?"
    facts: dict[str, object] = {
        "tool_name": "AskUserQuestion",
        "tool_input": {"question": text, "options": _COLOURS},
    }
    stage.fire("PermissionRequest", facts)
    chosen = yield question("Colour", text, _COLOURS)
    if chosen == CANCEL:
        stage.output.tool(INTERRUPTED)
        return None
    stage.fire("PostToolUse", facts)
    answer = f"You chose {_COLOURS[chosen]}."
    yield from stage.say(answer)
    return answer


def _error(stage: Stage, _rest: str) -> Turn:
    yield 0.0
    message = "API Error: 500 practice error"
    stage.output.answer(message)
    stage.fail(message, {"error": "server_error"})
    return None


def _retry(stage: Stage, _rest: str) -> Turn:
    for attempt in range(1, _RETRIES + 1):
        stage.status = f"✻ 500 practice error · Retrying in 1s · attempt {attempt}/10"
        yield 1.0
    stage.status = ""
    answer = f"The service answered after {_RETRIES} attempts."
    yield from stage.say(answer)
    return answer


def _limit(stage: Stage, _rest: str) -> Turn:
    message = "Usage limit reached · resets 6pm"
    stage.output.answer(message)
    stage.fail(message, {"error": "rate_limit"})
    yield limit()
    return None


def _any(_rest: str) -> bool:
    return True


def _is_seconds(rest: str) -> bool:
    try:
        return 0 <= float(rest) < 1e6
    except ValueError:
        return False


def _is_size(rest: str) -> bool:
    return rest.isdecimal() and int(rest) <= 1_000_000


def _is_exit_code(rest: str) -> bool:
    return not rest or (rest.isdecimal() and int(rest) <= 255)


class Drill:
    """How a drill is called and what it does."""

    def __init__(
        self, usage: str, will_do: Callable[[str], bool], turn: Callable[[Stage, str], Turn]
    ) -> None:
        self.usage = usage
        self.will_do = will_do
        self.turn = turn


DRILLS = {
    "slow": Drill("/slow SECONDS", _is_seconds, _slow),
    "hang": Drill("/hang", _any, _hang),
    "crash": Drill("/crash [N]", _is_exit_code, _crash),
    "flood": Drill("/flood KB", _is_size, _flood),
    "ask": Drill("/ask TOOL ARGS…", lambda rest: bool(rest.strip()), _ask),
    "question": Drill("/question", _any, _question),
    "error": Drill("/error", _any, _error),
    "retry": Drill("/retry", _any, _retry),
    "limit": Drill("/limit", _any, _limit),
}
