"""Only values of a foreign database cross over, and only those that mam could have written."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.store.making import NOON, new_row

from mam.adapters.kanban.mam_board import MamBoard
from mam.adapters.store import checked_copy, database, schema
from mam.adapters.store.rows_and_log import Transaction
from mam.adapters.store.tables import jobs, messages, tasks, teams
from mam.core import job_event, message_rules, record_limits, task_format
from mam.core.errors import Refused, RegistryCorrupt, SchemaTooNew
from mam.core.job_file_format import DEFAULTS, parse_record
from mam.core.session_row import with_all_fields

SESSION = "s_1f00ab42"
ROW = with_all_fields(
    {
        "id": SESSION,
        "name": "one",
        "agent": "practice",
        "workspace": "/w",
        "status": "running",
        "version": 3,
        "own": {"key": ["of", "a", "person"]},
    }
)
EVENT = {
    "schema_version": 1,
    "seq": 1,
    "job_id": "00ab12cd",
    "event": "started",
    "timestamp": "2026-11-16T08:57:29Z",
    "detail": "",
    "data": {"attempt": 1},
}


def dumped(value):
    return json.dumps(value)


def fresh(path):
    return database.connect(str(path), schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True)


def insert(connection, table, **values):
    names = ", ".join(f'"{name}"' for name in values)
    connection.execute(
        f"INSERT INTO {table}({names}) VALUES({', '.join('?' * len(values))})", tuple(values.values())
    )


def session(**changes):
    row = {**ROW, **changes}
    return {
        "id": row["id"],
        "name": row["name"],
        "status": row["status"],
        "position": 1,
        "version": 3,
        "data": dumped(row),
        "written": "x" * 5000,
        "block": "y" * 5000,
    }


def message(number, **changes):
    return {
        "id": f"m_{number}",
        "session_id": SESSION,
        "sender": "user",
        "text": "hello",
        "is_command": 0,
        "wanted": "ready",
        "state": "held",
        "attempts": 0,
        "created_at": 1.0,
        "changed_at": 1.0,
        **changes,
    }


def job(**changes):
    data = {**DEFAULTS, "broker": {"url": "mqtt://x"}, "owner": {"pid": 1}, "script": {"pid": 1}}
    return {
        "id": "00ab12cd",
        "status": "running",
        "attempt": 1,
        "last_seq": 1,
        "created_at": 1.0,
        "updated_at": 1.0,
        "last_event_at": 1.0,
        "data": dumped({**data, **changes}),
    }


@pytest.fixture
def source(tmp_path):
    connection = fresh(tmp_path / "source.db")
    yield connection
    connection.close()


@pytest.fixture
def copied(tmp_path, source):
    """Copy the source; return the new database and the report."""
    targets = []

    def copy(job_facts=None):
        target = fresh(tmp_path / "target.db")
        targets.append(target)
        return target, checked_copy.copy_rows(source, target, job_facts or {})

    yield copy
    for target in targets:
        target.close()


def rows(connection, table, fields="*"):
    return connection.execute(f"SELECT {fields} FROM {table}").fetchall()


def test_sound_rows_cross_over(source, copied) -> None:
    insert(source, "sessions", **session())
    insert(source, "messages", **message(1, owner='{"pid": 1}'))
    insert(source, "jobs", **job(message_id="m_00ab12cd", began=2.0, args=["-x"]))
    insert(source, "job_prompts", job_id="00ab12cd", prompt="do it")
    insert(
        source,
        "job_events",
        number=7,
        job_id="00ab12cd",
        attempt=1,
        seq=1,
        name="started",
        at=1.0,
        payload=dumped(EVENT),
    )
    insert(source, "log", seq=9, at=1.0, actor="user", verb="create", detail="{}")
    insert(source, "meta", key="identities", value=dumped({"claude": {"session_id": "abc"}}))
    insert(source, "meta", key="root_id", value='"theirs"')
    insert(source, "meta", key="place", value="{}")
    insert(source, "intents", session_id=SESSION, name="one", verb="create", owner="{}", at=1.0, data="{}")
    insert(source, "outbox", job_id="00ab12cd", topic="t", payload="p", retain=0, created_at=1.0)
    target, report = copied({"broker": None, "root": "/here"})
    assert report.left_out == []
    assert report.taken["sessions"] == report.taken["messages"] == report.taken["jobs"] == 1
    assert report.dropped == {"intents": 1, "outbox": 1}
    ((data, written, block),) = rows(target, "sessions", "data, written, block")
    assert (json.loads(data), written, block) == (ROW, None, None)
    assert rows(target, "messages", "id, text, state, owner") == [("m_1", "hello", "held", None)]
    facts = json.loads(rows(target, "jobs", "data")[0][0])
    assert (facts["broker"], facts["root"], facts["message_id"], facts["args"]) == (
        *(None, "/here", "m_00ab12cd"),
        ["-x"],
    )
    assert not {"owner", "script"} & facts.keys(), "no process of elsewhere is named"
    assert rows(target, "job_events", "number, name") == [(7, "started")]
    assert rows(target, "log", "seq, verb") == [(9, "create")]
    assert rows(target, "meta") == [
        ("additions", str(len(schema.STATE_ADDITIONS))),
        ("identities", '{"claude":{"session_id":"abc"}}'),
    ]
    assert rows(target, "intents") == rows(target, "outbox") == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: row.update(data="{"),
        lambda row: row.update(data="[" * 100_000),
        lambda row: row.update(data="[]"),
        lambda row: row.update(data=b"\xff\xfe"),
        lambda row: row.update(data=dumped({**ROW, "name": "two"})),
        lambda row: row.update(data=dumped({**ROW, "pane": {"pid": "1"}})),
        lambda row: row.update(data=dumped({**ROW, "agent": "../x"})),
        lambda row: row.update(id="../../x", data=dumped({**ROW, "id": "../../x"})),
        lambda row: row.update(version="many"),
        lambda row: row.update(position=2**62),
        lambda row: row.update(data=dumped({**ROW, "role": "x" * (9 << 20)})),
    ],
)
def test_a_session_that_mam_could_not_have_written_is_left_out(source, copied, spoil) -> None:
    row = session()
    spoil(row)
    insert(source, "sessions", **row)
    target, report = copied()
    assert rows(target, "sessions") == []
    assert (report.left_out_count, report.left_out[0]["table"]) == (1, "sessions")


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../../evil"},
        {"session_id": "one"},
        {"text": b"\xff"},
        {"text": "x" * (2 << 20)},
        {"text": "a\0b"},
        {"state": "typed"},
        {"sender": "a\x1b[31m"},
        {"created_at": "yesterday"},
        {"created_at": 1e300},
        {"created_at": float("inf")},
        {"attempts": -1},
        {"attempts": 1.5},
        {"conversation": "--yolo"},
        {"reason": b"x" * (32 << 20)},
    ],
)
def test_a_message_that_mam_could_not_have_written_is_left_out(source, copied, changes) -> None:
    insert(source, "messages", **message(1, **changes))
    insert(source, "messages", **message(2))
    target, report = copied()
    assert rows(target, "messages", "id") == [("m_2",)]
    assert report.left_out_count == 1


def test_what_was_typed_is_kept_only_in_its_own_form(source, copied) -> None:
    typed = {"text": "hello", "at": 1.0, "conversation": "c", "launch": "l", "attempt": 1}
    insert(source, "messages", **message(1, typed=dumped(typed)))
    insert(source, "messages", **message(2, typed=dumped({**typed, "extra": 1})))
    insert(source, "messages", **message(3, typed=dumped({**typed, "at": "x"})))
    target, _ = copied()
    assert [value and json.loads(value) for (value,) in rows(target, "messages", "typed")] == [
        typed,
        None,
        None,
    ]


def test_the_facts_of_a_job_have_their_types(source, copied) -> None:
    spoiled = {
        "timeout_sec": "1h",
        "round": "x",
        "expected_artifacts": "y",
        "type": "z",
        "began": [],
        "trust": 1,
    }
    insert(source, "jobs", **job(**spoiled))
    target, _ = copied()
    facts = json.loads(rows(target, "jobs", "data")[0][0])
    assert {key: facts.get(key) for key in spoiled} == {
        "timeout_sec": DEFAULTS["timeout_sec"],
        "round": 1,
        "expected_artifacts": [],
        "type": "once",
        "began": None,
        "trust": None,
    }


def test_nothing_of_a_hostile_schema_survives(tmp_path, source, copied) -> None:
    """Triggers, views and generated columns with our names, extra columns, and indexes stay behind."""
    source.executescript("""
        DROP TABLE tasks;
        CREATE VIEW tasks AS SELECT 1 AS seq, 'x' AS role;
        DROP TABLE team_lines;
        CREATE VIRTUAL TABLE team_lines USING fts5(line);
        ALTER TABLE messages ADD COLUMN evil TEXT DEFAULT 'x';
        ALTER TABLE log ADD COLUMN later TEXT GENERATED ALWAYS AS (upper(verb)) VIRTUAL;
        CREATE TABLE extra(value TEXT);
        CREATE TRIGGER fires AFTER INSERT ON messages BEGIN DELETE FROM messages; END;
        DROP TABLE board_links;
        CREATE TABLE board_links(
          parent_id TEXT NOT NULL, child_id TEXT GENERATED ALWAYS AS (parent_id || 'x') STORED
        );
    """)
    source.execute("DROP TRIGGER fires")
    insert(source, "messages", **message(1))
    source.execute("CREATE TRIGGER fires AFTER INSERT ON messages BEGIN DELETE FROM messages; END")
    source.execute("CREATE TRIGGER also AFTER INSERT ON sessions BEGIN SELECT raise(ABORT, 'no'); END")
    source.execute("INSERT INTO board_links(parent_id) VALUES('t_1')")
    target, report = copied()
    clean = fresh(tmp_path / "clean.db")
    schemas = [
        sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())
        for connection in (target, clean)
    ]
    clean.close()
    assert schemas[0] == schemas[1]
    assert rows(target, "messages", "id") == [("m_1",)]
    assert rows(target, "board_links") == []
    left = {(row["table"], row["reason"]) for row in report.left_out}
    assert left == {
        ("tasks", "it is not a table"),
        ("team_lines", "it is not a table"),
        ("board_links", "child_id is missing"),
    }


def test_an_index_that_shows_other_rows_is_not_used(tmp_path, source, copied) -> None:
    source.execute("ALTER TABLE board_comments ADD COLUMN wide TEXT")
    source.execute("CREATE INDEX cover ON board_comments(task_id, author, body, created_at)")
    ((entry,),) = [source.execute("SELECT rootpage FROM sqlite_master WHERE name='cover'").fetchall()]
    (sql,) = source.execute("SELECT sql FROM sqlite_master WHERE name='cover'").fetchone()
    source.execute("PRAGMA writable_schema=ON")
    source.execute("DELETE FROM sqlite_master WHERE name='cover'")
    source.execute("PRAGMA writable_schema=RESET")
    insert(source, "board_comments", task_id="t", author="a", body="b", created_at=1, wide="x" * 1000)
    source.execute("PRAGMA writable_schema=ON")
    insert(
        source,
        "sqlite_master",
        type="index",
        name="cover",
        tbl_name="board_comments",
        rootpage=entry[0],
        sql=sql,
    )
    source.execute("PRAGMA writable_schema=RESET")
    fields = "id, task_id, author, body, created_at"
    assert rows(source, "board_comments", fields) == [], "the index hides the row"
    target, _ = copied()
    assert len(rows(target, "board_comments")) == 1


def test_rows_that_contradict_each_other_are_left_out(source, copied) -> None:
    source.executescript(
        "DROP TABLE messages; CREATE TABLE messages(seq, id, session_id, sender, text, is_command,"
        " wanted, state, attempts, created_at, changed_at)"
    )
    insert(source, "messages", seq=1, **message(1))
    insert(source, "messages", seq=2, **message(1))
    target, report = copied()
    assert len(rows(target, "messages")) == 1
    assert report.left_out == [{"table": "messages", "key": "m_1", "reason": "it contradicts another row"}]


def test_an_older_schema_is_taken(tmp_path, copied, source) -> None:
    source.execute("ALTER TABLE messages DROP COLUMN typed")
    source.execute("ALTER TABLE messages DROP COLUMN reason_code")
    source.execute("DROP TABLE board_runs")
    insert(source, "messages", **message(1))
    target, report = copied()
    assert rows(target, "messages", "id, typed") == [("m_1", None)]
    assert report.left_out == []


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"not a database" * 100, RegistryCorrupt), (None, SchemaTooNew), (b"", None)],
)
def test_what_is_no_database_of_mam_is_refused(tmp_path, content, error) -> None:
    path = tmp_path / "x.db"
    if content is None:
        connection = fresh(path)
        connection.execute("PRAGMA user_version=99")
        connection.close()
    else:
        path.write_bytes(content)
    if error is None:
        checked_copy.check_source(str(path)).close()
        return
    with pytest.raises(error) as refused:
        checked_copy.check_source(str(path))
    assert refused.value.hint


def test_a_damaged_page_is_refused(tmp_path, source) -> None:
    for number in range(200):
        insert(source, "messages", **message(number, text="x" * 500))
    source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = tmp_path / "source.db"
    content = bytearray(path.read_bytes())
    content[-8000:] = b"\x55" * 8000
    broken = tmp_path / "broken.db"
    broken.write_bytes(content)
    with pytest.raises(RegistryCorrupt, match="cannot be taken in"):
        checked_copy.check_source(str(broken))


def test_another_programs_database_is_refused(tmp_path) -> None:
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    with pytest.raises(RegistryCorrupt, match="cannot be taken in"):
        checked_copy.check_source(str(path))


class Recorder:
    """Records texts in every table by the code that verbs use."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        for step in (*schema.STATE_MIGRATIONS, *(step for _, _, step in schema.STATE_ADDITIONS)):
            self.connection.executescript(step)
        self.transaction = Transaction(self.connection, NOON)
        self.board = MamBoard(self, "state.db")
        self.connection.execute("BEGIN")

    def now(self):
        return NOON

    def read(self, work, default):
        return work(self.connection)

    def write(self, work):
        return work(self.connection)

    def session(self, text):
        row = self.transaction.add(new_row(1, last_visible_note=text, own=text))
        self.transaction.put({**row, "more": [text]})

    def log(self, text):
        self.transaction.log("user", "create", None, text, detail=text)

    def message(self, text):
        given_facts = {**message(1, text=message_rules.check_text(text)), "reason": text}
        added = messages.add(self.transaction, {**given_facts, "conversation": None})
        messages.update(self.transaction, added.id, reason=text)

    def job(self, text):
        job = jobs.add(self.transaction, "00ab12cd", message_rules.check_text(text), dict(DEFAULTS))
        jobs.update(self.transaction, job, data={"terminal_detail": text})

    def job_of_the_original_system(self, text):
        file = {"schema_version": 1, "job_id": "00ab12cd", "status": "running", "prompt": text}
        record = parse_record({**file, "agent": text, "reviewer": text})
        jobs.add(self.transaction, "00ab12cd", record["prompt"], {"agent": record["agent"]})

    def job_event(self, text):
        data = {"words": text, text: 1}
        job_event.check_data(data)
        event = job_event.make("00ab12cd", "progress", seq=1, attempt=1, detail=text, data=data, timestamp="")
        jobs.add_entry(self.transaction, "00ab12cd", "progress", event, attempt=1)

    def task(self, text):
        task = tasks.add(self.transaction, role="dev", text=task_format.parse_text(text), by="user")
        tasks.finish(self.transaction, task.seq, task_format.parse_result(text), None)

    def role_of_a_task(self, text):
        tasks.add(self.transaction, role=task_format.parse_role(text), text="x", by="user")

    def team(self, text):
        team = "20261115-team-00aa"
        teams.add(self.transaction, id=team, name=text, server="mam-none", layout="tiled", by=text)
        teams.note(self.transaction, team, "m_1", text)
        facts = {"team_id": team, "session_id": SESSION, "name": "a", "role": "dev", "colour": "red"}
        member = teams.add_member(
            self.transaction, **facts, name_source="auto", workspace=text, state="active", conversation=text
        )
        teams.update(self.transaction, member, words=[{"id": "m_1", "text": text}], report_id=text)

    def card(self, text):
        self.board.create(text)

    def body_of_a_card(self, text):
        self.board.create("card", body=text)

    def key_of_a_card(self, text):
        self.board.create("card", key=text)

    def author_of_a_card(self, text):
        self.board.create("card", created_by=text)

    def goal_of_a_card(self, text):
        self.board.create("card", assignee=text)

    def place_of_a_card(self, text):
        self.board.create("card", workspace=f"/{text}")

    def branch_of_a_card(self, text):
        self.board.create("card", workspace_kind="worktree", branch=text)

    def skills_of_a_card(self, text):
        self.board.create("card", skills=[text])

    def work_on_a_card(self, text):
        card = self.board.create("card").id
        self.board.comment(card, "user", text)
        self.board.comment(card, text, "words")
        self.board.claim(card, text)
        self.board.heartbeat(card, text, text)
        self.board.release(card, text, text)
        self.board.block(card, text)

    def end_of_a_card(self, text):
        card = self.board.create("card").id
        self.board.claim(card, "user")
        self.board.complete(card, text)

    def misfits(self):
        """Return the rows that a restore would leave out."""
        found = []
        for table in checked_copy.TABLES:
            expected = checked_copy.columns(self.connection, table)
            names = [name for name in expected if name not in checked_copy.SKIPPED.get(table, ())]
            for values in self.connection.execute(f"SELECT {', '.join(names)} FROM {table}"):
                row = dict(zip(names, values, strict=True))
                try:
                    checked_copy.check_row(table, row, {name: expected[name] for name in names})
                except checked_copy.Unfit as error:
                    found.append((table, str(error)))
        return found


RECORDED = [
    name for name in vars(Recorder) if name[0] != "_" and name not in ("now", "read", "write", "misfits")
]
LENGTHS = (record_limits.LONGEST_WORD, record_limits.LONGEST_WORD + 1, 200_000)
TEXTS = st.one_of(
    st.text(max_size=50),
    st.sampled_from(["\0", "nul\0here", "\x85", "\n", "-x", *("k" * length for length in LENGTHS)]),
)


def record(what: str, text: str) -> None:
    recorder = Recorder()
    try:
        getattr(recorder, what)(text)
    except Refused as error:
        assert error.exit_code in (1, 64)
    assert recorder.misfits() == []
    recorder.connection.close()


@pytest.mark.parametrize("what", RECORDED)
@given(text=TEXTS)
def test_whatever_mam_records_comes_back(what, text) -> None:
    record(what, text)


@pytest.mark.parametrize("what", RECORDED)
@pytest.mark.parametrize("character", ["x", "\1"])
def test_nothing_is_recorded_that_is_too_long_to_come_back(what, character) -> None:
    """A control character takes six in a document."""
    record(what, character * (record_limits.LONGEST_TEXT + (character == "x")))


@pytest.mark.parametrize("field", ["max_runtime", "max_retries", "goal_max_turns"])
@pytest.mark.parametrize("number", [2**53, -(2**53), 2**64, 10**5000, 1e300, float("nan")], ids=range(6))
def test_a_number_that_would_not_come_back_is_refused(field, number) -> None:
    recorder = Recorder()
    with pytest.raises(Refused, match="out of range"):
        recorder.board.create("card", **{field: number})
    recorder.connection.close()
