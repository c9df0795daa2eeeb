"""The verbs of a board. Each changes one card and returns the card as the board shows it afterwards."""

from __future__ import annotations

from mam.app.context.caller import calling_row
from mam.core.errors import Usage
from mam.core.monitor_card_comments import says_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any, TypeVar, Unpack

    from mam.adapters.kanban.board import Board, Card, CardGoal
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]
    T = TypeVar("T")

OURS, HERMES = "ours", "hermes"


class _State:
    """Gives mam's own board access to the root's database."""

    def __init__(self, context: Context, *, may_make: bool) -> None:
        self._context = context
        self._may_make = may_make

    def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        self._context.warn_of_root()
        return self._context.registry.peek(lambda transaction: work(transaction.connection), default)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # Only `create` may make the database. Otherwise a mistyped card id would turn the current directory
        # into a root.
        if not self._may_make:
            self._context.require_registry()
        return self._context.registry.note(lambda transaction: work(transaction.connection))

    def now(self) -> float:
        return self._context.now()


def open_board(context: Context, board_name: str | None = None, *, may_make: bool = False) -> Board:
    """Return the named board; without a name Hermes' if its variables are set, or else mam's own."""
    in_hermes = any(context.environ.get(name) for name in ("HERMES_KANBAN_TASK", "HERMES_KANBAN_DB"))
    board_name = board_name or (HERMES if in_hermes else OURS)
    if board_name == OURS:
        from mam.adapters.kanban.mam_board import MamBoard

        return MamBoard(_State(context, may_make=may_make), context.paths.db)
    if board_name != HERMES:
        raise Usage(f"there is no board '{board_name[:40]}'", hint=f"boards are {OURS} and {HERMES}")
    from mam.adapters.kanban import hermes_board

    return hermes_board.HermesBoard(
        hermes_board.find(context.environ), context.now, ttl=hermes_board.claim_seconds(context.environ)
    )


def author_of(context: Context, caller: Caller) -> str:
    """Return the author of a change: the calling session, Hermes' profile, or the user."""
    row = calling_row(context, caller)
    return row["name"] if row else context.environ.get("HERMES_PROFILE") or "user"


def create(
    context: Context,
    caller: Caller,
    board: Board,
    title: str,
    *,
    body: str,
    key: str | None,
    **goal: Unpack[CardGoal],
) -> Document:
    """Create a card, or return the existing card with this key."""
    author = author_of(context, caller)
    return _card_document(board, board.create(title, body=body, key=key, created_by=author, **goal))


def list_cards(board: Board, status: str | None = None) -> Document:
    """Return the cards."""
    return {"board": _board_document(board), "cards": [card.as_json() for card in board.list(status)]}


def show(board: Board, card: str) -> Document:
    """Return a card with its comments."""
    comments = [comment.as_json() for comment in board.comments_since(card, 0)]
    return {**_card_document(board, board.show(card)), "comments": comments}


def comment(
    context: Context, caller: Caller, board: Board, card: str, text: str, author: str | None = None
) -> Document:
    """Add a comment. Warn if it asks a monitor to stop that has ended."""
    added = board.comment(card, author or author_of(context, caller), text)
    shown = board.show(card)
    if says_stop(added.author, added.body) and _is_left_by_monitor(context, board, shown):
        context.warn(f"nobody monitors card {card} now; the next monitor of it reads the comment, and ends")
    return {**_card_document(board, shown), "comment": added.as_json()}


def _is_left_by_monitor(context: Context, board: Board, card: Card) -> bool:
    from mam.app.boards.monitor_card_task import is_left

    return is_left(context, board, card)


def claim(
    context: Context, caller: Caller, board: Board, card: str, holder: str | None, ttl: float | None
) -> Document:
    """Claim a card."""
    return _card_document(board, board.claim(card, holder or author_of(context, caller), ttl))


def heartbeat(
    context: Context,
    caller: Caller,
    board: Board,
    card: str,
    *,
    holder: str | None,
    note: str | None,
    ttl: float | None,
) -> Document:
    """Record on a card that its holder still works."""
    return _card_document(board, board.heartbeat(card, holder or author_of(context, caller), note, ttl))


def block(board: Board, card: str, reason: str) -> Document:
    """Block a card until a person decides about it."""
    return _card_document(board, board.block(card, reason))


def complete(board: Board, card: str, summary: str) -> Document:
    """Mark a card as done."""
    return _card_document(board, board.complete(card, summary))


def _board_document(board: Board) -> Document:
    return {"name": board.name, "path": board.path}


def _card_document(board: Board, card: Any) -> Document:
    return {"board": _board_document(board), "card": card.as_json()}
