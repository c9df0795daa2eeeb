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
INSERT INTO "intents" VALUES('s_00000001','one','stop','{"pid": 4000000, "start": 1, "boot": "another boot"}',1.0,'{"reason": "manual_stop", "purge": false, "force": false}');
INSERT INTO "intents" VALUES('s_00000002','two','create','{"pid": 4000000, "start": 1, "boot": "another boot"}',2.0,'{"id": "s_00000002", "anew": false, "row": {"id": "s_00000002", "name": "two", "agent": "claude", "workspace": "/abs/demo/app", "resumable": true, "tmux_server": "mam-none", "tmux_session_id": "$2", "start_command": ["claude"], "created_at": "2026-11-15T12:00:00Z", "created_at_epoch": 1794744000, "last_action": {"by": "user", "verb": "create", "at_epoch": 1794744000}}, "launch_file": "/nowhere/x.launch", "conversation": null}');
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
INSERT INTO "meta" VALUES('file','[2187719,1075,1794741184087770339]');
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
INSERT INTO "sessions" VALUES('s_00000001','demo-app-1-creator-claude','running',1,1,'{"id":"s_00000001","name":"demo-app-1-creator-claude","agent":"claude","role":null,"workspace":"/abs/demo/app","status":"running","resumable":true,"tmux_server":"mam-none","tmux_session_id":"$1","start_command":["claude"],"permissions":"default","pane":{"id":"%1","pid":4000001,"cmd":"claude","cwd":"/abs/demo/app"},"claude_session_id_own":null,"conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":null,"last_visible_note":null,"exit_status":null,"created_at":"2026-11-15T12:00:00Z","created_at_epoch":1794744000,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":null,"stopped_at_epoch":null,"stop_reason":null,"terminated_at":null,"terminated_at_epoch":null,"termination_mode":null,"last_action":{"by":"user","verb":"create","at_epoch":1794744000},"version":1}',NULL,'- id: s_00000001
  name: demo-app-1-creator-claude
  agent: claude
  role: null
  workspace: /abs/demo/app
  status: running
  resumable: true
  tmux_server: mam-none
  tmux_session_id: $1
  start_command: [claude]
  permissions: default
  pane: {id: ''%1'', pid: 4000001, cmd: claude, cwd: /abs/demo/app}
  claude_session_id_own: null
  conversations: []
  stores: {}
  worktree: null
  delegate_job_id: null
  parent: null
  last_visible_status: null
  last_visible_note: null
  exit_status: null
  created_at: ''2026-11-15T12:00:00Z''
  created_at_epoch: 1794744000
  resumed_at: null
  resume_count: 0
  resume_tier: null
  stopped_at: null
  stopped_at_epoch: null
  stop_reason: null
  terminated_at: null
  terminated_at_epoch: null
  termination_mode: null
  last_action: {by: user, verb: create, at_epoch: 1794744000}
  version: 1
');
CREATE INDEX log_by_session ON log(session_id, seq);
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version=1;
