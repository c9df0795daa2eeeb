"""mam board: the cards of a Kanban board, ours or Hermes'."""

from __future__ import annotations

import sys

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.call import Call
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

DESCRIPTION = """\
Make, show, claim and end the cards of a Kanban board.

Every root has a board of its own, in .mam/state.db. Where HERMES_KANBAN_TASK or HERMES_KANBAN_DB
are set, or with --board hermes, it is Hermes' board, found as Hermes finds it. A claim runs out
unless a heartbeat extends it. Each answer is the card as the board shows it afterwards."""
EXAMPLES = """
  mam board create "watch the deploy" --body "tell me when it is through"
  mam board list
  mam board show t_1f00ab42
  mam board comment t_1f00ab42 "stop monitoring"
  mam board claim t_1f00ab42 --as builder --ttl 30m
  mam board heartbeat t_1f00ab42 --as builder --note "3 of 5 done"
  mam board block t_1f00ab42 "which of the two databases?"
  mam board complete t_1f00ab42 --summary "deployed at 14:05" --json"""
BOARDS = ("ours", "hermes")
_STYLES = {"ready": "blue", "running": "cyan", "blocked": "yellow bold", "done": "green", "triage": "red"}


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    add_words(
        parser,
        {
            "create": ("make a card, or find the one of the same key", _of_create),
            "list": ("list the cards that are not archived", _of_list),
            "show": ("show a card with its comments", _of_card),
            "comment": ("comment on a card", _of_comment),
            "claim": ("take a card for some time", _of_claim),
            "heartbeat": ("say that work goes on, and extend the claim", _of_heartbeat),
            "block": ("end the work until a person decides", _of_block),
            "complete": ("say that a card is done", _of_complete),
        },
        EXAMPLES,
    )


def _of_board(parser: Parser) -> None:
    parser.add_argument("--board", choices=BOARDS, help="which board; without it the environment decides")


def _of_card(parser: Parser) -> None:
    parser.add_argument("card", metavar="CARD", help="id of the card, as mam board list shows it")
    _of_board(parser)


def _of_create(parser: Parser) -> None:
    from mam.surfaces.cli.parser import count, span

    add = parser.add_argument
    add("title", metavar="TITLE", help="what it is about, in one line")
    add("--body", metavar="TEXT", default="", help="the whole of it; - reads it from stdin")
    add("--key", metavar="KEY", help="an open card of this key is returned instead of a second one")
    add("--assignee", metavar="WHO", help="who is to do it; on Hermes' board a profile")
    add("--goal", action="store_true", help="worked on until a judge says that the goal is reached")
    add("--goal-max-turns", metavar="N", type=count, help="at most so many turns of a goal")
    add("--max-runtime", metavar="TIME", type=span, help="a worker's time: 90, 30m, 8h")
    add("--max-retries", metavar="N", type=count, help="blocked after so many failures")
    add("--dir", metavar="DIR", help="where the work is done")
    _of_board(parser)


def _of_list(parser: Parser) -> None:
    parser.add_argument("--status", metavar="STATUS", help="only those: ready, running, blocked, done, ...")
    _of_board(parser)


def _of_comment(parser: Parser) -> None:
    _of_card(parser)
    parser.add_argument("text", metavar="TEXT", help="the comment; - reads it from stdin")
    parser.add_argument("--author", metavar="WHO", help="who says it; without it, you or the calling session")


def _of_claim(parser: Parser) -> None:
    from mam.surfaces.cli.parser import span

    _of_card(parser)
    parser.add_argument(
        "--as", dest="who", metavar="WHO", help="who takes it; else you or the calling session"
    )
    parser.add_argument("--ttl", metavar="TIME", type=span, help="how long the claim lasts (15m)")


def _of_heartbeat(parser: Parser) -> None:
    _of_claim(parser)
    parser.add_argument("--note", metavar="TEXT", help="how it stands, with numbers")


def _of_block(parser: Parser) -> None:
    _of_card(parser)
    parser.add_argument("reason", metavar="REASON", help="one sentence: what has to be decided")


def _of_complete(parser: Parser) -> None:
    _of_card(parser)
    parser.add_argument("--summary", metavar="TEXT", default="", help="what came of it")


def run(call: Call) -> int:
    """Do what the word says."""
    done = _WORDS[call.options.word](call)
    return call.say(done, *([] if call.as_json else _show(call.options.word, done, call.paint())))


def _create(call: Call) -> Document:
    import os

    given = call.options
    goal = {"goal_mode": given.goal, "goal_max_turns": given.goal_max_turns, "assignee": given.assignee}
    runtime = int(given.max_runtime) if given.max_runtime else None
    return call.fleet.board_create(
        given.title,
        body=_text(given.body),
        key=given.key,
        board=given.board,
        max_runtime=runtime,
        max_retries=given.max_retries,
        workspace=os.path.abspath(given.dir) if given.dir else None,
        **goal,
    )


def _list(call: Call) -> Document:
    return call.fleet.board_list(status=call.options.status, board=call.options.board)


def _one(call: Call) -> Document:
    return call.fleet.board_show(call.options.card, board=call.options.board)


def _comment(call: Call) -> Document:
    given = call.options
    return call.fleet.board_comment(given.card, _text(given.text), author=given.author, board=given.board)


def _claim(call: Call) -> Document:
    given = call.options
    return call.fleet.board_claim(given.card, who=given.who, ttl=given.ttl, board=given.board)


def _heartbeat(call: Call) -> Document:
    given = call.options
    return call.fleet.board_heartbeat(
        given.card, note=given.note, who=given.who, ttl=given.ttl, board=given.board
    )


def _block(call: Call) -> Document:
    if not call.options.reason.strip():
        raise Usage("say what has to be decided")
    return call.fleet.board_block(call.options.card, call.options.reason, board=call.options.board)


def _complete(call: Call) -> Document:
    return call.fleet.board_complete(call.options.card, call.options.summary, board=call.options.board)


_WORDS: dict[str, Callable[[Call], Document]] = {
    "create": _create,
    "list": _list,
    "show": _one,
    "comment": _comment,
    "claim": _claim,
    "heartbeat": _heartbeat,
    "block": _block,
    "complete": _complete,
}


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _show(word: str, done: Document, paint: Paint) -> list[str]:
    if word == "list":
        return _table(done, paint)
    return _whole(done, paint) if word == "show" else [_line(done["card"], paint)]


def _line(card: Document, paint: Paint) -> str:
    from mam.surfaces.cli.render_sessions import clean

    said = f"{paint(clean(card['id']), 'bold')}  {paint(clean(card['status']), _STYLES.get(card['status']))}"
    held = (
        f"  held by {clean(card['claimed_by'])} until {card['claim_expires']}" if card["claimed_by"] else ""
    )
    return f"{said}  {clean(card['title'])}{held}"


def _table(done: Document, paint: Paint) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not done["cards"]:
        return [f"no cards on {clean(done['board']['path'], 500)}"]
    columns = (
        Column("CARD"),
        Column("STATUS"),
        Column("CLAIMED BY", least=8, rank=1, may_go=True),
        Column("COMMENTS"),
        Column("TITLE", least=12, rank=2, from_end=True),
    )
    rows = [
        [
            (clean(card["id"]), "bold"),
            (clean(card["status"]), _STYLES.get(card["status"])),
            (clean(card["claimed_by"]), None),
            (str(card["comments"]), None),
            (clean(card["title"]), None),
        ]
        for card in done["cards"]
    ]
    return render(columns, rows, paint)


def _whole(done: Document, paint: Paint) -> list[str]:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    card = done["card"]
    fields = ("created_at", "created_by", "assignee", "heartbeat_at", "workspace", "summary")
    lines = [_line(card, paint)]
    lines += [f"  {paint(f'{name:<12}', 'dim')}  {clean(card[name], 500)}" for name in fields if card[name]]
    if card["body"]:
        lines += ["", *for_screen(card["body"]).splitlines()]
    for one in done["comments"]:
        lines += ["", paint(f"{clean(one['author'])}  {one['at']}", "dim")]
        lines += for_screen(one["body"]).splitlines()
    return lines
