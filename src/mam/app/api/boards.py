"""The verbs of the API that concern cards: on our own board, or on Hermes'."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]


class BoardVerbs:
    """What can be done with cards. `board` is `ours` or `hermes`; without it the environment decides."""

    context: Context
    caller: Caller
    _tasks: list[ResidentTask]

    def board_create(
        self, title: str, *, body: str = "", key: str | None = None, board: str | None = None, **goal: Any
    ) -> Document:
        """Make a card that is ready, or return the one of that key; `{board, card}`.

        `goal`: goal_mode, goal_max_turns, max_runtime (seconds), max_retries, assignee, workspace.
        """
        from mam.app.boards.board import create, open_board

        opened = open_board(self.context, board, may_make=True)
        return create(self.context, self.caller, opened, title, body=body, key=key, **goal)

    def board_list(self, *, status: str | None = None, board: str | None = None) -> Document:
        """Return `{board, cards}`: those that are not archived, or those of one status."""
        from mam.app.boards.board import list_cards, open_board

        return list_cards(open_board(self.context, board), status)

    def board_show(self, card: str, *, board: str | None = None) -> Document:
        """Return `{board, card, comments}`."""
        from mam.app.boards.board import open_board, show

        return show(open_board(self.context, board), card)

    def board_comment(
        self, card: str, text: str, *, author: str | None = None, board: str | None = None
    ) -> Document:
        """Add a comment; `{board, card, comment}`."""
        from mam.app.boards.board import comment, open_board

        return comment(self.context, self.caller, open_board(self.context, board), card, text, author)

    def board_claim(
        self, card: str, *, who: str | None = None, ttl: float | None = None, board: str | None = None
    ) -> Document:
        """Take a card for so many seconds (900); raises Conflict where somebody else holds it."""
        from mam.app.boards.board import claim, open_board

        return claim(self.context, self.caller, open_board(self.context, board), card, who, ttl)

    def board_heartbeat(
        self,
        card: str,
        *,
        note: str | None = None,
        who: str | None = None,
        ttl: float | None = None,
        board: str | None = None,
    ) -> Document:
        """Say that work goes on, and extend the claim; raises Conflict where `who` does not hold it."""
        from mam.app.boards.board import heartbeat, open_board

        return heartbeat(
            self.context, self.caller, open_board(self.context, board), card, who=who, note=note, ttl=ttl
        )

    def board_block(self, card: str, reason: str, *, board: str | None = None) -> Document:
        """End the work on a card until a person decides."""
        from mam.app.boards.board import block, open_board

        return block(open_board(self.context, board), card, reason)

    def board_complete(self, card: str, summary: str = "", *, board: str | None = None) -> Document:
        """Say that a card is done."""
        from mam.app.boards.board import complete, open_board

        return complete(open_board(self.context, board), card, summary)

    def reconcile_card(self, card: str, *, emit_diff: bool = False, board: str | None = None) -> Document:
        """Make one pass as `reconcile` does and tell the card what is new; the report has `card`."""
        from mam.app.boards.monitor_with_card import one_pass

        return one_pass(self.context, self.caller, card, which=board, emit_diff=emit_diff)

    def monitor_card(
        self,
        card: str,
        tell: Callable[[Document], None],
        *,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
        board: str | None = None,
    ) -> str:
        """Monitor as `monitor` does, on a card (`new` makes one), until somebody comments `stop` there.

        `tell` first gets `{card}`. Returns why it ended.
        """
        from mam.app.boards.monitor_with_card import monitor

        return monitor(
            self.context,
            self.caller,
            card,
            tell,
            which=board,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._tasks,
        )

    def monitor_as_worker(self, tell: Callable[[Document], None]) -> str:
        """Monitor as the worker that Hermes' dispatcher started, until stop, cap or block."""
        from mam.app.boards.monitor_with_card import work

        return work(self.context, self.caller, tell, self._tasks)

    def dispatch_monitor(self) -> Document:
        """Make the goal card of this root on Hermes' board and have it dispatched.

        `{board, card, created, spawned, worker, note}`; as long as the card is open there is only one.
        """
        from mam.app.boards.run_monitor_in_hermes import dispatch

        return dispatch(self.context)
