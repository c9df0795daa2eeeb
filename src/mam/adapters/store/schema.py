"""The tables of a root's state, as the list of steps that made them.

A step is never changed once it was released: an old file runs the steps it has not seen.
"""

from __future__ import annotations

STATE_MIGRATIONS = (
    """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions(
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,
  position INTEGER NOT NULL,
  version INTEGER NOT NULL,
  data TEXT NOT NULL,
  written TEXT,
  block TEXT
);
CREATE TABLE forgotten(written TEXT NOT NULL);
CREATE TABLE intents(
  session_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  verb TEXT NOT NULL,
  owner TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL
);
CREATE TABLE log(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  verb TEXT NOT NULL,
  session_id TEXT,
  name TEXT,
  reason TEXT,
  detail TEXT NOT NULL
);
CREATE INDEX log_by_session ON log(session_id, seq);
CREATE TABLE evidence(
  session_id TEXT NOT NULL,
  source TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY(session_id, source)
) WITHOUT ROWID;
""",
    """
CREATE TABLE drifts(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  at REAL NOT NULL,
  is_open INTEGER NOT NULL,
  data TEXT NOT NULL
);
CREATE INDEX open_drifts ON drifts(key) WHERE is_open;
CREATE TABLE notices(
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY(session_id, kind)
) WITHOUT ROWID;
""",
)

HOST_MIGRATIONS = (
    """
CREATE TABLE roots(path TEXT PRIMARY KEY, registry TEXT NOT NULL, seen_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE leases(
  kind TEXT NOT NULL,
  conversation TEXT NOT NULL,
  root TEXT NOT NULL,
  session_id TEXT NOT NULL,
  holder TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(kind, conversation)
) WITHOUT ROWID;
""",
)
