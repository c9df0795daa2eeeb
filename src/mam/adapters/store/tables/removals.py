"""What was forgotten or purged, as the log tells it, and its removal from a copy of the database.

A copy of an older schema is changed as well, so the statements name only what the first schema had. Tables
that came later are looked for.
"""

from __future__ import annotations

import json
import sqlite3

from mam.adapters.store.rows_and_log import dump
from mam.adapters.store.tables import messages, purged_conversations
from mam.core import session_transitions
from mam.core.session_row import with_all_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

FORGET, PURGE, FORGET_JOB = "forget", "purge", "job forget"
_ENTRIES = """\
SELECT seq, at, actor, verb, session_id, detail FROM log
WHERE seq > ? AND (verb IN ('forget', 'purge') AND session_id IS NOT NULL OR verb = 'job forget')
ORDER BY seq"""
# The tables of jobs, with the column that has the id of the job.
_OF_JOBS = (("job_events", "job_id"), ("job_prompts", "job_id"), ("outbox", "job_id"), ("jobs", "id"))


class Removal:
    """An entry of the log: a session or a job that was forgotten, or a conversation that was purged."""

    __slots__ = ("actor", "at", "conversation", "job_id", "seq", "session_id", "verb")

    def __init__(
        self, seq: int, at: float, actor: str, verb: str, session_id: str | None, detail: dict[str, Any]
    ) -> None:
        self.seq = seq
        self.at = at
        self.actor = actor
        self.verb = verb
        self.session_id = session_id
        # An older mam has recorded the conversation that was purged.
        self.conversation: str | None = detail.get("conversation")
        self.job_id: str | None = detail.get("job")


def since(transaction: Transaction, last: tuple[int, float] | None) -> list[Removal]:
    """Return the removals after the last one that is known by number and time.

    If the log does not have that one, these are all: the database was replaced, or the entry was removed.
    """
    connection = transaction.connection
    is_there = last and connection.execute("SELECT 1 FROM log WHERE seq=? AND at=?", last).fetchone()
    after = last[0] if last and is_there else 0
    return [
        Removal(seq, at, actor, verb, session_id, json.loads(detail))
        for seq, at, actor, verb, session_id, detail in connection.execute(_ENTRIES, (after,))
    ]


def remove_from(copy: sqlite3.Connection, removals: Iterable[Removal]) -> None:
    """Remove from a copy what was removed after it was made; it has the entry of what was removed before."""
    for removal in removals:
        query = "SELECT 1 FROM log WHERE seq=? AND at=? AND verb=?"
        if copy.execute(query, (removal.seq, removal.at, removal.verb)).fetchone():
            continue
        if removal.verb == FORGET_JOB:
            _forget_job(copy, removal.job_id)
        elif removal.verb == FORGET:
            _forget(copy, removal.session_id)
        else:
            _purge(copy, removal)


def _tables(copy: sqlite3.Connection) -> set[str]:
    return {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type='table'")}


def _forget_job(copy: sqlite3.Connection, job_id: str | None) -> None:
    tables = _tables(copy)
    if "messages" in tables and job_id is not None:
        messages.remove_of_job(copy, job_id)
    for table, column in _OF_JOBS:
        if table in tables:
            copy.execute(f"DELETE FROM {table} WHERE {column}=?", (job_id,))  # noqa: S608  (our names)
    if "backup" in tables:
        for (value,) in copy.execute("SELECT value FROM backup WHERE key='tokens'").fetchall():
            tokens = json.loads(value)
            if tokens and tokens.pop(job_id, None) is not None:
                copy.execute("UPDATE backup SET value=? WHERE key='tokens'", (dump(tokens),))


def _forget(copy: sqlite3.Connection, session_id: str | None) -> None:
    copy.execute("DELETE FROM sessions WHERE id=?", (session_id,))
    copy.execute("DELETE FROM evidence WHERE session_id=?", (session_id,))
    copy.execute("DELETE FROM forgotten WHERE instr(written, ?)", (session_id,))
    if "messages" in _tables(copy):
        copy.execute("DELETE FROM messages WHERE session_id=?", (session_id,))


def _purge(copy: sqlite3.Connection, removal: Removal) -> None:
    recorded = copy.execute("SELECT data FROM sessions WHERE id=?", (removal.session_id,)).fetchone()
    if recorded is not None:
        row = with_all_fields(json.loads(recorded[0]))
        names = purged_conversations.erase(copy, row)
        action: Any = {"by": removal.actor, "verb": PURGE, "at_epoch": int(removal.at)}
        purged = session_transitions.purged(row, action, reason=None, exit_status=None)
        if purged != row:
            copy.execute(
                "UPDATE sessions SET status=?, data=?, written=NULL, block=NULL WHERE id=?",
                (purged["status"], dump(purged), removal.session_id),
            )
        for name in names:
            _forget_identity(copy, name)
    if removal.conversation:
        _forget_identity(copy, removal.conversation)


def _forget_identity(copy: sqlite3.Connection, conversation: str) -> None:
    """Forget a conversation where it is recorded as the newest one of its agent kind."""
    keys = "SELECT key, value FROM meta WHERE key IN ('identities', 'identities_written')"
    for key, value in copy.execute(keys).fetchall():
        identities = json.loads(value)
        kept = {kind: entry for kind, entry in identities.items() if conversation not in dump(entry)}
        if kept != identities:
            copy.execute("UPDATE meta SET value=? WHERE key=?", (dump(kept), key))
    # The head of the YAML file names them as well; without it, the next change writes it anew.
    copy.execute("UPDATE meta SET value='null' WHERE key='head' AND instr(value, ?)", (conversation,))
