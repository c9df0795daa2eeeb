"""The verbs of `fleet.boards`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, checked, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.adapters.kanban.board import CardGoal

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Boards(VerbGroup):
    """Cards. `board` is `ours` or `hermes`; without it the environment decides."""

    __slots__ = ()

    @checked
    def create(
        self,
        title: str,
        *,
        body: str = "",
        key: str | None = None,
        board: str | None = None,
        **goal: Unpack[CardGoal],
    ) -> Document:
        """Create a card that is ready, or return the existing card with this key; `{board, card}`.

        `goal`: goal_mode, goal_max_turns, max_runtime (seconds), max_retries, assignee, workspace (an
        absolute path), workspace_kind (`scratch`, `dir`, `worktree`), branch (of a worktree), skills.
        """
        from mam.app.boards.board import create, open_board

        opened = open_board(self._context, board, may_make=True)
        return create(self._context, self._caller, opened, title, body=body, key=key, **goal)

    @reading
    def list(self, *, status: str | None = None, board: str | None = None) -> Document:
        """Return `{board, cards}`: all cards that are not archived, or those of one status."""
        from mam.app.boards.board import list_cards, open_board

        return list_cards(open_board(self._context, board), status)

    @reading
    def show(self, card: str, *, board: str | None = None) -> Document:
        """Return `{board, card, comments}`."""
        from mam.app.boards.board import open_board, show

        return show(open_board(self._context, board), card)

    @checked
    def comment(
        self, card: str, text: str, *, author: str | None = None, board: str | None = None
    ) -> Document:
        """Add a comment; `{board, card, comment}`."""
        from mam.app.boards.board import comment, open_board

        return comment(self._context, self._caller, open_board(self._context, board), card, text, author)

    @checked
    def claim(
        self, card: str, *, who: str | None = None, ttl: float | None = None, board: str | None = None
    ) -> Document:
        """Claim a card for `ttl` seconds (900); raises Conflict if somebody else holds it."""
        from mam.app.boards.board import claim, open_board

        return claim(self._context, self._caller, open_board(self._context, board), card, who, ttl)

    @checked
    def heartbeat(
        self,
        card: str,
        *,
        note: str | None = None,
        who: str | None = None,
        ttl: float | None = None,
        board: str | None = None,
    ) -> Document:
        """Record that work goes on, and extend the claim; raises Conflict if `who` does not hold it."""
        from mam.app.boards.board import heartbeat, open_board

        return heartbeat(
            self._context,
            self._caller,
            open_board(self._context, board),
            card,
            holder=who,
            note=note,
            ttl=ttl,
        )

    @checked
    def block(self, card: str, reason: str, *, board: str | None = None) -> Document:
        """End the work on a card until a person decides."""
        from mam.app.boards.board import block, open_board

        return block(open_board(self._context, board), card, reason)

    @checked
    def complete(self, card: str, summary: str = "", *, board: str | None = None) -> Document:
        """Mark a card as done."""
        from mam.app.boards.board import complete, open_board

        return complete(open_board(self._context, board), card, summary)
