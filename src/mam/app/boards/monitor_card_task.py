"""Keeps a monitor's card up to date: comments each drift, and ends the monitoring when a comment says stop.

The root's database keeps which drifts were commented and which comments were read. A restarted monitor
therefore repeats no comment and misses none.
"""

from __future__ import annotations

import os
import socket
import time

from mam.adapters.store.tables import drifts
from mam.adapters.system import process
from mam.app.boards.judge_command import Judge
from mam.app.context import setting_aside
from mam.core import monitor_card_comments as rules
from mam.core.errors import CardNotFound, Conflict, MamError
from mam.core.session_row import is_running
from mam.core.times import stamp
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.kanban.board import Board, Card, Comment
    from mam.app.context.context import Context

    Document = dict[str, Any]

_HEARTBEAT = 300.0
# Seconds between two reads of the board, and until the next one after a failed read.
_POLL, _RETRY = 2.0, 30.0


class CardWatch:
    """The resident task for a card: `tick` comments new drifts, and returns why the monitor must end."""

    def __init__(
        self, context: Context, board: Board, card: str, *, is_visit: bool = False, prints: bool = False
    ) -> None:
        """A visit (`is_visit`) comments and reads once without a claim; otherwise call `claim` first.

        With `prints` the first comments of a card include every drift that the next printed pass shows.
        """
        self.context = context
        self.board = board
        self.card = card
        self.holder, self._run = claimer(context, card)
        self.end_reason = ""
        self.new_drifts: list[Document] = []
        self._is_visit = is_visit
        self._prints = prints
        self._key = _key(board, card)
        self._judge = Judge(context)
        self._turns = 0
        self._due = 0.0
        self._is_aside = False
        self._state = self._begin(board.show(card))
        self._last_heartbeat: float = self._state["beat"] if is_visit else 0.0

    def _begin(self, card: Card) -> Document:
        """Return which drifts were commented and which comments were read.

        Comments from before the card was last blocked count as read: their stop has been obeyed.
        """
        stored = self.context.registry.peek(lambda transaction: transaction.meta(self._key), None)
        state = stored or {
            "drift": self._first_cursor(card),
            "comment": 0,
            "drifts": 0,
            "last": None,
            "beat": 0.0,
        }
        old_ids = [
            comment.id
            for comment in self.board.comments_since(self.card, state["comment"])
            if card.ended_at is not None and comment.at <= card.ended_at
        ]
        state = {**state, "comment": max([state["comment"], *old_ids])}
        if state != stored:
            self._keep(state)
        return state

    def _first_cursor(self, card: Card) -> int:
        """Return the number of the last drift before the card was made, in the whole seconds of a board."""
        cursor = self.context.registry.peek(
            lambda transaction: drifts.last_before(transaction, card.created_at), 0
        )
        return min(cursor, self.context.registry.peek(drifts.last_printed, 0)) if self._prints else cursor

    def _keep(self, state: Document) -> None:
        self.context.registry.note(lambda transaction: transaction.set_meta(self._key, state))
        self._state = state

    def claim(self) -> Card:
        """Claim the card for this monitor; take it over if its holder was a process here that died."""
        card = self.board.show(self.card)
        if self._run is not None and card.run_id != self._run:
            raise Conflict(f"card {self.card} is in another run than {self._run}")
        dead_holder = card.claimed_by if _is_dead(card.claimed_by) else None
        claimed = self.board.claim(self.card, self.holder, over=dead_holder)
        self._run = claimed.run_id
        # The card may have been blocked before this claim, so older comments count as read.
        self._state = self._begin(claimed)
        return claimed

    def due(self) -> float:
        """Return when the next tick is due, on the monotonic clock."""
        return self._due

    def handles(self) -> tuple[int, ...]:
        """Return no handles: a board is polled, because it cannot announce a change."""
        return ()

    def is_needed(self) -> bool:
        """Return False: a card does not keep a resident running."""
        return False

    def tick(self) -> str:
        """Comment and read; return why the monitor must end, or an empty string.

        Raises MamError if the board cannot be read; the caller goes on. A card on which mam fails is set
        aside: the monitor goes on without it, and tries it again later.
        """
        self._due = time.monotonic() + _RETRY
        self.new_drifts = []
        try:
            self.end_reason = self._look(self.board.show(self.card))
        except CardNotFound:
            self.end_reason = f"card {self.card} is gone"
        except Exception as error:
            if not setting_aside.is_of_item(error):
                raise
            problem = f"mam cannot work on card {self.card}"
            setting_aside.note(self.context, setting_aside.CARD, self.card, error, problem)
            self._is_aside = True
            return ""
        if self._is_aside:
            setting_aside.take_up(self.context, setting_aside.CARD, self.card)
            self._is_aside = False
        self._due = time.monotonic() + _POLL
        return self.end_reason

    def _look(self, card: Card) -> str:
        if reason := self._reason_lost(card):
            return reason
        comments = self.board.comments_since(self.card, self._state["comment"])
        self._comment_drifts(comments)
        may_end = card.claimed_by in (None, self.holder)
        if may_end and any(rules.says_stop(comment.author, comment.body) for comment in comments):
            reason = self._block(f"stop-requested by user at {stamp(self.context.now())}")
        elif may_end and self._is_over(card):
            reason = self._block(f"the time limit of the card was reached at {stamp(self.context.now())}")
        else:
            reason = self._heartbeat(card)
        if comments and may_end:
            # Only a monitor that may end the card marks comments as read. The holder of the card would
            # otherwise miss a stop.
            is_answered = self._state.get("answered", False) or (not reason and self._answer(comments))
            self._keep({**self._state, "comment": comments[-1].id, "answered": is_answered})
        return reason

    def _answer(self, comments: list[Comment]) -> bool:
        """Say what stops the monitoring if a comment may have meant that; tell whether the card has it."""
        if any(comment.author == rules.AUTHOR and comment.body == rules.ANSWER for comment in comments):
            return True
        if not any(rules.is_unclear(comment.author, comment.body) for comment in comments):
            return False
        self.board.comment(self.card, rules.AUTHOR, rules.ANSWER)
        return True

    def _reason_lost(self, card: Card) -> str:
        if self._is_visit:
            return "" if card.status in ("ready", "running") else f"card {card.id} is {card.status}"
        if card.status != "running":
            return f"card {card.id} is {card.status}"
        if card.claimed_by != self.holder:
            return f"{card.claimed_by or 'nobody'} has claimed card {card.id}"
        return "" if self._run in (None, card.run_id) else f"card {card.id} is in another run"

    def _comment_drifts(self, comments: list[Comment]) -> None:
        """Comment the new drifts, except lines that are on the card already: a crash came after them."""
        none: list[tuple[int, float, Document]] = []
        recorded = self.context.registry.peek(
            lambda transaction: drifts.since(transaction, self._state["drift"]), none
        )
        if not recorded:
            return
        written = {
            line
            for comment in comments
            if comment.author == rules.AUTHOR
            for line in comment.body.splitlines()
        }
        lines = [line for _, at, drift in recorded if (line := rules.line_of(drift, at)) not in written]
        for text in rules.comments_of(lines):
            self.board.comment(self.card, rules.AUTHOR, text)
        last, at, _ = recorded[-1]
        count = self._state["drifts"] + len(recorded)
        self._keep({**self._state, "drift": last, "drifts": count, "last": at})
        self.new_drifts = [{**drift, "new": True} for _, _, drift in recorded]

    def _is_over(self, card: Card) -> bool:
        if not card.max_runtime or card.run_started_at is None:
            return False
        return self.context.now() >= rules.ends_at(card.run_started_at, card.max_runtime)

    def _heartbeat(self, card: Card) -> str:
        """Send a heartbeat every few minutes; return why the monitor must end, or an empty string.

        In goal mode each heartbeat counts as a turn and asks the judge. A visit does neither, because it does
        not stay for an answer.
        """
        now = self.context.now()
        if card.claimed_by == self.holder and abs(now - self._last_heartbeat) >= _HEARTBEAT:
            running = sum(is_running(row) for row in self.context.registry.view().rows)
            note = rules.note_of(self._state["drifts"], self._state["last"], running)
            self.board.heartbeat(self.card, self.holder, note, run=self._run)
            self._last_heartbeat = now
            self._keep({**self._state, "beat": now})
            if card.goal_mode and not self._is_visit and (reason := self._turn(card, note)):
                return reason
        elif card.claimed_by == self.holder and (card.claim_expires or 0) - now < self.board.ttl / 2:
            # Hermes' setting for claims may be shorter than the heartbeat, so the claim is renewed earlier.
            self.board.claim(self.card, self.holder)
        if rules.is_done(self._judge.verdict()):
            summary = f"the judge ended the monitoring; {self._state['drifts']} drifts"
            self.board.complete(self.card, summary, holder=self.holder, run=self._run)
            return f"card {card.id} is done: the judge ended the monitoring"
        return ""

    def _turn(self, card: Card, note: str) -> str:
        self._turns += 1
        if card.goal_max_turns and self._turns > card.goal_max_turns:
            return self._block(f"all {card.goal_max_turns} turns were used at {stamp(self.context.now())}")
        self._judge.ask(card, self.board.comments_since(self.card, 0), note)
        return ""

    def _block(self, reason: str) -> str:
        is_held = self.board.show(self.card).claimed_by == self.holder
        self.board.block(self.card, reason, holder=self.holder if is_held else None, run=self._run)
        return reason

    def leave(self, reason: str) -> None:
        """Comment that the monitoring ended and give up the claim, unless the card itself ended it."""
        if self.end_reason:
            return
        try:
            self.board.comment(self.card, rules.AUTHOR, f"monitoring ended: {reason}")
            if self.board.show(self.card).claimed_by == self.holder:
                self.board.release(self.card, self.holder, reason, run=self._run)
        except MamError as error:
            self.context.warn(f"mam could not update card {self.card}: {error}")


def is_left(context: Context, board: Board, card: Card) -> bool:
    """Tell whether a monitor reported to this card, and none does now."""
    known = context.registry.peek(lambda transaction: transaction.meta(_key(board, card.id)), None)
    is_free = card.claimed_by is None or _is_dead(card.claimed_by)
    return known is not None and is_free and card.status in ("ready", "running")


def _key(board: Board, card: str) -> str:
    return f"card:{board.name}:{card}"


def claimer(context: Context, card: str) -> tuple[str, int | None]:
    """Return the name under which this process claims a card, and the run that Hermes' dispatcher set."""
    lock = context.environ.get("HERMES_KANBAN_CLAIM_LOCK")
    if lock and context.environ.get("HERMES_KANBAN_TASK") == card:
        return lock, whole_number(context.environ.get("HERMES_KANBAN_RUN_ID", ""))
    return f"{socket.gethostname()}:{os.getpid()}", None


def _is_dead(holder: str | None) -> bool:
    """Tell whether the holder of a claim is a dead process of this host."""
    host, _, digits = (holder or "").rpartition(":")
    pid = whole_number(digits)
    return host == socket.gethostname() and pid is not None and process.runs(pid) is False
