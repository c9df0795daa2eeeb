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
INSERT INTO "log" VALUES(1,1794744000.0,'user','import',NULL,NULL,NULL,'{"sessions":3}');
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('extra','{"owner":"godopu"}');
INSERT INTO "meta" VALUES('file','[2187720,2053,1794741184099127803]');
INSERT INTO "meta" VALUES('head','"# Kept by mam, safe to edit: `mam log` shows what was taken in. Comments stay as long as the session they stand in does not change.\n# agent sessions of the lab\nagent_identities:\n  agy:\n    conversation_id: 5f0e1d2c-3b4a-4968-8776-655443322110\n    project_cwd: /home/lab/paper-pdf2md\n  claude:\n    project_cwd: /home/lab/landing-page\n    session_id: 87dc548e-0000-4000-8000-000000000000\nowner: godopu  # not one of the system''s own keys\n"');
INSERT INTO "meta" VALUES('identities','{"agy":{"conversation_id":"5f0e1d2c-3b4a-4968-8776-655443322110","project_cwd":"/home/lab/paper-pdf2md"},"claude":{"project_cwd":"/home/lab/landing-page","session_id":"87dc548e-0000-4000-8000-000000000000"}}');
INSERT INTO "meta" VALUES('identities_written','{"agy":{"conversation_id":"5f0e1d2c-3b4a-4968-8776-655443322110","project_cwd":"/home/lab/paper-pdf2md"},"claude":{"project_cwd":"/home/lab/landing-page","session_id":"87dc548e-0000-4000-8000-000000000000"}}');
INSERT INTO "meta" VALUES('tail','"updated_at: ''2026-11-15T12:00:00Z''\n# end of sessions\n"');
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
INSERT INTO "sessions" VALUES('s_f06b1bc1','lab-landing-page-creator-claude','running',1,0,'{"id":"s_f06b1bc1","name":"lab-landing-page-creator-claude","agent":"claude","role":null,"workspace":"/home/lab/landing-page","status":"running","resumable":false,"tmux_server":"multi-agent-canary","tmux_session_id":null,"start_command":["claude","--model","opus","first prompt"],"permissions":"default","pane":{"cmd":"claude","cwd":"/home/lab/landing-page","mcp_attachments":[],"pid":4201132},"claude_session_id_own":null,"conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":"running","last_visible_note":null,"exit_status":null,"created_at":null,"created_at_epoch":null,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":null,"stopped_at_epoch":null,"stop_reason":null,"terminated_at":null,"terminated_at_epoch":null,"termination_mode":null,"last_action":{"by":"unknown","verb":"import","at_epoch":0},"version":0}','{"claude_session_id_own":null,"delegate_job_id":null,"last_visible_status":"running","name":"lab-landing-page-creator-claude","pane":{"cmd":"claude","cwd":"/home/lab/landing-page","mcp_attachments":[],"pid":4201132},"start_command":"claude --model opus ''first prompt''","status":"running","tmux_server":"multi-agent-canary"}','- claude_session_id_own: null
  delegate_job_id: null
  last_visible_status: running
  name: lab-landing-page-creator-claude
  pane:
    cmd: claude
    cwd: /home/lab/landing-page
    mcp_attachments: []
    pid: 4201132
  start_command: claude --model opus ''first prompt''
  status: running
  tmux_server: multi-agent-canary
');
INSERT INTO "sessions" VALUES('s_f5ef33d8','lab-paper-pdf2md-creator-agy','stopped',2,1,'{"id":"s_f5ef33d8","name":"lab-paper-pdf2md-creator-agy","agent":"agy","role":null,"workspace":"/home/lab/paper-pdf2md","status":"stopped","resumable":true,"tmux_server":"default","tmux_session_id":null,"start_command":["agy"],"permissions":"default","pane":{"cmd":"agy","cwd":"/home/lab/paper-pdf2md","pid":4201133},"agy_conversation_id_own":"5f0e1d2c-3b4a-4968-8776-655443322110","conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":null,"last_visible_note":null,"exit_status":null,"created_at":null,"created_at_epoch":null,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":"2026-06-19T23:41:05Z","stopped_at_epoch":1781912465,"stop_reason":"api_error","terminated_at":null,"terminated_at_epoch":null,"termination_mode":"graceful","last_action":{"by":"unknown","verb":"import","at_epoch":0},"version":1,"favourite":5}',NULL,'- id: s_f5ef33d8
  name: lab-paper-pdf2md-creator-agy
  agent: agy
  role: null
  workspace: /home/lab/paper-pdf2md
  status: stopped
  resumable: true
  tmux_server: default
  tmux_session_id: null
  start_command: [agy]
  permissions: default
  pane: {cmd: agy, cwd: /home/lab/paper-pdf2md, pid: 4201133}
  agy_conversation_id_own: 5f0e1d2c-3b4a-4968-8776-655443322110
  conversations: []
  stores: {}
  worktree: null
  delegate_job_id: null
  parent: null
  last_visible_status: null
  last_visible_note: null
  exit_status: null
  created_at: null
  created_at_epoch: null
  resumed_at: null
  resume_count: 0
  resume_tier: null
  stopped_at: ''2026-06-19T23:41:05Z''
  stopped_at_epoch: 1781912465
  stop_reason: api_error
  terminated_at: null
  terminated_at_epoch: null
  termination_mode: graceful
  last_action: {by: unknown, verb: import, at_epoch: 0}
  version: 1
  favourite: 5
');
INSERT INTO "sessions" VALUES('s_6878e406','lab-old-creator-claude','terminated',3,0,'{"id":"s_6878e406","name":"lab-old-creator-claude","agent":"claude","role":null,"workspace":"/home/lab/old","status":"terminated","resumable":false,"tmux_server":"default","tmux_session_id":null,"start_command":["claude"],"permissions":"default","pane":{"cmd":"claude","cwd":"/home/lab/old","mcp_attachments":[],"pid":4201134},"claude_session_id_own":"87dc548e-0000-4000-8000-000000000000","conversations":[],"stores":{},"worktree":null,"delegate_job_id":null,"parent":null,"last_visible_status":null,"last_visible_note":null,"exit_status":null,"created_at":null,"created_at_epoch":null,"resumed_at":null,"resume_count":0,"resume_tier":null,"stopped_at":null,"stopped_at_epoch":null,"stop_reason":null,"terminated_at":"2026-06-20T08:00:00Z","terminated_at_epoch":1781942400,"termination_mode":"purge","last_action":{"by":"unknown","verb":"import","at_epoch":0},"version":0}','{"claude_session_id_own":"87dc548e-0000-4000-8000-000000000000","name":"lab-old-creator-claude","pane":{"cmd":"claude","cwd":"/home/lab/old","mcp_attachments":[],"pid":4201134},"resumable":false,"start_command":"claude","status":"terminated","terminated_at":"2026-06-20T08:00:00Z","terminated_at_epoch":1781942400,"termination_mode":"purge"}','- claude_session_id_own: 87dc548e-0000-4000-8000-000000000000
  name: lab-old-creator-claude
  pane: {cmd: claude, cwd: /home/lab/old, mcp_attachments: [], pid: 4201134}
  resumable: false
  start_command: claude
  status: terminated
  terminated_at: 2026-06-20T08:00:00Z
  terminated_at_epoch: 1781942400
  termination_mode: purge
');
CREATE INDEX log_by_session ON log(session_id, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('log',1);
COMMIT;
PRAGMA user_version=1;
