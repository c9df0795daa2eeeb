"""The drills: slash commands that make the agent slow, hang, crash, flood, ask or fail.

With them, demonstrations and tests can reach every state of an agent.
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


def _slow(stage: Stage, arguments: str) -> Turn:
    yield float(arguments)
    answer = f"Done after {float(arguments):g} seconds."
    yield from stage.say(answer)
    return answer


def _hang(_stage: Stage, _arguments: str) -> Turn:
    while True:
        yield _A_LONG_TIME


def _crash(_stage: Stage, arguments: str) -> Turn:
    # Yield once before the crash, so that the prompt is on the screen and its hook has started.
    yield 0.0
    raise Crash(int(arguments or 1))


def _flood(stage: Stage, arguments: str) -> Turn:
    rows = int(arguments) * 1024 // _FLOOD_ROW
    for start in range(0, rows, _FLOOD_ROWS):
        block = range(start, min(start + _FLOOD_ROWS, rows))
        stage.output.plain([f"  flood {number:08d} ".ljust(_FLOOD_ROW - 1, "~") for number in block])
        yield 0.0
    answer = f"Printed {int(arguments)} KB."
    yield from stage.say(answer)
    return answer


def _ask(stage: Stage, arguments: str) -> Turn:
    command = arguments.strip()
    if not (yield from stage.use_tool(command)):
        return None
    answer = f"`{command}` is done."
    yield from stage.say(answer)
    return answer


def _question(stage: Stage, _arguments: str) -> Turn:
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


def _error(stage: Stage, _arguments: str) -> Turn:
    yield 0.0
    message = "API Error: 500 practice error"
    stage.output.answer(message)
    stage.fail(message, {"error": "server_error"})
    return None


def _retry(stage: Stage, _arguments: str) -> Turn:
    for attempt in range(1, _RETRIES + 1):
        stage.status = f"✻ 500 practice error · Retrying in 1s · attempt {attempt}/10"
        yield 1.0
    stage.status = ""
    answer = f"The service answered after {_RETRIES} attempts."
    yield from stage.say(answer)
    return answer


def _limit(stage: Stage, _arguments: str) -> Turn:
    message = "Usage limit reached · resets 6pm"
    stage.output.answer(message)
    stage.fail(message, {"error": "rate_limit"})
    yield limit()
    return None


def _any(_arguments: str) -> bool:
    return True


def _is_seconds(arguments: str) -> bool:
    try:
        return 0 <= float(arguments) < 1e6
    except ValueError:
        return False


def _is_size(arguments: str) -> bool:
    return arguments.isdecimal() and int(arguments) <= 1_000_000


def _is_exit_code(arguments: str) -> bool:
    return not arguments or (arguments.isdecimal() and int(arguments) <= 255)


class Drill:
    """A drill: its usage, a check of its arguments, and its turn."""

    def __init__(
        self, usage: str, accepts: Callable[[str], bool], turn: Callable[[Stage, str], Turn]
    ) -> None:
        self.usage = usage
        self.accepts = accepts
        self.turn = turn


DRILLS = {
    "slow": Drill("/slow SECONDS", _is_seconds, _slow),
    "hang": Drill("/hang", _any, _hang),
    "crash": Drill("/crash [N]", _is_exit_code, _crash),
    "flood": Drill("/flood KB", _is_size, _flood),
    "ask": Drill("/ask TOOL ARGS…", lambda arguments: bool(arguments.strip()), _ask),
    "question": Drill("/question", _any, _question),
    "error": Drill("/error", _any, _error),
    "retry": Drill("/retry", _any, _retry),
    "limit": Drill("/limit", _any, _limit),
}
