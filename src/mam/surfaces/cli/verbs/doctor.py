"""mam doctor: what is in order on this machine, and how to mend what is not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = "Check this machine and this root. Exit code 1 where there is a problem."
EXAMPLES = """
  mam doctor
  mam doctor --json"""
_MARKS = {True: ("ok", "green"), False: ("problem", "red"), None: ("unknown", "yellow")}


def add_options(parser: Parser) -> None:
    """No options of its own."""


def run(call: Invocation) -> int:
    """Print every check."""
    checks = call.fleet.monitor.doctor()
    call.say({"checks": checks}, *([] if call.as_json else show(checks, call.paint())))
    return 1 if any(one["ok"] is False for one in checks) else 0


def show(checks: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return a line for each check, and one below it that says how to mend it."""
    from mam.surfaces.cli.render_sessions import clean

    wide = max((len(clean(one["check"])) for one in checks), default=0)
    lines = []
    for one in checks:
        mark, style = _MARKS[one["ok"]]
        lines.append(f"{paint(f'{mark:<7}', style)}  {clean(one['check']):<{wide}}  {clean(one['message'])}")
        if one.get("mend") and one["ok"] is not True:
            lines.append(f"{'':<7}  {'':<{wide}}  {paint(clean(one['mend']), 'dim')}")
    return lines
