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
INSERT INTO "meta" VALUES('extra','{"team":"blue"}');
INSERT INTO "meta" VALUES('file','[2187679,3811,1794741184051857617]');
INSERT INTO "meta" VALUES('head','"# Kept by mam, safe to edit: `mam log` shows what was taken in. Comments stay as long as the session they stand in does not change.\nteam: blue  # ours\nschema_version: 2\nupdated_at: ''2026-11-15T12:00:00Z''\nagent_identities:\n  claude: {session_id: c-4, project_cwd: /w}\n"');
INSERT INTO "meta" VALUES('identities','{"claude":{"session_id":"c-4","project_cwd":"/w"}}');
INSERT INTO "meta" VALUES('identities_written','{"claude":{"session_id":"c-4","project_cwd":"/w"}}');
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
INSERT INTO "sessions" VALUES('s_00000001','demo-app-1-creator-claude','running',1,1,'{"id":"s_00000001","name":"demo-app-1-creator-claude","agent":"claude","role":"developer","workspace":"/abs/demo/app","status":"running","resumable":true,"tmux_server":"mam-none","tmux_session_id":"$1","start_command":["claude"],"permissions":"default","pane":{"id":"%1","pid":4000001,"cmd":"claude","cwd":"/abs/demo/app"},"claude_session_id_own":null,"conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":null,"last_visible_note":"a\n  b\n","exit_status":null,"created_at":"2026-11-15T12:00:00Z","created_at_epoch":1794744000,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":null,"stopped_at_epoch":null,"stop_reason":null,"terminated_at":null,"terminated_at_epoch":null,"termination_mode":null,"last_action":{"by":"user","verb":"create","at_epoch":1794744000},"version":1,"note":"ünï ☂ ''quoted'' # no comment"}',NULL,'- id: s_00000001
  name: demo-app-1-creator-claude
  agent: claude
  role: developer
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
  last_visible_note: "a\n  b\n"
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
  note: ''ünï ☂ ''''quoted'''' # no comment''
');
INSERT INTO "sessions" VALUES('s_00000002','two','stopped',2,2,'{"id":"s_00000002","name":"two","agent":"practice","role":null,"workspace":"/abs/demo/app","status":"stopped","resumable":true,"tmux_server":"mam-none","tmux_session_id":"$2","start_command":["claude"],"permissions":"default","pane":{"id":"%2","pid":4000002,"cmd":"claude","cwd":"/abs/demo/app"},"practice_session_id_own":null,"conversations":[{"id":"c-2","source":"chosen","since":"x"}],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":"stopped","last_visible_note":null,"exit_status":0,"created_at":"2026-11-15T12:00:00Z","created_at_epoch":1794744000,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":"2026-11-15T12:01:00Z","stopped_at_epoch":1794744060,"stop_reason":"manual_stop","terminated_at":null,"terminated_at_epoch":null,"termination_mode":"graceful","last_action":{"by":"user","verb":"test","at_epoch":1794744060},"version":2}',NULL,'- id: s_00000002
  name: two
  agent: practice
  role: null
  workspace: /abs/demo/app
  status: stopped
  resumable: true
  tmux_server: mam-none
  tmux_session_id: $2
  start_command: [claude]
  permissions: default
  pane: {id: ''%2'', pid: 4000002, cmd: claude, cwd: /abs/demo/app}
  practice_session_id_own: null
  conversations:
  - {id: c-2, source: chosen, since: x}
  stores: {}
  worktree: null
  delegate_job_id: null
  parent: null
  last_visible_status: stopped
  last_visible_note: null
  exit_status: 0
  created_at: ''2026-11-15T12:00:00Z''
  created_at_epoch: 1794744000
  resumed_at: null
  resume_count: 0
  resume_tier: null
  stopped_at: ''2026-11-15T12:01:00Z''
  stopped_at_epoch: 1794744060
  stop_reason: manual_stop
  terminated_at: null
  terminated_at_epoch: null
  termination_mode: graceful
  last_action: {by: user, verb: test, at_epoch: 1794744060}
  version: 2
');
INSERT INTO "sessions" VALUES('s_00000003','three','terminated',3,2,'{"id":"s_00000003","name":"three","agent":"claude","role":null,"workspace":"/abs/demo/app","status":"terminated","resumable":true,"tmux_server":"mam-none","tmux_session_id":"$3","start_command":["claude","--model","a b"],"permissions":"default","pane":{"id":"%3","pid":4000003,"cmd":"claude","cwd":"/abs/demo/app"},"claude_session_id_own":null,"conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":"terminated","last_visible_note":null,"exit_status":137,"created_at":"2026-11-15T12:00:00Z","created_at_epoch":1794744000,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":null,"stopped_at_epoch":null,"stop_reason":null,"terminated_at":"2026-11-15T12:01:00Z","terminated_at_epoch":1794744060,"termination_mode":"auto-detected","last_action":{"by":"user","verb":"test","at_epoch":1794744060},"version":2}',NULL,'# mine, above
- id: s_00000003
  name: three
  agent: claude
  role: null
  workspace: /abs/demo/app
  status: terminated
  resumable: true
  tmux_server: mam-none
  tmux_session_id: $3
  start_command: [claude, --model, a b]
  permissions: default
  pane: {id: ''%3'', pid: 4000003, cmd: claude, cwd: /abs/demo/app}
  claude_session_id_own: null
  conversations: []
  stores: {}
  worktree: null
  delegate_job_id: null
  parent: null
  last_visible_status: terminated
  last_visible_note: null
  exit_status: 137
  created_at: ''2026-11-15T12:00:00Z''
  created_at_epoch: 1794744000
  resumed_at: null
  resume_count: 0
  resume_tier: null
  stopped_at: null
  stopped_at_epoch: null
  stop_reason: null
  terminated_at: ''2026-11-15T12:01:00Z''
  terminated_at_epoch: 1794744060
  termination_mode: auto-detected
  last_action: {by: user, verb: test, at_epoch: 1794744060}
  version: 2
');
INSERT INTO "sessions" VALUES('s_00000004','four','archived',4,3,'{"id":"s_00000004","name":"four","agent":"claude","role":null,"workspace":"/abs/demo/app","status":"archived","resumable":true,"tmux_server":"mam-none","tmux_session_id":"$4","start_command":["claude"],"permissions":"default","pane":{"id":"%4","pid":4000004,"cmd":"claude","cwd":"/abs/demo/app"},"claude_session_id_own":"c-4","conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":"archived","last_visible_note":null,"exit_status":0,"created_at":"2026-11-15T12:00:00Z","created_at_epoch":1794744000,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":"2026-11-15T12:01:00Z","stopped_at_epoch":1794744060,"stop_reason":"manual_stop","terminated_at":null,"terminated_at_epoch":null,"termination_mode":"graceful","last_action":{"by":"user","verb":"test","at_epoch":1794744060},"version":3}',NULL,'- id: s_00000004
  name: four
  agent: claude
  role: null
  workspace: /abs/demo/app
  status: archived
  resumable: true
  tmux_server: mam-none
  tmux_session_id: $4
  start_command: [claude]
  permissions: default
  pane: {id: ''%4'', pid: 4000004, cmd: claude, cwd: /abs/demo/app}
  claude_session_id_own: c-4
  conversations: []
  stores: {}
  worktree: null
  delegate_job_id: null
  parent: null
  last_visible_status: archived
  last_visible_note: null
  exit_status: 0
  created_at: ''2026-11-15T12:00:00Z''
  created_at_epoch: 1794744000
  resumed_at: null
  resume_count: 0
  resume_tier: null
  stopped_at: ''2026-11-15T12:01:00Z''
  stopped_at_epoch: 1794744060
  stop_reason: manual_stop
  terminated_at: null
  terminated_at_epoch: null
  termination_mode: graceful
  last_action: {by: user, verb: test, at_epoch: 1794744060}
  version: 3
');
CREATE INDEX log_by_session ON log(session_id, seq);
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA user_version=1;
