BEGIN TRANSACTION;
CREATE TABLE evidence(
  session_id TEXT NOT NULL,
  source TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY(session_id, source)
) WITHOUT ROWID;
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
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('file','[2187719,242,1794741184108538761]');
INSERT INTO "meta" VALUES('head','"# Kept by mam, safe to edit: `mam log` shows what was taken in. Comments stay as long as the session they stand in does not change.\nschema_version: 2\nupdated_at: ''2026-11-15T12:00:00Z''\nagent_identities: {}\n"');
INSERT INTO "meta" VALUES('identities_written','{}');
INSERT INTO "meta" VALUES('tail','"# end of sessions\n"');
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
CREATE INDEX log_by_session ON log(session_id, seq);
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version=1;
