"""mam inbox: what was sent to a session, and what became of it."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.core.message import MessageState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = """\
List the last messages to a session with what became of each; with --sent those that you, or the
session, have sent. Reads only, except that --withdraw takes back one that is still held."""
EXAMPLES = """
  mam inbox api
  mam inbox --sent                     what became of yours
  mam inbox --sent api --json
  mam inbox --withdraw m_1f00ab42      do not send it after all"""
_STYLES = {
    MessageState.SUBMITTED: "green",
    MessageState.QUEUED: "green",
    MessageState.HELD: "yellow",
    MessageState.UNCONFIRMED: "red",
    MessageState.FAILED: "red",
}


def add_options(parser: Parser) -> None:
    """Whose, and how many."""
    from mam.surfaces.cli.parser import count

    parser.add_argument("name", metavar="NAME", nargs="?", help="name or id of the session")
    parser.add_argument("--sent", action="store_true", help="what was sent instead of what was received")
    parser.add_argument("--withdraw", metavar="ID", help="take back a message that nobody has begun to type")
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="at most so many (50)")


def run(call: Invocation) -> int:
    """Print them."""
    options = call.options
    if options.withdraw is not None:
        return _withdraw(call, options.withdraw)
    if options.name is None and not options.sent:
        raise Usage("name a session, or use --sent", hint="mam inbox NAME")
    found = call.fleet.messages.inbox(options.name, sent=options.sent, limit=options.limit)
    return call.say({"messages": found}, *([] if call.as_json else show(found, call.paint())))


def _withdraw(call: Invocation, message_id: str) -> int:
    from mam.surfaces.cli.render_sessions import clean

    done = call.fleet.messages.withdraw(message_id)
    name = clean(message_id)
    late = f"not withdrawn: {name} is not held any more, or never was; see mam inbox --sent"
    call.say({"message_id": message_id, "withdrawn": done}, f"withdrawn: {name}" if done else late)
    return 0 if done else 1


def show(found: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return a line for each message."""
    from mam.surfaces.cli.render_sessions import clean

    if not found:
        return ["no messages"]
    lines = []
    for one in found:
        state = paint(f"{one['state']:<11}", _STYLES.get(one["state"]))
        why = f"  ({clean(one['reason'])})" if one["reason"] else ""
        who = f"{clean(one['sender'])} -> {clean(one['session'])}"
        lines.append(
            f"{one['sent_at']}  {state}  {clean(one['message_id'])}  {who}: {clean(one['text'], 60)}{why}"
        )
    return lines
