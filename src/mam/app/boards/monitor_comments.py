"""A monitor's part in a card: it comments every difference, and a comment can end the monitoring.

What was told and what was read is kept in the root's database, so a monitor that died and came back
neither repeats itself nor misses a word.
"""

from __future__ import annotations

import os
import socket
import time

from mam.adapters.store.tables import drifts
from mam.adapters.system import process
from mam.app.boards.monitor_stop_command import Judge
from mam.core import monitor_card_comments as rules
from mam.core.errors import CardNotFound, Conflict, MamError
from mam.core.session_row import is_running
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.kanban.board import Board, Card, Comment
    from mam.app.context.context import Context

    Document = dict[str, Any]

_HEARTBEAT = 300.0
# How often the board is looked at, and how long after it could not be.
_POLL, _RETRY = 2.0, 30.0


class CardWatch:
    """Goes along with a monitor: `tick` tells the card what is new, and why the monitor is to end."""

    def __init__(self, context: Context, board: Board, card: str, *, is_visit: bool = False) -> None:
        """A visit tells and reads once and holds no claim; else the card is claimed by `claim`."""
        self.context = context
        self.board = board
        self.card = card
        self.who, self._run = claimer(context, card)
        self.why = ""
        self.news: list[Document] = []
        self._is_visit = is_visit
        self._key = f"card:{board.name}:{card}"
        self._judge = Judge(context)
        self._turns = 0
        self._due = 0.0
        self._state = self._begin(board.show(card))
        self._beat_at: float = self._state["beat"] if is_visit else 0.0

    def _begin(self, card: Card) -> Document:
        """Return how far this card was told and read; what was said before it was last blocked is over."""
        kept = self.context.registry.peek(lambda draft: draft.meta(self._key), None)
        newest = self.context.registry.peek(drifts.newest, 0)
        state = kept or {"drift": newest, "comment": 0, "drifts": 0, "last": None, "beat": 0.0}
        old = [
            one.id
            for one in self.board.comments_since(self.card, state["comment"])
            if card.ended_at is not None and one.at <= card.ended_at
        ]
        state = {**state, "comment": max([state["comment"], *old])}
        if state != kept:
            self._keep(state)
        return state

    def _keep(self, state: Document) -> None:
        self.context.registry.note(lambda draft: draft.set_meta(self._key, state))
        self._state = state

    def claim(self) -> Card:
        """Hold the card for this monitor; one whose holder died on this host is taken over."""
        found = self.board.show(self.card)
        if self._run is not None and found.run_id != self._run:
            raise Conflict(f"card {self.card} is in another run than {self._run}")
        over = found.claimed_by if _is_dead(found.claimed_by) else None
        held = self.board.claim(self.card, self.who, over=over)
        self._run = held.run_id
        # Taken up again after a block: what was said until then is over.
        self._state = self._begin(held)
        return held

    def due(self) -> float:
        """Return when the next tick is wanted, on the monotonic clock."""
        return self._due

    def handles(self) -> tuple[int, ...]:
        """A board is looked at from time to time; nothing of it can be waited for."""
        return ()

    def is_needed(self) -> bool:
        """A card is told by whoever watches; it asks nobody to stay."""
        return False

    def tick(self) -> str:
        """Tell and read; return why the monitor is to end, or nothing. An unreadable board ends nothing."""
        self._due = time.monotonic() + _RETRY
        self.news = []
        try:
            self.why = self._look(self.board.show(self.card))
        except CardNotFound:
            self.why = f"card {self.card} is gone"
        self._due = time.monotonic() + _POLL
        return self.why

    def _look(self, card: Card) -> str:
        if lost := self._lost(card):
            return lost
        comments = self.board.comments_since(self.card, self._state["comment"])
        self._tell_drifts(comments)
        may_end = card.claimed_by in (None, self.who)
        if may_end and any(rules.says_stop(one.author, one.body) for one in comments):
            why = self._block(f"stop-requested by user at {stamp(self.context.now())}")
        elif may_end and self._is_over(card):
            why = self._block(f"its time is over at {stamp(self.context.now())}")
        else:
            why = self._beat(card)
        if comments and may_end:
            # Only who can end it has read it: another monitor of this card may still have to.
            self._keep({**self._state, "comment": comments[-1].id})
        return why

    def _lost(self, card: Card) -> str:
        if self._is_visit:
            return "" if card.status in ("ready", "running") else f"card {card.id} is {card.status}"
        if card.status != "running":
            return f"card {card.id} is {card.status}"
        if card.claimed_by != self.who:
            return f"card {card.id} is held by {card.claimed_by}"
        return "" if self._run in (None, card.run_id) else f"card {card.id} is in another run"

    def _tell_drifts(self, comments: list[Comment]) -> None:
        """Comment what was recorded since; lines that stand there already were told before a crash."""
        none: list[tuple[int, float, Document]] = []
        found = self.context.registry.peek(lambda draft: drifts.since(draft, self._state["drift"]), none)
        if not found:
            return
        told = {line for one in comments if one.author == rules.AUTHOR for line in one.body.splitlines()}
        lines = [line for _, at, drift in found if (line := rules.line_of(drift, at)) not in told]
        for text in rules.comments_of(lines):
            self.board.comment(self.card, rules.AUTHOR, text)
        last, at, _ = found[-1]
        count = self._state["drifts"] + len(found)
        self._keep({**self._state, "drift": last, "drifts": count, "last": at})
        self.news = [{**drift, "new": True} for _, _, drift in found]

    def _is_over(self, card: Card) -> bool:
        if not card.max_runtime or card.run_started_at is None:
            return False
        return self.context.now() >= rules.ends_at(card.run_started_at, card.max_runtime)

    def _beat(self, card: Card) -> str:
        """Say that it is alive, every few minutes; in goal mode that is a turn, and the judge is asked.

        Who only visits does not stay for an answer: whoever sends it counts turns and judges.
        """
        now = self.context.now()
        if card.claimed_by == self.who and abs(now - self._beat_at) >= _HEARTBEAT:
            running = sum(is_running(row) for row in self.context.registry.view().rows)
            note = rules.note_of(self._state["drifts"], self._state["last"], running)
            self.board.heartbeat(self.card, self.who, note, run=self._run)
            self._beat_at = now
            self._keep({**self._state, "beat": now})
            if card.goal_mode and not self._is_visit and (why := self._turn(card, note)):
                return why
        elif card.claimed_by == self.who and (card.claim_expires or 0) - now < self.board.ttl / 2:
            # Hermes may have been told to let claims run out sooner than a heartbeat comes.
            self.board.claim(self.card, self.who)
        if rules.is_done(self._judge.verdict()):
            summary = f"monitoring is not wanted any more; {self._state['drifts']} drifts"
            self.board.complete(self.card, summary, who=self.who, run=self._run)
            return f"card {card.id} is done: its judge said so"
        return ""

    def _turn(self, card: Card, note: str) -> str:
        self._turns += 1
        if card.goal_max_turns and self._turns > card.goal_max_turns:
            return self._block(f"its {card.goal_max_turns} turns are spent at {stamp(self.context.now())}")
        self._judge.ask(card, self.board.comments_since(self.card, 0), note)
        return ""

    def _block(self, reason: str) -> str:
        is_held = self.board.show(self.card).claimed_by == self.who
        self.board.block(self.card, reason, who=self.who if is_held else None, run=self._run)
        return reason

    def leave(self, why: str) -> None:
        """Say on the card that nobody watches any more, where the card does not say so itself."""
        if self.why:
            return
        try:
            self.board.comment(self.card, rules.AUTHOR, f"monitoring ended: {why}")
        except MamError as error:
            self.context.warn(f"card {self.card} was not told: {error}")


def claimer(context: Context, card: str) -> tuple[str, int | None]:
    """Return what this process claims a card as, and in which run, if Hermes' dispatcher said so."""
    given = context.environ.get("HERMES_KANBAN_CLAIM_LOCK")
    if given and context.environ.get("HERMES_KANBAN_TASK") == card:
        run = context.environ.get("HERMES_KANBAN_RUN_ID", "")
        return given, int(run) if run.isascii() and run.isdigit() else None
    return f"{socket.gethostname()}:{os.getpid()}", None


def _is_dead(holder: str | None) -> bool:
    """Tell whether a claim's holder is a process of this host that does not run any more."""
    host, _, pid = (holder or "").rpartition(":")
    return (
        host == socket.gethostname() and pid.isascii() and pid.isdigit() and process.runs(int(pid)) is False
    )
