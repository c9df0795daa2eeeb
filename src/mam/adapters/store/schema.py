"""The tables of a root's state and of the user state, as lists of migrations.

A released migration never changes: a database of an older mam runs the migrations that it lacks.
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
    """
CREATE TABLE messages(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  text TEXT NOT NULL,
  is_command INTEGER NOT NULL,
  wanted TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  evidence TEXT,
  carrier TEXT,
  attempts INTEGER NOT NULL,
  owner TEXT,
  before INTEGER,
  created_at REAL NOT NULL,
  changed_at REAL NOT NULL
);
CREATE INDEX messages_by_session ON messages(session_id, state);
""",
    # The board: the tables of Hermes 0.19 under other names, so that the same statements work for both.
    """
CREATE TABLE board_tasks(
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  body TEXT,
  assignee TEXT,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 0,
  created_by TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  workspace_kind TEXT NOT NULL DEFAULT 'scratch',
  workspace_path TEXT,
  claim_lock TEXT,
  claim_expires INTEGER,
  result TEXT,
  idempotency_key TEXT,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  worker_pid INTEGER,
  max_runtime_seconds INTEGER,
  last_heartbeat_at INTEGER,
  current_run_id INTEGER,
  current_step_key TEXT,
  max_retries INTEGER,
  goal_mode INTEGER NOT NULL DEFAULT 0,
  goal_max_turns INTEGER,
  block_kind TEXT,
  block_recurrences INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE board_comments(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL,
  author TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX board_comments_by_task ON board_comments(task_id, id);
CREATE TABLE board_events(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL,
  run_id INTEGER,
  kind TEXT NOT NULL,
  payload TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX board_events_by_task ON board_events(task_id, kind);
CREATE TABLE board_runs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL,
  profile TEXT,
  step_key TEXT,
  status TEXT NOT NULL,
  claim_lock TEXT,
  claim_expires INTEGER,
  worker_pid INTEGER,
  max_runtime_seconds INTEGER,
  last_heartbeat_at INTEGER,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT,
  summary TEXT,
  metadata TEXT,
  error TEXT
);
CREATE INDEX board_runs_by_task ON board_runs(task_id);
CREATE TABLE board_links(
  parent_id TEXT NOT NULL,
  child_id TEXT NOT NULL,
  PRIMARY KEY(parent_id, child_id)
) WITHOUT ROWID;
""",
    # Entries that are only in the log have the number 0; a terminal event may have any number.
    """
CREATE TABLE jobs(
  id TEXT PRIMARY KEY,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  ended_seq INTEGER,
  session_id TEXT,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  last_event_at REAL NOT NULL,
  data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_by_status ON jobs(status);
CREATE INDEX jobs_by_session ON jobs(session_id);
CREATE TABLE job_prompts(job_id TEXT PRIMARY KEY, prompt TEXT NOT NULL);
CREATE TABLE job_events(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  signature TEXT,
  at REAL NOT NULL,
  payload TEXT NOT NULL
);
CREATE INDEX job_events_by_job ON job_events(job_id, number);
CREATE UNIQUE INDEX job_events_once ON job_events(job_id, attempt, seq)
  WHERE seq > 0 AND name NOT IN ('completed', 'error');
CREATE TABLE outbox(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  payload TEXT NOT NULL,
  retain INTEGER NOT NULL,
  created_at REAL NOT NULL,
  published_at REAL
);
CREATE INDEX outbox_waiting ON outbox(published_at, seq);
CREATE INDEX outbox_by_job ON outbox(job_id, topic, seq);
""",
    # Teams, their members, and the tasks of roles.
    """
CREATE TABLE teams(
  id TEXT PRIMARY KEY,
  name TEXT,
  server TEXT NOT NULL,
  server_pid INTEGER,
  window_id TEXT,
  master_pane TEXT,
  master_id TEXT,
  layout TEXT NOT NULL,
  by TEXT NOT NULL,
  started_at REAL NOT NULL,
  ended_at REAL
) WITHOUT ROWID;
CREATE TABLE members(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  team_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  colour TEXT NOT NULL,
  name_source TEXT NOT NULL,
  pane TEXT,
  window_id TEXT,
  workspace TEXT NOT NULL,
  state TEXT NOT NULL,
  owner TEXT,
  words TEXT,
  conversation TEXT,
  report_id TEXT,
  reported_at REAL,
  spawned_at REAL NOT NULL,
  closed_at REAL
);
CREATE INDEX members_by_team ON members(team_id);
CREATE INDEX members_by_session ON members(session_id);
CREATE TABLE tasks(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  team_id TEXT,
  role TEXT NOT NULL,
  text TEXT NOT NULL,
  status TEXT NOT NULL,
  claimed_by TEXT,
  pane TEXT,
  result TEXT,
  report_id TEXT,
  created_by TEXT NOT NULL,
  created_at REAL NOT NULL,
  claimed_at REAL,
  done_at REAL
);
CREATE INDEX tasks_by_role ON tasks(role, status);
CREATE TABLE team_lines(
  team_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  at REAL NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY(team_id, message_id)
) WITHOUT ROWID;
""",
    """
ALTER TABLE messages ADD COLUMN conversation TEXT;
ALTER TABLE messages ADD COLUMN added TEXT;
""",
    # For every event mam checks whether an event with its number is recorded already.
    """
CREATE INDEX job_events_by_seq ON job_events(job_id, attempt, seq);
""",
)

# Additions do not change the version of the schema, because an older mam may still run beside them: it
# names the columns that it reads and writes. A database that lacks the column gets the addition.
#
# An older mam changes the reason of a message and leaves its code as it was, so a code counts only for the
# change that it was written with. Messages that the older mam had not tried to deliver get their code here.
STATE_ADDITIONS = (
    (
        "messages",
        "reason_code",
        """
ALTER TABLE messages ADD COLUMN reason_code TEXT;
ALTER TABLE messages ADD COLUMN reason_code_at REAL;
UPDATE messages SET reason_code='not_tried', reason_code_at=changed_at WHERE reason='it waits its turn';
""",
    ),
    # What was typed for a message, and how far the transcripts reached when mam last looked for it there. An
    # older mam that types a message again counts the attempt and leaves these as they were.
    (
        "messages",
        "typed",
        """
ALTER TABLE messages ADD COLUMN typed TEXT;
ALTER TABLE messages ADD COLUMN looked TEXT;
""",
    ),
    (
        "board_tasks",
        "skills",
        """
ALTER TABLE board_tasks ADD COLUMN branch_name TEXT;
ALTER TABLE board_tasks ADD COLUMN skills TEXT;
""",
    ),
    (
        "members",
        "unfinished",
        """
ALTER TABLE members ADD COLUMN unfinished INTEGER;
""",
    ),
    # What mam could not work on, with the reason and the version of mam that gave up.
    (
        "set_aside",
        "id",
        """
CREATE TABLE set_aside(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  reason TEXT NOT NULL,
  at REAL NOT NULL,
  version TEXT NOT NULL,
  data TEXT NOT NULL
);
CREATE UNIQUE INDEX set_aside_by_key ON set_aside(kind, key);
""",
    ),
)

USER_MIGRATIONS = (
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
    """
CREATE TABLE started(
  root TEXT NOT NULL,
  session_id TEXT NOT NULL,
  PRIMARY KEY(root, session_id)
) WITHOUT ROWID;
""",
    # Known roots, and what ran in them. `roots` and `started` are those of mam 0.1, by path.
    """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known_roots(
  id TEXT PRIMARY KEY,
  root TEXT NOT NULL,
  registry TEXT NOT NULL,
  state TEXT NOT NULL UNIQUE,
  inode INTEGER NOT NULL,
  is_complete INTEGER NOT NULL,
  seen_at REAL NOT NULL
) WITHOUT ROWID;
ALTER TABLE leases ADD COLUMN root_id TEXT;
CREATE TABLE launches(
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  command TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(root_id, session_id)
) WITHOUT ROWID;
CREATE TABLE launch_secrets(
  digest TEXT PRIMARY KEY,
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  file TEXT NOT NULL,
  at REAL NOT NULL,
  process TEXT
) WITHOUT ROWID;
CREATE TABLE scripts(
  root_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  path TEXT NOT NULL,
  content BLOB NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY(root_id, job_id)
) WITHOUT ROWID;
""",
)

USER_ADDITIONS = (
    # The starts of a resident since one last ran well. The next one does not come before `next_at`.
    (
        "resident_starts",
        "root_id",
        """
CREATE TABLE resident_starts(
  root_id TEXT PRIMARY KEY,
  count INTEGER NOT NULL,
  at REAL NOT NULL,
  next_at REAL NOT NULL
) WITHOUT ROWID;
""",
    ),
)
