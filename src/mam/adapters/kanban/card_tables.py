"""The tables of a Kanban board, as Hermes 0.19 has them, and every change of them that mam makes.

Our own board has the same tables under other names, so the same statements serve both. Each change is one
transaction of its caller's and writes the events that Hermes itself would write.
"""

from __future__ import annotations

import json
import secrets

from mam.adapters.kanban.board import CLAIM_SECONDS, Card, Comment
from mam.core.errors import CardNotFound, Conflict, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, Unpack

    from mam.adapters.kanban.board import CardGoal

    T = TypeVar("T")
    # Names of their own: inside the class `list` is a method.
    Cards = list[Card]
    Comments = list[Comment]

_SELECT = """
SELECT id, title, body, status, assignee, created_by, created_at, claim_lock AS claimed_by, claim_expires,
  last_heartbeat_at AS heartbeat_at, max_runtime_seconds AS max_runtime, goal_mode, goal_max_turns,
  workspace_path AS workspace, worker_pid, current_run_id AS run_id, idempotency_key AS key,
  (SELECT started_at FROM {runs} WHERE {runs}.id = current_run_id) AS run_started_at,
  (SELECT summary FROM {runs} WHERE task_id = {tasks}.id ORDER BY {runs}.id DESC LIMIT 1) AS summary,
  (SELECT count(*) FROM {comments} WHERE task_id = {tasks}.id) AS comments,
  (SELECT max(created_at) FROM {events} WHERE task_id = {tasks}.id
    AND kind IN ('blocked', 'unblocked', 'block_loop_detected')) AS ended_at
FROM {tasks}
"""
_BLOCKS = "SELECT block_kind, block_recurrences FROM {tasks} WHERE id = ?"
_BLOCK = """
UPDATE {tasks} SET status = ?, block_kind = NULL, block_recurrences = ?, claim_lock = NULL,
  claim_expires = NULL, worker_pid = NULL WHERE id = ?
"""
_COMPLETE = """
UPDATE {tasks} SET status = 'done', completed_at = ?, consecutive_failures = 0, block_kind = NULL,
  block_recurrences = 0, claim_lock = NULL, claim_expires = NULL, worker_pid = NULL WHERE id = ?
"""
_END_RUN = """
UPDATE {runs} SET status = ?, outcome = ?, summary = coalesce(?, summary), ended_at = ?, claim_lock = NULL,
  claim_expires = NULL, worker_pid = NULL WHERE id = ? AND ended_at IS NULL
"""
_ENDED_RUN = """
INSERT INTO {runs} (task_id, profile, step_key, status, outcome, summary, started_at, ended_at)
SELECT id, assignee, current_step_key, ?, ?, ?, ?, ? FROM {tasks} WHERE id = ?
"""
_NEW_RUN = """
INSERT INTO {runs} (task_id, profile, step_key, status, claim_lock, claim_expires, max_runtime_seconds,
  started_at)
SELECT id, assignee, current_step_key, 'running', ?, ?, max_runtime_seconds, ? FROM {tasks} WHERE id = ?
"""
_CLAIM = """
UPDATE {tasks} SET status = 'running', claim_lock = ?, claim_expires = ?, worker_pid = NULL,
  started_at = coalesce(started_at, ?), current_run_id = ? WHERE id = ?
"""
_CREATE = """
INSERT INTO {tasks} (id, title, body, assignee, status, priority, created_by, created_at, workspace_kind,
  workspace_path, idempotency_key, max_runtime_seconds, max_retries, goal_mode, goal_max_turns)
VALUES (?, ?, ?, ?, 'ready', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COMMENTS = """
SELECT id, author, body, created_at FROM {comments} WHERE task_id = ? AND id > ? ORDER BY id
"""
_LONGEST_TITLE = 200


class Hand:
    """One connection with the names of the board's tables, and the time of this change."""

    __slots__ = ("connection", "names", "now")

    def __init__(self, connection: sqlite3.Connection, names: Mapping[str, str], now: float) -> None:
        self.connection = connection
        self.names = names
        self.now = int(now)

    def run(self, statement: str, *values: object) -> sqlite3.Cursor:
        """Execute one statement."""
        return self.connection.execute(statement.format_map(self.names), values)

    def cards(self, rest: str, *values: object) -> list[Card]:
        """Return the cards that a WHERE and an ORDER say."""
        cursor = self.run(_SELECT + rest, *values)
        columns = [one[0] for one in cursor.description]
        return [Card(dict(zip(columns, row, strict=True))) for row in cursor]

    def card(self, card: str) -> Card:
        """Return one card."""
        found = self.cards("WHERE id = ?", card)
        if not found:
            raise _not_found(card)
        return found[0]

    def event(self, card: str, kind: str, payload: dict[str, Any] | None, run_id: int | None = None) -> None:
        """Record what happened to a card."""
        self.run(
            "INSERT INTO {events} (task_id, run_id, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
            card,
            run_id,
            kind,
            json.dumps(payload, ensure_ascii=False) if payload else None,
            self.now,
        )

    def end_run(self, card: Card, status: str, outcome: str, summary: str) -> int | None:
        """Close the card's run; one that was never claimed gets a run that ended at once."""
        if card.run_id is None:
            values = (outcome, outcome, summary, self.now, self.now, card.id)
            return self.run(_ENDED_RUN, *values).lastrowid
        self.run(_END_RUN, status, outcome, summary, self.now, card.run_id)
        self.run("UPDATE {tasks} SET current_run_id = NULL WHERE id = ?", card.id)
        return int(card.run_id)


class TableBoard:
    """A board in SQLite. What differs between boards is how they are opened, and these few rules."""

    name = ""
    path = ""
    names: Mapping[str, str] = {}
    # What may be claimed, and whether a claim that ran out is anybody's or a dispatcher's.
    claimable: tuple[str, ...] = ("ready",)
    takes_expired = False
    # So many blocks for the same cause send a card to triage; 0 never.
    block_limit = 0
    ttl = CLAIM_SECONDS

    def read(self, work: Callable[[Hand], T], default: T) -> T:
        """Run a read; `default` where there is nothing to read."""
        raise NotImplementedError

    def write(self, work: Callable[[Hand], T]) -> T:
        """Run a change as one transaction that holds the write lock from its first read on."""
        raise NotImplementedError

    def show(self, card: str) -> Card:
        """Return a card."""
        found = self.read(lambda hand: hand.card(card), None)
        if found is None:
            raise _not_found(card)
        return found

    def list(self, status: str | None = None) -> Cards:
        """Return the cards."""
        which = "WHERE status = ?1" if status else "WHERE status != coalesce(?1, 'archived')"
        none: Cards = []
        return self.read(lambda hand: hand.cards(f"{which} ORDER BY created_at, rowid", status), none)

    def comments_since(self, card: str, cursor: int) -> Comments:
        """Return the comments after a cursor."""

        def work(hand: Hand) -> Comments:
            hand.card(card)
            found = hand.run(_COMMENTS, card, cursor)
            return [Comment(*row) for row in found]

        none: Comments = []
        return self.read(work, none)

    def create(
        self,
        title: str,
        *,
        body: str = "",
        key: str | None = None,
        created_by: str | None = None,
        **goal: Unpack[CardGoal],
    ) -> Card:
        """Make a card, or return the one of that key."""
        title = title.strip()
        if not title or len(title) > _LONGEST_TITLE:
            raise Usage("a card needs a title of at most 200 characters")
        return self.write(lambda hand: _create(hand, title, body, key, created_by, goal))

    def comment(self, card: str, author: str, text: str) -> Comment:
        """Add a comment."""
        author, text = author.strip(), text.strip()
        if not author or not text:
            raise Usage("a comment needs an author and a text")

        def work(hand: Hand) -> Comment:
            hand.card(card)
            number = hand.run(
                "INSERT INTO {comments} (task_id, author, body, created_at) VALUES (?, ?, ?, ?)",
                card,
                author,
                text,
                hand.now,
            ).lastrowid
            hand.event(card, "commented", {"author": author, "len": len(text)})
            return Comment(int(number or 0), author, text, hand.now)

        return self.write(work)

    def claim(self, card: str, who: str, ttl: float | None = None, *, over: str | None = None) -> Card:
        """Take a card."""
        seconds = int(ttl or self.ttl)

        def work(hand: Hand) -> Card:
            found = hand.card(card)
            if found.status == "running" and found.claimed_by == who:
                return _extend(hand, found, seconds, may_shorten=ttl is not None)
            if found.status == "running" and self._may_take(found, hand.now, over):
                run = hand.end_run(found, "reclaimed", "reclaimed", "its claim ran out")
                hand.event(card, "reclaimed", {"lock": found.claimed_by, "by": who}, run)
            elif found.status not in self.claimable or found.claimed_by:
                raise _not_claimable(found)
            elif _waits_for_parents(hand, card):
                raise Conflict(f"card {card} waits for cards that are not done", hint="complete those first")
            if found.status == "blocked":
                hand.event(card, "unblocked", {"by": who})
            return _take(hand, found, who, seconds)

        return self.write(work)

    def _may_take(self, card: Card, now: int, over: str | None) -> bool:
        if not self.takes_expired:
            return False
        return (over is not None and card.claimed_by == over) or (card.claim_expires or 0) <= now

    def heartbeat(
        self,
        card: str,
        who: str,
        note: str | None = None,
        ttl: float | None = None,
        *,
        run: int | None = None,
    ) -> Card:
        """Say that work goes on, and extend the claim."""
        seconds = int(ttl or self.ttl)

        def work(hand: Hand) -> Card:
            found = _held(hand, card, who, run)
            hand.run("UPDATE {tasks} SET last_heartbeat_at = ? WHERE id = ?", hand.now, card)
            hand.run("UPDATE {runs} SET last_heartbeat_at = ? WHERE id = ?", hand.now, found.run_id)
            hand.event(card, "heartbeat", {"note": note} if note else None, found.run_id)
            return _extend(hand, found, seconds, may_shorten=ttl is not None)

        return self.write(work)

    def block(self, card: str, reason: str, *, who: str | None = None, run: int | None = None) -> Card:
        """Have a person decide."""

        def work(hand: Hand) -> Card:
            found = _held(hand, card, who, run) if who else hand.card(card)
            if found.status not in ("running", "ready"):
                raise Conflict(
                    f"card {card} is {found.status}", hint="only what is ready or running is blocked"
                )
            before = hand.run(_BLOCKS, card).fetchone()
            times = (before[1] or 0) + 1 if before[0] is None else 1
            is_loop = bool(self.block_limit and times >= self.block_limit)
            hand.run(_BLOCK, "triage" if is_loop else "blocked", times, card)
            ended = hand.end_run(found, "blocked", "blocked", reason)
            facts = {"reason": reason, "kind": None, "recurrences": times}
            if is_loop:
                hand.event(card, "block_loop_detected", {**facts, "limit": self.block_limit}, ended)
            else:
                hand.event(card, "blocked", facts, ended)
            return hand.card(card)

        return self.write(work)

    def complete(self, card: str, summary: str, *, who: str | None = None, run: int | None = None) -> Card:
        """End it: it is done."""

        def work(hand: Hand) -> Card:
            found = _held(hand, card, who, run) if who else hand.card(card)
            if found.status == "done":
                return found
            if found.status not in ("running", "ready", "blocked"):
                raise Conflict(f"card {card} is {found.status}", hint="mam board show says more")
            hand.run(_COMPLETE, hand.now, card)
            ended = hand.end_run(found, "done", "completed", summary)
            first = summary.strip().splitlines()[0][:400] if summary.strip() else None
            hand.event(card, "completed", {"result_len": 0, "summary": first}, ended)
            return hand.card(card)

        return self.write(work)


def _not_found(card: str) -> CardNotFound:
    return CardNotFound(f"there is no card '{card[:60]}' on this board", hint="mam board list shows them")


def _create(
    hand: Hand, title: str, body: str, key: str | None, created_by: str | None, goal: CardGoal
) -> Card:
    same = hand.cards("WHERE idempotency_key = ? AND status != 'archived' ORDER BY created_at DESC", key)
    if key and same:
        return same[0]
    card, workspace = f"t_{secrets.token_hex(4)}", goal.get("workspace")
    assignee, goal_mode = goal.get("assignee"), bool(goal.get("goal_mode"))
    hand.run(
        _CREATE,
        card,
        title,
        body or None,
        assignee,
        created_by,
        hand.now,
        "dir" if workspace else "scratch",
        workspace,
        key,
        goal.get("max_runtime"),
        goal.get("max_retries"),
        int(goal_mode),
        goal.get("goal_max_turns"),
    )
    facts: dict[str, Any] = {"assignee": assignee, "status": "ready", "parents": [], "tenant": None}
    hand.event(
        card, "created", {**facts, "branch_name": None, "skills": None, "goal_mode": goal_mode or None}
    )
    return hand.card(card)


def _held(hand: Hand, card: str, who: str, run: int | None) -> Card:
    found = hand.card(card)
    if found.status == "running" and found.claimed_by == who and run not in (None, found.run_id):
        raise Conflict(f"card {card} is in another run of {who}", hint="mam board show says more")
    if found.status != "running" or found.claimed_by != who:
        holder = f"held by {found.claimed_by}" if found.claimed_by else found.status
        raise Conflict(f"card {card} is not held by {who}: it is {holder}", hint=f"mam board claim {card}")
    return found


def _not_claimable(card: Card) -> Conflict:
    if card.claimed_by:
        return Conflict(f"card {card.id} is held by {card.claimed_by}", hint="wait for its claim to end")
    return Conflict(f"card {card.id} is {card.status} and cannot be claimed", hint="mam board show says more")


def _waits_for_parents(hand: Hand, card: str) -> bool:
    found = hand.run(
        "SELECT 1 FROM {links} JOIN {tasks} ON {tasks}.id = parent_id"
        " WHERE child_id = ? AND status NOT IN ('done', 'archived')",
        card,
    ).fetchone()
    return found is not None


def _take(hand: Hand, card: Card, who: str, seconds: int) -> Card:
    expires = hand.now + seconds
    # A run that somebody left open is closed; Hermes does the same.
    hand.run(_END_RUN, "reclaimed", "reclaimed", None, hand.now, card.run_id)
    run = hand.run(_NEW_RUN, who, expires, hand.now, card.id).lastrowid
    hand.run(_CLAIM, who, expires, hand.now, run, card.id)
    hand.event(card.id, "claimed", {"lock": who, "expires": expires, "run_id": run}, run)
    return hand.card(card.id)


def _extend(hand: Hand, card: Card, seconds: int, *, may_shorten: bool) -> Card:
    expires = hand.now + seconds
    if not may_shorten:
        expires = max(expires, int(card.claim_expires or 0))
    hand.run("UPDATE {tasks} SET claim_expires = ? WHERE id = ?", expires, card.id)
    hand.run("UPDATE {runs} SET claim_expires = ? WHERE id = ?", expires, card.run_id)
    return hand.card(card.id)
