"""The tables of a Kanban board, as in Hermes 0.19, and every change that mam makes to them.

mam's own board has the same tables under other names, so the same statements work for both. Each change is
one transaction of its caller, and writes the events that Hermes itself would write.
"""

from __future__ import annotations

import json
import secrets

from mam.adapters.kanban.board import CLAIM_SECONDS, DIRECTORY, PLACES, SCRATCH, WORKTREE, Card, Comment
from mam.core import record_limits
from mam.core.errors import CardNotFound, Conflict, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, Unpack

    from mam.adapters.kanban.board import CardGoal

    T = TypeVar("T")
    # Aliases, because `list` is a method inside the class.
    Cards = list[Card]
    Comments = list[Comment]

_SELECT = """
SELECT id, title, body, status, assignee, created_by, created_at, claim_lock AS claimed_by, claim_expires,
  last_heartbeat_at AS heartbeat_at, max_runtime_seconds AS max_runtime, goal_mode, goal_max_turns,
  workspace_path AS workspace, workspace_kind, branch_name AS branch, skills, worker_pid,
  current_run_id AS run_id, idempotency_key AS key,
  (SELECT started_at FROM {runs} WHERE {runs}.id = current_run_id) AS run_started_at,
  (SELECT summary FROM {runs} WHERE task_id = {tasks}.id ORDER BY {runs}.id DESC LIMIT 1) AS summary,
  (SELECT count(*) FROM {comments} WHERE task_id = {tasks}.id) AS comments,
  (SELECT max(created_at) FROM {events} WHERE task_id = {tasks}.id
    AND kind IN ('blocked', 'unblocked', 'block_loop_detected')) AS ended_at,
  (SELECT payload FROM {events} WHERE task_id = {tasks}.id AND kind = 'heartbeat'
    ORDER BY {events}.id DESC LIMIT 1) AS heartbeat_note
FROM {tasks}
"""
_BLOCKS = "SELECT block_kind, block_recurrences FROM {tasks} WHERE id = ?"
_BLOCK = """
UPDATE {tasks} SET status = ?, block_kind = NULL, block_recurrences = ?, claim_lock = NULL,
  claim_expires = NULL, worker_pid = NULL WHERE id = ?
"""
_RELEASE = """
UPDATE {tasks} SET status = 'ready', claim_lock = NULL, claim_expires = NULL, worker_pid = NULL WHERE id = ?
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
  workspace_path, branch_name, skills, idempotency_key, max_runtime_seconds, max_retries, goal_mode,
  goal_max_turns)
VALUES (?, ?, ?, ?, 'ready', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COMMENTS = """
SELECT id, author, body, created_at FROM {comments} WHERE task_id = ? AND id > ? ORDER BY id
"""
_LONGEST_TITLE = 200


class BoardConnection:
    """A connection with the names of the board's tables, and the time of this change."""

    __slots__ = ("connection", "names", "now")

    def __init__(self, connection: sqlite3.Connection, names: Mapping[str, str], now: float) -> None:
        self.connection = connection
        self.names = names
        self.now = int(now)

    def run(self, statement: str, *values: object) -> sqlite3.Cursor:
        """Execute one statement."""
        return self.connection.execute(statement.format_map(self.names), values)

    def cards(self, rest: str, *values: object) -> list[Card]:
        """Return the cards for the rest of a SELECT, its WHERE and ORDER."""
        cursor = self.run(_SELECT + rest, *values)
        columns = [column[0] for column in cursor.description]
        return [_card(dict(zip(columns, row, strict=True))) for row in cursor]

    def card(self, card: str) -> Card:
        """Return one card."""
        cards = self.cards("WHERE id = ?", card)
        if not cards:
            raise _not_found(card)
        return cards[0]

    def event(self, card: str, kind: str, payload: dict[str, Any] | None, run_id: int | None = None) -> None:
        """Record an event of a card."""
        text = json.dumps(payload, ensure_ascii=False) if payload else None
        record_limits.check(payload=text)
        self.run(
            "INSERT INTO {events} (task_id, run_id, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
            card,
            run_id,
            kind,
            text,
            self.now,
        )

    def end_run(self, card: Card, status: str, outcome: str, summary: str) -> int | None:
        """End the card's run; a card that was never claimed gets a run that has ended already."""
        if card.run_id is None:
            values = (outcome, outcome, summary, self.now, self.now, card.id)
            return self.run(_ENDED_RUN, *values).lastrowid
        self.run(_END_RUN, status, outcome, summary, self.now, card.run_id)
        self.run("UPDATE {tasks} SET current_run_id = NULL WHERE id = ?", card.id)
        return int(card.run_id)


class SqliteBoard:
    """A board in SQLite. Boards differ in how they are opened, and in these few rules."""

    name = ""
    path = ""
    names: Mapping[str, str] = {}
    # The statuses that may be claimed, and whether mam may take over an expired claim.
    claimable: tuple[str, ...] = ("ready",)
    takes_expired = False
    # After so many blocks for the same cause a card goes to triage; 0 means never.
    block_limit = 0
    ttl = CLAIM_SECONDS

    def read(self, work: Callable[[BoardConnection], T], default: T) -> T:
        """Run a read; return `default` without a database."""
        raise NotImplementedError

    def write(self, work: Callable[[BoardConnection], T]) -> T:
        """Run a change as one transaction that holds the write lock from its first read."""
        raise NotImplementedError

    def show(self, card: str) -> Card:
        """Return a card."""
        shown = self.read(lambda connection: connection.card(card), None)
        if shown is None:
            raise _not_found(card)
        return shown

    def list(self, status: str | None = None) -> Cards:
        """Return the cards."""
        which = "WHERE status = ?1" if status else "WHERE status != coalesce(?1, 'archived')"
        none: Cards = []
        return self.read(
            lambda connection: connection.cards(f"{which} ORDER BY created_at, rowid", status), none
        )

    def comments_since(self, card: str, cursor: int) -> Comments:
        """Return the comments after a cursor."""

        def work(connection: BoardConnection) -> Comments:
            connection.card(card)
            rows = connection.run(_COMMENTS, card, cursor)
            return [Comment(*row) for row in rows]

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
        """Create a card, or return the open card with that key."""
        title = title.strip()
        if not title or len(title) > _LONGEST_TITLE:
            raise Usage(
                "a card needs a title of at most 200 characters", hint="further text goes into its body"
            )
        record_limits.check(title=title)
        record_limits.check(body=body, key=key, created_by=created_by, **_fields(goal))
        return self.write(lambda connection: _create(connection, title, body, key, created_by, goal))

    def comment(self, card: str, author: str, text: str) -> Comment:
        """Add a comment."""
        author, text = author.strip(), text.strip()
        if not author or not text:
            raise Usage("a comment needs an author and a text", hint='mam board comment CARD "text"')
        record_limits.check(author=author, body=text)

        def work(connection: BoardConnection) -> Comment:
            connection.card(card)
            number = connection.run(
                "INSERT INTO {comments} (task_id, author, body, created_at) VALUES (?, ?, ?, ?)",
                card,
                author,
                text,
                connection.now,
            ).lastrowid
            connection.event(card, "commented", {"author": author, "len": len(text)})
            return Comment(int(number or 0), author, text, connection.now)

        return self.write(work)

    def claim(self, card: str, holder: str, ttl: float | None = None, *, over: str | None = None) -> Card:
        """Claim a card."""
        seconds = int(ttl or self.ttl)
        record_limits.check(holder=holder)

        def work(connection: BoardConnection) -> Card:
            current = connection.card(card)
            if current.status == "running" and current.claimed_by == holder:
                return _extend(connection, current, seconds, may_shorten=ttl is not None)
            if current.status == "running" and self._may_take(current, connection.now, over):
                run = connection.end_run(current, "reclaimed", "reclaimed", "its claim ran out")
                connection.event(card, "reclaimed", {"lock": current.claimed_by, "by": holder}, run)
            elif current.status not in self.claimable or current.claimed_by:
                raise _not_claimable(current)
            elif _waits_for_parents(connection, card):
                raise Conflict(
                    f"card {card} waits for cards that are not done", hint="complete those cards first"
                )
            if current.status == "blocked":
                connection.event(card, "unblocked", {"by": holder})
            return _start_run(connection, current, holder, seconds)

        return self.write(work)

    def _may_take(self, card: Card, now: int, over: str | None) -> bool:
        if not self.takes_expired:
            return False
        return (over is not None and card.claimed_by == over) or (card.claim_expires or 0) <= now

    def heartbeat(
        self,
        card: str,
        holder: str,
        note: str | None = None,
        ttl: float | None = None,
        *,
        run: int | None = None,
    ) -> Card:
        """Record that the work continues, and extend the claim."""
        seconds = int(ttl or self.ttl)

        def work(connection: BoardConnection) -> Card:
            current = _card_held_by(connection, card, holder, run)
            connection.run("UPDATE {tasks} SET last_heartbeat_at = ? WHERE id = ?", connection.now, card)
            connection.run(
                "UPDATE {runs} SET last_heartbeat_at = ? WHERE id = ?", connection.now, current.run_id
            )
            connection.event(card, "heartbeat", {"note": note} if note else None, current.run_id)
            return _extend(connection, current, seconds, may_shorten=ttl is not None)

        return self.write(work)

    def block(self, card: str, reason: str, *, holder: str | None = None, run: int | None = None) -> Card:
        """End the run and block the card for a person."""
        record_limits.check(reason=reason)

        def work(connection: BoardConnection) -> Card:
            current = _card_held_by(connection, card, holder, run) if holder else connection.card(card)
            if current.status not in ("running", "ready"):
                raise Conflict(
                    f"card {card} is {current.status}", hint="only a ready or running card can be blocked"
                )
            before = connection.run(_BLOCKS, card).fetchone()
            times = (before[1] or 0) + 1 if before[0] is None else 1
            is_loop = bool(self.block_limit and times >= self.block_limit)
            connection.run(_BLOCK, "triage" if is_loop else "blocked", times, card)
            ended = connection.end_run(current, "blocked", "blocked", reason)
            facts = {"reason": reason, "kind": None, "recurrences": times}
            if is_loop:
                connection.event(card, "block_loop_detected", {**facts, "limit": self.block_limit}, ended)
            else:
                connection.event(card, "blocked", facts, ended)
            return connection.card(card)

        return self.write(work)

    def release(self, card: str, holder: str, reason: str, *, run: int | None = None) -> Card:
        """End the run and set the card to ready; a board with a dispatcher leaves that to the dispatcher."""
        record_limits.check(reason=reason)

        def work(connection: BoardConnection) -> Card:
            current = _card_held_by(connection, card, holder, run)
            connection.run(_RELEASE, card)
            ended = connection.end_run(current, "released", "released", reason)
            connection.event(card, "released", {"lock": holder, "reason": reason}, ended)
            return connection.card(card)

        return self.write(work) if self.takes_expired else self.show(card)

    def complete(self, card: str, summary: str, *, holder: str | None = None, run: int | None = None) -> Card:
        """End the run and set the card to done."""
        record_limits.check(summary=summary)

        def work(connection: BoardConnection) -> Card:
            current = _card_held_by(connection, card, holder, run) if holder else connection.card(card)
            if current.status == "done":
                return current
            if current.status not in ("running", "ready", "blocked"):
                raise Conflict(f"card {card} is {current.status}", hint="mam board show has the details")
            connection.run(_COMPLETE, connection.now, card)
            ended = connection.end_run(current, "done", "completed", summary)
            first_line = summary.strip().splitlines()[0][:400] if summary.strip() else None
            connection.event(card, "completed", {"result_len": 0, "summary": first_line}, ended)
            return connection.card(card)

        return self.write(work)


def _card(values: dict[str, Any]) -> Card:
    """Return a card from a row of the query above. Its JSON may be another program's."""
    skills = _parsed(values["skills"])
    names = [str(name) for name in skills] if isinstance(skills, list) else None
    note = _text_in(_parsed(values["heartbeat_note"]), "note")
    return Card({**values, "heartbeat_note": note, "skills": names})


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None


def _text_in(document: Any, key: str) -> str | None:
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _not_found(card: str) -> CardNotFound:
    return CardNotFound(f"there is no card '{card[:60]}' on this board", hint="mam board list shows them")


def _create(
    connection: BoardConnection,
    title: str,
    body: str,
    key: str | None,
    created_by: str | None,
    goal: CardGoal,
) -> Card:
    cards_with_key = connection.cards(
        "WHERE idempotency_key = ? AND status != 'archived' ORDER BY created_at DESC", key
    )
    if key and cards_with_key:
        return cards_with_key[0]
    card, workspace = f"t_{secrets.token_hex(4)}", goal.get("workspace")
    kind, branch, skills = _place(goal), goal.get("branch"), _skills(goal)
    assignee, goal_mode = goal.get("assignee"), bool(goal.get("goal_mode"))
    names = json.dumps(skills) if skills is not None else None
    record_limits.check(skills=names)
    connection.run(
        _CREATE,
        card,
        title,
        body or None,
        assignee,
        created_by,
        connection.now,
        kind,
        workspace,
        branch,
        names,
        key,
        _whole(goal.get("max_runtime")),
        _whole(goal.get("max_retries")),
        int(goal_mode),
        _whole(goal.get("goal_max_turns")),
    )
    facts: dict[str, Any] = {"assignee": assignee, "status": "ready", "parents": [], "tenant": None}
    connection.event(
        card,
        "created",
        {**facts, "branch_name": branch, "skills": skills or None, "goal_mode": goal_mode or None},
    )
    return connection.card(card)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _fields(goal: CardGoal) -> dict[str, Any]:
    """Return the fields of a new card that are recorded as they are."""
    return {name: value for name, value in goal.items() if name not in ("skills", "goal_mode")}


def _place(goal: CardGoal) -> str:
    """Return where the work of a new card is done; raise Usage for what Hermes refuses."""
    workspace, branch = goal.get("workspace"), goal.get("branch")
    kind = goal.get("workspace_kind") or (DIRECTORY if workspace else SCRATCH)
    if kind not in PLACES:
        raise Usage(f"{kind[:40]!r} is no place for work", hint=f"places are {', '.join(PLACES)}")
    if (workspace is None) != (kind == SCRATCH) and kind != WORKTREE:
        problem = "a scratch place has no directory" if workspace else "the place dir needs a directory"
        raise Usage(problem, hint="dir:DIR names a directory, and scratch none")
    if workspace is not None and not workspace.startswith("/"):
        raise Usage(f"{workspace[:60]!r} is not an absolute path", hint="Hermes takes absolute paths only")
    if branch is not None and kind != WORKTREE:
        raise Usage(
            "a branch is only for a worktree", hint="name the place worktree, or leave out the branch"
        )
    if branch is not None and (not branch or branch.startswith("-") or branch.split() != [branch]):
        raise Usage(f"{branch[:60]!r} is not the name of a branch", hint="wt/monitor is one")
    return kind


def _skills(goal: CardGoal) -> list[str] | None:
    """Return the skills of a new card, each once."""
    given = goal.get("skills")
    if given is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in given))
    if "" in names:
        raise Usage("the name of a skill is empty", hint="name a skill, or leave it out")
    if wrong := next((name for name in names if "," in name), None):
        raise Usage(f"{wrong[:60]!r} is not the name of one skill", hint="name each skill by itself")
    return names


def _card_held_by(connection: BoardConnection, card: str, holder: str, run: int | None) -> Card:
    current = connection.card(card)
    if current.status == "running" and current.claimed_by == holder and run not in (None, current.run_id):
        raise Conflict(f"card {card} is in another run of {holder}", hint="mam board show has the details")
    if current.status != "running" or current.claimed_by != holder:
        actual = f"claimed by {current.claimed_by}" if current.claimed_by else current.status
        raise Conflict(
            f"{holder} has not claimed card {card}: it is {actual}", hint=f"mam board claim {card}"
        )
    return current


def _not_claimable(card: Card) -> Conflict:
    if card.claimed_by:
        return Conflict(f"{card.claimed_by} has claimed card {card.id}", hint="wait until the claim ends")
    return Conflict(
        f"card {card.id} is {card.status} and cannot be claimed", hint="mam board show has the details"
    )


def _waits_for_parents(connection: BoardConnection, card: str) -> bool:
    row = connection.run(
        "SELECT 1 FROM {links} JOIN {tasks} ON {tasks}.id = parent_id"
        " WHERE child_id = ? AND status NOT IN ('done', 'archived')",
        card,
    ).fetchone()
    return row is not None


def _start_run(connection: BoardConnection, card: Card, holder: str, seconds: int) -> Card:
    expires = connection.now + seconds
    # Another program may have left a run open. Hermes ends it here too.
    connection.run(_END_RUN, "reclaimed", "reclaimed", None, connection.now, card.run_id)
    run = connection.run(_NEW_RUN, holder, expires, connection.now, card.id).lastrowid
    connection.run(_CLAIM, holder, expires, connection.now, run, card.id)
    connection.event(card.id, "claimed", {"lock": holder, "expires": expires, "run_id": run}, run)
    return connection.card(card.id)


def _extend(connection: BoardConnection, card: Card, seconds: int, *, may_shorten: bool) -> Card:
    expires = connection.now + seconds
    if not may_shorten:
        expires = max(expires, int(card.claim_expires or 0))
    connection.run("UPDATE {tasks} SET claim_expires = ? WHERE id = ?", expires, card.id)
    connection.run("UPDATE {runs} SET claim_expires = ? WHERE id = ?", expires, card.run_id)
    return connection.card(card.id)
