"""Reading the database of opencode, also a damaged one, without ever writing to it."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from mam.adapters.agents.opencode import conversation_database
from mam.adapters.agents.opencode.kind import Opencode

KIND = Opencode()
ONE, TWO, SUB = "ses_one000001", "ses_two000002", "ses_sub000003"
# The tables as 1.18.33 creates them, with only the columns that mam reads.
TABLES = """
create table session (id text primary key, parent_id text, directory text not null, title text not null,
  tokens_input integer default 0 not null, tokens_output integer default 0 not null,
  tokens_reasoning integer default 0 not null, tokens_cache_read integer default 0 not null,
  tokens_cache_write integer default 0 not null, time_updated integer not null, time_archived integer);
create table message (id text primary key, session_id text not null, time_created integer not null,
  data text not null);
create table part (id text primary key, message_id text not null, session_id text not null,
  data text not null);
"""


class Store:
    """A folder with a database."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "opencode" / "opencode.db"
        self.path.parent.mkdir(parents=True)
        self.stores = {"XDG_DATA_HOME": str(folder)}
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.executescript(f"pragma journal_mode=wal;{TABLES}")
        self.count = 0

    def add(self, conversation, directory="/w", **facts):
        row = {"id": conversation, "directory": directory, "title": "t", "time_updated": 1} | facts
        names = ",".join(row)
        marks = ",".join("?" * len(row))
        self.connection.execute(f"insert into session ({names}) values ({marks})", list(row.values()))

    def say(self, conversation, role, *texts, at=None, raw=None, **facts):
        self.count += 1
        at = self.count * 1000 if at is None else at
        data = {"role": role, "time": {"created": at, "completed": at}} | facts
        name = f"msg_{self.count:04}"
        self.connection.execute(
            "insert into message values (?, ?, ?, ?)",
            (name, conversation, at, json.dumps(data) if raw is None else raw),
        )
        for number, text in enumerate(texts):
            part = text if isinstance(text, dict) else {"type": "text", "text": text}
            self.connection.execute(
                "insert into part values (?, ?, ?, ?)",
                (f"prt_{self.count:04}{number}", name, conversation, json.dumps(part)),
            )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "data")
    yield store
    store.connection.close()


def answer(**facts):
    tokens = {"input": 11, "output": 7, "reasoning": 0, "cache": {"read": 5, "write": 2}}
    return {"finish": "stop", "providerID": "fake", "modelID": "m", "tokens": tokens} | facts


class TestStores:
    @pytest.mark.parametrize(
        ("environ", "path"),
        [
            ({"HOME": "/h"}, "/h/.local/share/opencode/opencode.db"),
            ({"HOME": "/h", "XDG_DATA_HOME": "/d"}, "/d/opencode/opencode.db"),
            ({"HOME": "/h", "XDG_DATA_HOME": "d"}, "/h/.local/share/opencode/opencode.db"),
            ({"HOME": "/h", "XDG_DATA_HOME": "/d", "OPENCODE_DB": "mine.db"}, "/d/opencode/mine.db"),
            ({"HOME": "/h", "OPENCODE_DB": "/x/mine.db"}, "/x/mine.db"),
            ({"HOME": "/h", "OPENCODE_DB": ":memory:"}, None),
        ],
    )
    def test_the_path_of_the_database(self, environ, path) -> None:
        assert conversation_database.database(KIND.stores(environ)) == path


class TestConversations:
    def test_a_conversation_is_on_disk_once_it_has_a_message(self, store) -> None:
        store.add(ONE)
        assert KIND.on_disk(ONE, "/w", store.stores) is False
        store.say(ONE, "user", "hello")
        assert KIND.on_disk(ONE, "/w", store.stores) is True
        assert KIND.on_disk(TWO, "/w", store.stores) is False

    def test_the_conversations_of_a_directory_newest_first(self, store) -> None:
        store.add(ONE, time_updated=1)
        store.add(TWO, time_updated=2)
        store.add(SUB, time_updated=3, parent_id=ONE)
        store.add("ses_empty00001", time_updated=4)
        store.add("ses_else000001", "/elsewhere", time_updated=5)
        store.add("ses_archive001", time_updated=6, time_archived=7)
        store.add("../../etc", time_updated=8)
        for conversation in (ONE, TWO, SUB, "ses_else000001", "ses_archive001", "../../etc"):
            store.say(conversation, "user", "hello")
        assert KIND.conversations("/w", store.stores) == [TWO, ONE]

    def test_no_database_is_no_conversation(self, tmp_path) -> None:
        stores = {"XDG_DATA_HOME": str(tmp_path)}
        assert KIND.on_disk(ONE, "/w", stores) is False
        assert KIND.conversations("/w", stores) == []
        assert KIND.read_transcript(ONE, "/w", stores, 5) is None
        assert KIND.transcript_size(ONE, stores) == 0

    @pytest.mark.parametrize("stores", [{}, {"XDG_DATA_HOME": "/d", "OPENCODE_DB": ":memory:"}])
    def test_without_a_path_the_answer_is_unknown(self, stores) -> None:
        assert KIND.on_disk(ONE, "/w", stores) is None
        assert KIND.has_submitted("x", ONE, stores, 0) is None

    @pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be read as one" * 50])
    def test_a_file_that_is_no_database_is_unknown(self, tmp_path, content) -> None:
        (tmp_path / "opencode").mkdir()
        (tmp_path / "opencode" / "opencode.db").write_bytes(content)
        stores = {"XDG_DATA_HOME": str(tmp_path)}
        assert KIND.on_disk(ONE, "/w", stores) is None
        assert KIND.conversations("/w", stores) == []
        assert KIND.read_transcript_evidence(ONE, "/w", stores) == []
        assert KIND.read_transcript(ONE, "/w", stores, 5) is None
        assert KIND.has_submitted("x", ONE, stores, 0) is None

    def test_a_writer_does_not_block_the_reading(self, store) -> None:
        store.add(ONE)
        store.say(ONE, "user", "hello")
        store.connection.execute("begin immediate")
        store.say(ONE, "user", "not yet")
        assert KIND.on_disk(ONE, "/w", store.stores) is True
        assert KIND.has_submitted("not yet", ONE, store.stores, 0) is False
        store.connection.execute("commit")
        assert KIND.has_submitted("not yet", ONE, store.stores, 0) is True

    def test_a_locked_database_is_unknown(self, store) -> None:
        store.add(ONE)
        store.connection.execute("pragma locking_mode=exclusive")
        store.say(ONE, "user", "hello")
        assert KIND.on_disk(ONE, "/w", store.stores) is None

    def test_reading_creates_no_files(self, store) -> None:
        store.add(ONE)
        store.say(ONE, "user", "hello")
        store.connection.close()
        before = sorted(path.name for path in store.path.parent.iterdir())
        content = store.path.read_bytes()
        assert KIND.on_disk(ONE, "/w", store.stores) is True
        assert sorted(path.name for path in store.path.parent.iterdir()) == before
        assert store.path.read_bytes() == content


class TestPurge:
    def test_opencode_deletes_one_conversation_and_leaves_no_lock(self, tmp_path) -> None:
        program = tmp_path / "a program"
        program.write_text(
            '#!/bin/sh\necho "$@"\nmkdir -p "$XDG_STATE_HOME/locks"\necho "$XDG_STATE_HOME"\nexit 7\n',
            encoding="utf-8",
        )
        program.chmod(0o700)
        argv = KIND.purge_command(ONE, str(program))
        environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "XDG_STATE_HOME": "/mine"}
        result = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)
        arguments, state = result.stdout.splitlines()
        assert arguments == f"session delete {ONE} --pure"
        assert Path(state).parent == tmp_path
        assert (result.returncode, result.stderr) == (7, "")
        assert [path.name for path in tmp_path.iterdir()] == ["a program"]
        assert KIND.purge_paths(ONE, "/w", {}) == []

    @pytest.mark.parametrize("conversation", ["", "--all", "ses_", f"{ONE} x", f"{ONE}\n"])
    def test_only_an_id_is_passed(self, conversation) -> None:
        assert KIND.purge_command(conversation, "/bin/opencode") is None


class TestTurn:
    def state(self, store):
        return [
            (evidence.source, evidence.state, evidence.at)
            for evidence in KIND.read_transcript_evidence(ONE, "/w", store.stores)
        ]

    @pytest.mark.parametrize(
        ("facts", "is_over"),
        [
            ({"finish": "stop"}, True),
            ({"finish": "length"}, True),
            ({"error": {"name": "MessageAbortedError"}}, True),
            # This looks the same after a refused tool and in the middle of a turn.
            ({"finish": "tool-calls"}, False),
            ({"finish": "unknown"}, False),
            ({"finish": 7}, False),
            ({}, False),
            ({"finish": "stop", "time": {"created": 5}}, False),
            ({"finish": "stop", "time": {"completed": "now"}}, False),
            ({"finish": "stop", "time": []}, False),
        ],
    )
    def test_the_end_of_the_turn_by_the_last_answer(self, store, facts, is_over) -> None:
        store.say(ONE, "user", "hello")
        store.say(ONE, "assistant", "pong", **facts)
        assert self.state(store) == ([("transcript", "idle", 2.0)] if is_over else [])

    def test_a_prompt_after_the_answer_shows_no_activity(self, store) -> None:
        store.say(ONE, "assistant", "pong", finish="stop")
        store.say(ONE, "user", "hello")
        assert self.state(store) == []

    @pytest.mark.parametrize("raw", ["", "{", "[]", "null", "[" * 100_000])
    def test_a_damaged_message_is_ignored(self, store, raw) -> None:
        store.say(ONE, "assistant", raw=raw)
        assert self.state(store) == []


class TestSubmitted:
    def test_only_a_later_message_of_the_user_counts(self, store) -> None:
        store.say(ONE, "user", "hello")
        before = KIND.transcript_size(ONE, store.stores)
        assert KIND.has_submitted("hello", ONE, store.stores, before) is False
        store.say(ONE, "assistant", "hello")
        store.say(TWO, "user", "hello")
        assert KIND.has_submitted("hello", ONE, store.stores, before) is False
        store.say(ONE, "user", {"type": "text", "text": "hello", "synthetic": True})
        assert KIND.has_submitted("hello", ONE, store.stores, before) is False
        store.say(ONE, "user", {"type": "file"}, "hello")
        assert KIND.has_submitted("hello", ONE, store.stores, before) is True
        assert KIND.count_submitted("hello", ONE, store.stores, before) == 1
        assert KIND.count_submitted("hello", ONE, store.stores, 0) == 2

    def test_a_long_prompt_has_a_space_after_it(self, store) -> None:
        store.say(ONE, "user", "one\ntwo\nthree ")
        assert KIND.has_submitted("one\ntwo\nthree", ONE, store.stores, 0) is True

    def test_before_the_first_message_nothing_is_proven(self, store) -> None:
        assert KIND.has_submitted("hello", "", store.stores, 0) is False
        assert KIND.has_submitted("hello", "", {}, 0) is False


class TestTranscript:
    def test_turns_model_and_tokens(self, store) -> None:
        store.add(
            ONE,
            tokens_input=30,
            tokens_output=14,
            tokens_reasoning=1,
            tokens_cache_read=5,
            tokens_cache_write=2,
        )
        store.say(ONE, "user", "first")
        store.say(ONE, "assistant", "step", **answer(finish="tool-calls"))
        store.say(ONE, "assistant", "done", **answer(modelID="other"))
        store.say(ONE, "user", "second", {"type": "text", "text": "a file", "synthetic": True})
        store.say(ONE, "assistant", error={"name": "MessageAbortedError"}, tokens={"input": 0, "cache": {}})
        transcript = KIND.read_transcript(ONE, "/w", store.stores, 10)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("user", "first"),
            ("assistant", "step\ndone"),
            ("user", "second"),
        ]
        assert transcript.turns[0].at.startswith("1970-01-01T00:00:01")
        assert (transcript.model, transcript.tokens_in, transcript.tokens_out) == ("fake/other", 37, 15)
        assert (transcript.context, transcript.window) == (18, None)
        assert [turn.text for turn in KIND.read_transcript(ONE, "/w", store.stores, 1).turns] == ["second"]
        assert KIND.read_transcript(ONE, "/w", store.stores, 0).turns == []

    def test_damaged_rows_are_left_out(self, store) -> None:
        store.add(ONE, tokens_input=-1)
        store.say(ONE, "user", "first", {"type": "text", "text": 7}, {"type": "text"})
        store.say(ONE, "assistant", "lost", raw="{")
        store.connection.execute("insert into part values ('prt_x', 'msg_0001', ?, '{')", (ONE,))
        store.connection.execute("insert into part values ('prt_y', 'msg_0001', ?, x'ff')", (ONE,))
        store.say(ONE, "assistant", "second", tokens=[], time=None)
        transcript = KIND.read_transcript(ONE, "/w", store.stores, 10)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("user", "first"),
            ("assistant", "second"),
        ]
        assert (transcript.model, transcript.tokens_in, transcript.context) == (None, None, None)

    def test_of_a_long_conversation_only_the_end_is_read(self, store) -> None:
        store.add(ONE)
        for number in range(500):
            store.say(ONE, "user", f"number {number}")
        transcript = KIND.read_transcript(ONE, "/w", store.stores, 1000)
        assert len(transcript.turns) == 200
        assert transcript.turns[-1].text == "number 499"

    def test_an_enormous_part_is_left_out(self, store, monkeypatch) -> None:
        monkeypatch.setattr(conversation_database, "_LONGEST", 1000)
        store.add(ONE)
        store.say(ONE, "user", "x" * 2000, "short")
        assert [turn.text for turn in KIND.read_transcript(ONE, "/w", store.stores, 5).turns] == ["short"]


# The tokens of one answer, as its conversation has them.
SUM = {"tokens_input": 11, "tokens_output": 7, "tokens_cache_read": 5, "tokens_cache_write": 2}


class TestTokenCounts:
    def counts(self, store):
        counts = KIND.read_transcript(ONE, "/w", store.stores, 0).token_counts
        if counts is None:
            return None
        names = ("model", "input", "output", "cache_read", "cache_write")
        return [tuple(getattr(count, name) for name in names) for count in counts]

    def test_each_answer_counts_by_its_own_model(self, store) -> None:
        store.add(ONE, **{name: 2 * number for name, number in SUM.items()})
        store.add(TWO)
        store.say(ONE, "user", "first", tokens={"input": 1000})
        store.say(ONE, "assistant", "one", **answer())
        store.say(ONE, "assistant", "two", **answer(providerID="anthropic", modelID="claude-opus-5"))
        store.say(ONE, "assistant", error={}, tokens={"input": 0, "cache": {}})
        store.say(TWO, "assistant", "elsewhere", **answer())
        counts = self.counts(store)
        assert counts[:2] == [("fake/m", 11, 7, 5, 2), ("anthropic/claude-opus-5", 11, 7, 5, 2)]
        assert counts[2:] == [(None, 0, 0, 0, 0)]
        transcript = KIND.read_transcript(ONE, "/w", store.stores, 0)
        assert (transcript.tokens_in, transcript.tokens_cache_read, transcript.tokens_cache_write) == (
            36,
            10,
            4,
        )

    def test_answers_that_are_not_all_are_unknown(self, store) -> None:
        store.add(ONE, **{**SUM, "tokens_reasoning": 1})
        store.say(ONE, "assistant", "one", **answer())
        assert self.counts(store) is None

    @pytest.mark.parametrize(
        "raw",
        [
            b"{",
            b"\xff",
            "[]",
            json.dumps({"role": "assistant", **answer(tokens={"input": "11", "output": 7})}),
            json.dumps({"role": "assistant", **answer(tokens={"input": 11.0, "output": 7})}),
            json.dumps({"role": "assistant", **answer(tokens={"input": [], "output": 7})}),
        ],
    )
    def test_damaged_answers_make_the_cost_unknown(self, store, raw) -> None:
        store.add(ONE, **{name: 2 * number for name, number in SUM.items()})
        store.say(ONE, "assistant", "one", **answer())
        store.say(ONE, "assistant", "two", raw=raw)
        assert self.counts(store) is None

    def test_of_a_long_conversation_all_answers_count(self, store) -> None:
        store.add(ONE, **{name: 300 * number for name, number in SUM.items()})
        for _ in range(300):
            store.say(ONE, "assistant", "one", **answer())
        assert len(self.counts(store)) == 300
