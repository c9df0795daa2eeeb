"""The verbs of a board: each does one thing to a card and returns the card as the board shows it then."""

from __future__ import annotations

from mam.app.context.caller import calling_row
from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any, TypeVar, Unpack

    from mam.adapters.kanban.board import Board, CardGoal
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]
    T = TypeVar("T")

OURS, HERMES = "ours", "hermes"


class _State:
    """The root's own database, as the board wants it."""

    def __init__(self, context: Context, *, may_make: bool) -> None:
        self._context = context
        self._may_make = may_make

    def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        return self._context.registry.peek(lambda draft: work(draft.connection), default)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # A card that nobody can have made must not make a root of the directory that somebody is in.
        if not self._may_make:
            self._context.require_registry()
        return self._context.registry.note(lambda draft: work(draft.connection))

    def now(self) -> float:
        return self._context.now()


def open_board(context: Context, which: str | None = None, *, may_make: bool = False) -> Board:
    """Return the board that is meant: as asked, Hermes' where its variables say so, else our own."""
    said = any(context.environ.get(name) for name in ("HERMES_KANBAN_TASK", "HERMES_KANBAN_DB"))
    which = which or (HERMES if said else OURS)
    if which == OURS:
        from mam.adapters.kanban.mam_board import OurBoard

        return OurBoard(_State(context, may_make=may_make), context.paths.db)
    if which != HERMES:
        raise Usage(f"there is no board '{which[:40]}'", hint=f"boards are {OURS} and {HERMES}")
    from mam.adapters.kanban import hermes_board

    return hermes_board.HermesBoard(
        hermes_board.find(context.environ), context.now, ttl=hermes_board.claim_seconds(context.environ)
    )


def author_of(context: Context, caller: Caller) -> str:
    """Return who writes: the session that calls, the profile that Hermes runs us as, or the user."""
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
    """Make a card, or find the one of that key."""
    author = author_of(context, caller)
    return _shown(board, board.create(title, body=body, key=key, created_by=author, **goal))


def list_cards(board: Board, status: str | None = None) -> Document:
    """Return the cards."""
    return {"board": _named(board), "cards": [one.as_json() for one in board.list(status)]}


def show(board: Board, card: str) -> Document:
    """Return a card with its comments."""
    comments = [one.as_json() for one in board.comments_since(card, 0)]
    return {**_shown(board, board.show(card)), "comments": comments}


def comment(
    context: Context, caller: Caller, board: Board, card: str, text: str, author: str | None = None
) -> Document:
    """Add a comment."""
    added = board.comment(card, author or author_of(context, caller), text)
    return {**_shown(board, board.show(card)), "comment": added.as_json()}


def claim(
    context: Context, caller: Caller, board: Board, card: str, who: str | None, ttl: float | None
) -> Document:
    """Take a card."""
    return _shown(board, board.claim(card, who or author_of(context, caller), ttl))


def heartbeat(
    context: Context,
    caller: Caller,
    board: Board,
    card: str,
    *,
    who: str | None,
    note: str | None,
    ttl: float | None,
) -> Document:
    """Say that work on a card goes on."""
    return _shown(board, board.heartbeat(card, who or author_of(context, caller), note, ttl))


def block(board: Board, card: str, reason: str) -> Document:
    """Have a person decide about a card."""
    return _shown(board, board.block(card, reason))


def complete(board: Board, card: str, summary: str) -> Document:
    """Say that a card is done."""
    return _shown(board, board.complete(card, summary))


def _named(board: Board) -> Document:
    return {"name": board.name, "path": board.path}


def _shown(board: Board, card: Any) -> Document:
    return {"board": _named(board), "card": card.as_json()}
