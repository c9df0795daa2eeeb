"""The monitor's card on a board: every difference is a comment, and a comment can end the monitoring.

What was told and what was read is kept in the root's database, so a monitor that died and came back
neither repeats itself nor misses a word.
"""

from __future__ import annotations

import json
import os
import socket
import time

from mam.adapters.store import database, drifts
from mam.adapters.system import process
from mam.app import monitor as passes
from mam.app import turns
from mam.app.board import HERMES, open_board
from mam.app.commits import Commits
from mam.app.judge import Judge
from mam.app.resident import Resident
from mam.app.turns import Limits
from mam.core import card as rules
from mam.core.errors import CardNotFound, Conflict, MamError, NoRegistry, Unavailable, Usage
from mam.core.row import is_running
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.kanban.protocol import Board, Card, Comment
    from mam.app.world import World

    Document = dict[str, Any]
    Tell = Callable[[Document], None]

NEW = "new"
_HEARTBEAT = 300.0
# How often the board is looked at, and how long after it could not be.
_POLL, _RETRY = 2.0, 30.0
_TITLE = "agent-sessions monitor"
_BODY = """\
mam keeps the registry of {root} in line with what is there, and comments each difference here.
A comment with the line `stop` or `stop monitoring` ends it."""


class Companion:
    """Goes along with a monitor: `tick` tells the card what is new, and why the monitor is to end."""

    def __init__(self, world: World, board: Board, card: str, *, is_visit: bool = False) -> None:
        """A visit tells and reads once and holds no claim; else the card is claimed by `claim`."""
        self.world = world
        self.board = board
        self.card = card
        self.who, self._run = _claimer(world, card)
        self.why = ""
        self.news: list[Document] = []
        self._is_visit = is_visit
        self._key = f"card:{board.name}:{card}"
        self._judge = Judge(world)
        self._turns = 0
        self._due = 0.0
        self._state = self._begin(board.show(card))
        self._beat_at: float = self._state["beat"] if is_visit else 0.0

    def _begin(self, card: Card) -> Document:
        """Return how far this card was told and read; what was said before it was last blocked is over."""
        kept = self.world.registry.peek(lambda draft: draft.meta(self._key), None)
        newest = self.world.registry.peek(drifts.newest, 0)
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
        self.world.registry.note(lambda draft: draft.set_meta(self._key, state))
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
            why = self._block(f"stop-requested by user at {stamp(self.world.now())}")
        elif may_end and self._is_over(card):
            why = self._block(f"its time is over at {stamp(self.world.now())}")
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
        found = _recorded_since(self.world, self._state["drift"])
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
        return self.world.now() >= rules.ends_at(card.run_started_at, card.max_runtime)

    def _beat(self, card: Card) -> str:
        """Say that it is alive, every few minutes; in goal mode that is a turn, and the judge is asked.

        Who only visits does not stay for an answer: whoever sends it counts turns and judges.
        """
        now = self.world.now()
        if card.claimed_by == self.who and abs(now - self._beat_at) >= _HEARTBEAT:
            running = sum(is_running(row) for row in self.world.registry.view().rows)
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
            return self._block(f"its {card.goal_max_turns} turns are spent at {stamp(self.world.now())}")
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
            self.world.warn(f"card {self.card} was not told: {error}")


def one_pass(world: World, card: str, *, which: str | None, emit_diff: bool) -> Document:
    """Make one pass and tell the card."""
    _need_registry(world)
    board = open_board(world, which)
    visit = Companion(world, board, _named(world, board, card), is_visit=True)
    report = passes.one_pass(world, emit_diff=emit_diff)
    ended = visit.tick()
    return {**report, "card": board.show(visit.card).as_json(), "ended": ended or None}


def monitor(
    world: World,
    card: str,
    tell: Tell,
    *,
    which: str | None = None,
    timeout: float = 0.0,
    idle_timeout: float = 0.0,
) -> str:
    """Watch the root and keep its card up to date; beside a resident, tell what that one records."""
    _need_registry(world)
    board = open_board(world, which)
    limits = Limits(timeout, idle_timeout)
    companion = Companion(world, board, _named(world, board, card))
    held = companion.claim()
    tell({"card": held.as_json(), "board": {"name": board.name, "path": board.path}})
    why = turns.in_turn(
        lambda: Resident(world, tell, [companion]).run(limits),
        lambda: _accompany(world, companion, tell, limits),
    )
    companion.leave(why)
    return why


def work(world: World, tell: Tell) -> str:
    """Watch as a dispatched worker; one that ends before its card is no success."""
    task = world.environ.get("HERMES_KANBAN_TASK")
    if not task:
        raise Usage("no card was given to this worker", hint="Hermes' dispatcher sets HERMES_KANBAN_TASK")
    board = open_board(world, HERMES)
    if not world.place.exists():
        board.block(task, f"there is no registry in {world.place.root}: mam init makes one")
        raise NoRegistry(f"there is no registry in {world.place.root}", hint="mam init makes one")
    why = monitor(world, task, tell, which=HERMES)
    left = board.show(task)
    who, run = _claimer(world, task)
    if left.claimed_by == who and run in (None, left.run_id):
        raise Unavailable(f"the worker ended before card {task} did: {why}")
    return why


def _named(world: World, board: Board, card: str) -> str:
    if card != NEW:
        return card
    root = world.place.root
    title = f"{_TITLE}: {os.path.basename(root)}"[:200]
    body = _BODY.format(root=root)
    return board.create(title, body=body, created_by=rules.AUTHOR, workspace=root).id


def _need_registry(world: World) -> None:
    if not world.place.exists():
        raise NoRegistry(f"there is no registry in {world.place.root}", hint="mam init makes one")


def _claimer(world: World, card: str) -> tuple[str, int | None]:
    """Return what this process claims a card as, and in which run, if Hermes' dispatcher said so."""
    given = world.environ.get("HERMES_KANBAN_CLAIM_LOCK")
    if given and world.environ.get("HERMES_KANBAN_TASK") == card:
        run = world.environ.get("HERMES_KANBAN_RUN_ID", "")
        return given, int(run) if run.isascii() and run.isdigit() else None
    return f"{socket.gethostname()}:{os.getpid()}", None


def _is_dead(holder: str | None) -> bool:
    """Tell whether a claim's holder is a process of this host that does not run any more."""
    host, _, pid = (holder or "").rpartition(":")
    return (
        host == socket.gethostname() and pid.isascii() and pid.isdigit() and process.runs(int(pid)) is False
    )


def _recorded_since(world: World, number: int) -> list[tuple[int, float, Document]]:
    connection = world.registry.reader()
    if connection is None:
        return []
    with database.errors(world.place.db):
        found = connection.execute("SELECT seq, at, data FROM drifts WHERE seq > ? ORDER BY seq", (number,))
        return [(seq, at, json.loads(data)) for seq, at, data in found]


def _accompany(world: World, companion: Companion, tell: Tell, limits: Limits) -> str:
    """Go along with a resident of another process, by what it records; return nothing when it has ended."""
    with Commits(world) as commits:
        while turns.is_watched(world):
            try:
                why = companion.tick()
            except MamError as error:
                why = ""
                tell({"error": error.as_json()["error"]})
            if companion.news:
                tell({"drifts": companion.news})
                limits.happened()
            if why := why or limits.over():
                return why
            _rest(world, commits, min(companion.due(), limits.next_end()))
        return ""


def _rest(world: World, commits: Commits, until: float) -> None:
    """Wait until then, for a commit of others, or for the end of the resident."""
    while turns.is_watched(world) and (now := time.monotonic()) < until:
        if commits.wait(min(until, now + turns.NET)):
            return
