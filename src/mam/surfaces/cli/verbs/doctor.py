"""mam doctor: check this machine and this root, and say how to repair each problem."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = "Check this machine and this root. Exit code 1 if there is a problem."
EXAMPLES = """
  mam doctor
  mam doctor --json"""
_MARKS = {True: ("ok", "green"), False: ("problem", "red"), None: ("unknown", "yellow")}


def add_options(parser: Parser) -> None:
    """Add nothing: the verb has no options."""


def run(call: Invocation) -> int:
    """Print every check."""
    checks = call.fleet.monitor.doctor()
    call.say({"checks": checks}, *([] if call.as_json else show(checks, call.paint())))
    return 1 if any(check["ok"] is False for check in checks) else 0


def show(checks: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return a line for each check, and below each problem a line that says how to repair it."""
    from mam.surfaces.cli.render_sessions import clean

    width = max((len(clean(check["check"])) for check in checks), default=0)
    lines = []
    for check in checks:
        mark, style = _MARKS[check["ok"]]
        lines.append(
            f"{paint(f'{mark:<7}', style)}  {clean(check['check']):<{width}}  {clean(check['message'], 4096)}"
        )
        if check.get("mend") and check["ok"] is not True:
            lines.append(f"{'':<7}  {'':<{width}}  {paint(clean(check['mend'], 4096), 'dim')}")
    return lines
