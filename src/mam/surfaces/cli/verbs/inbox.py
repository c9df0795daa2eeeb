"""mam inbox: list the messages to a session, and their states."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.core.message_rules import MessageState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = """\
List the last messages to a session with the state of each. With --sent, list the messages that
you, or the session, have sent. --withdraw takes back a message that is still held or parked.
A parked message waits for you: --release lets mam type it to its session as it is now."""
EXAMPLES = """
  mam inbox api
  mam inbox --sent                     your own messages
  mam inbox --sent api --json
  mam inbox --withdraw m_1f00ab42      take back a held message
  mam inbox --parked                   parked messages to any session
  mam inbox --release m_1f00ab42 m_5d2c0e91
  mam inbox --release all"""
_STYLES = {
    MessageState.SUBMITTED: "green",
    MessageState.QUEUED: "green",
    MessageState.HELD: "yellow",
    MessageState.UNCONFIRMED: "red",
    MessageState.FAILED: "red",
    MessageState.PARKED: "yellow",
}


def add_options(parser: Parser) -> None:
    """Add the options: the session, and which messages."""
    from mam.surfaces.cli.parser import count

    parser.add_argument("name", metavar="NAME", nargs="?", help="name or id of the session")
    parser.add_argument("--sent", action="store_true", help="list sent messages instead of received ones")
    parser.add_argument("--parked", action="store_true", help="list only parked messages")
    parser.add_argument("--withdraw", metavar="ID", help="take back a message that is still held or parked")
    parser.add_argument(
        "--release", metavar="ID", nargs="+", help="release parked messages: their ids, or all"
    )
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="at most this many (50)")


def run(call: Invocation) -> int:
    """Print the messages."""
    options = call.options
    if options.withdraw is not None:
        return _withdraw(call, options.withdraw)
    if options.release is not None:
        return _release(call, options.release)
    if options.name is None and not (options.sent or options.parked):
        raise Usage("name a session, or use --sent or --parked", hint="mam inbox NAME")
    messages = call.fleet.messages.inbox(
        options.name, sent=options.sent, parked=options.parked, limit=options.limit
    )
    return call.say({"messages": messages}, *([] if call.as_json else show(messages, call.paint())))


def _release(call: Invocation, ids: list[str]) -> int:
    from mam.surfaces.cli.render_sessions import clean

    if "all" in ids and len(ids) > 1:
        raise Usage("--release takes ids, or all", hint="mam inbox --release all")
    outcomes = call.fleet.messages.release(*([] if ids == ["all"] else ids))
    lines = [] if outcomes else ["no message is parked"]
    for outcome in outcomes:
        name, reason = clean(outcome["message_id"]), f": {clean(outcome['reason'], 300)}"
        if outcome["released"]:
            to = f"{name} to {clean(outcome['session'])} is {outcome['state']}"
            lines.append(f"released: {to}{reason if outcome['reason'] else ''}")
        else:
            lines.append(f"not released: {name}{reason}")
    call.say({"messages": outcomes}, *lines)
    return 0 if all(outcome["released"] for outcome in outcomes) else 1


def _withdraw(call: Invocation, message_id: str) -> int:
    from mam.surfaces.cli.render_sessions import clean

    is_withdrawn = call.fleet.messages.withdraw(message_id)
    name = clean(message_id)
    line = (
        f"withdrawn: {name}" if is_withdrawn else f"not withdrawn: {name} is not held; see mam inbox --sent"
    )
    call.say({"message_id": message_id, "withdrawn": is_withdrawn}, line)
    return 0 if is_withdrawn else 1


def show(messages: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return a line for each message."""
    from mam.surfaces.cli.render_sessions import clean

    if not messages:
        return ["no messages"]
    lines = []
    for message in messages:
        state = paint(f"{message['state']:<11}", _STYLES.get(message["state"]))
        reason = f"  ({clean(message['reason'])})" if message["reason"] else ""
        route = f"{clean(message['sender'])} -> {clean(message['session'])}"
        head = f"{message['sent_at']}  {state}  {clean(message['message_id'])}  {route}"
        lines.append(f"{head}: {clean(message['text'], 60)}{reason}")
    return lines
