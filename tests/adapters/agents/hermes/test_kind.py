"""The kind of Hermes: its launch, the texts that arrive, and its database."""

import sqlite3

import pytest

from mam.adapters.agents.hermes.kind import Hermes
from mam.adapters.agents.kind import Request
from mam.core.errors import NotAllowed, Usage

KIND = Hermes()
# The columns that mam reads, as version 0.19.0 creates them.
SCHEMA = """
create table sessions (id text primary key, source text not null, model text, parent_session_id text,
    started_at real not null, ended_at real, end_reason text, cwd text,
    input_tokens integer default 0, output_tokens integer default 0);
create table messages (id integer primary key autoincrement, session_id text not null, role text not null,
    content text, tool_calls text, timestamp real not null, finish_reason text,
    active integer not null default 1);
"""


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"HERMES_HOME": "/h/.hermes", "HERMES_SESSION_SOURCE": "mam-1"}} | facts
    return KIND.launch(Request(command=["hermes", *args], program="/bin/hermes", **facts))


class TestLaunch:
    def test_the_classic_interface_of_the_home_itself(self) -> None:
        assert launch().argv == ["/bin/hermes", "-p", "default", "chat", "--cli"]
        inside = launch(stores={"HERMES_HOME": "/h/.hermes/profiles/coder"})
        assert inside.argv == ["/bin/hermes", "chat", "--cli"], "the home of a profile needs no argument"

    @pytest.mark.parametrize(
        ("facts", "arguments"),
        [
            ({"conversation": "N"}, []),
            ({"conversation": "N", "resume": True}, ["--resume", "N", "--no-restore-cwd"]),
            ({"permissions": "skip"}, ["--yolo"]),
            ({"model": "some"}, ["--model", "some"]),
        ],
    )
    def test_the_arguments_for_a_request(self, facts, arguments) -> None:
        assert launch(**facts).argv[5:] == arguments

    def test_the_callers_own_arguments_come_last(self) -> None:
        assert launch("chat", "--provider", "x", model="m").argv[-2:] == ["--provider", "x"]
        assert launch("--checkpoints", "--cli").argv[-2:] == ["--checkpoints", "--cli"]

    @pytest.mark.parametrize("permissions", ["ask", "auto"])
    def test_permissions_without_an_option(self, permissions) -> None:
        with pytest.raises(NotAllowed, match=r"approvals\.mode"):
            launch(permissions=permissions)

    @pytest.mark.parametrize(
        "args",
        [
            ["--resume", "N"],
            ["--resume=N"],
            ["--res", "N"],
            ["-r", "N"],
            ["-rN"],
            ["-c"],
            ["--continue"],
            ["--co"],
            ["--source", "x"],
            ["-p", "coder"],
            ["--profile=coder"],
            ["--tui"],
            ["gateway"],
        ],
    )
    def test_what_only_mam_may_pass_is_refused(self, args) -> None:
        with pytest.raises(Usage):
            launch(*args)

    def test_what_an_outer_hermes_sets_is_not_inherited(self) -> None:
        assert "HERMES_YOLO_MODE" not in launch().unset, "a person may have set it"
        assert "HERMES_YOLO_MODE" in launch(environ={"HERMES_SESSION_ID": "x"}).unset

    def test_the_home_of_a_launch(self, tmp_path) -> None:
        root = tmp_path / ".hermes"
        root.mkdir()
        environ = {"HOME": str(tmp_path)}
        assert KIND.stores(environ)["HERMES_HOME"] == str(root)
        assert KIND.stores({"HERMES_HOME": "/x/y"})["HERMES_HOME"] == "/x/y"
        (root / "active_profile").write_text("coder\n", encoding="utf-8")
        assert KIND.stores(environ)["HERMES_HOME"] == str(root / "profiles" / "coder")
        for odd in ("../../etc", "default", "", "A" * 300):
            (root / "active_profile").write_text(odd, encoding="utf-8")
            assert KIND.stores(environ)["HERMES_HOME"] == str(root)
        sources = {KIND.session_variables()["HERMES_SESSION_SOURCE"] for _ in range(3)}
        assert len(sources) == 3, "each session has another source"


@pytest.mark.parametrize(
    "text",
    [
        "/exit",
        "  /nosuch hi",
        "/etc/passwd is a file",
        "~/x is",
        "./x is",
        "'../x' is",
        "file:///x",
        "C:\\x",
        "see @file:README.md",
        "@diff",
        "look at @url:http://x",
    ],
)
def test_a_text_that_hermes_would_replace_is_refused(text) -> None:
    assert KIND.text_to_type(text) is None


@pytest.mark.parametrize(
    "text", ["!ls", "#memo", "@nofile hi", "a@diff.org", "ends in \\", "x /exit", "?", "...", "a: b"]
)
def test_a_text_that_arrives_unchanged(text) -> None:
    assert KIND.text_to_type(text) == text


class Store:
    """A home with a database that a test writes."""

    def __init__(self, home, source="mam-1"):
        self.home = home
        self.stores = {"HERMES_HOME": str(home), "HERMES_SESSION_SOURCE": source}
        self.database = sqlite3.connect(home / "state.db", isolation_level=None)
        self.database.execute("pragma journal_mode = wal")
        self.database.executescript(SCHEMA)
        self.clock = 100.0

    def session(self, number, source="mam-1", **more):
        self.clock += 1
        ident = f"20261115_120000_{number:06x}"
        row = {"id": ident, "source": source, "started_at": self.clock, "model": "m"} | more
        self.database.execute(
            f"insert into sessions ({','.join(row)}) values ({','.join('?' * len(row))})", list(row.values())
        )
        return ident

    def say(self, ident, role="user", content="hello", **more):
        self.clock += 1
        row = {"session_id": ident, "role": role, "content": content, "timestamp": self.clock} | more
        self.database.execute(
            f"insert into messages ({','.join(row)}) values ({','.join('?' * len(row))})", list(row.values())
        )
        return self.clock

    def end(self, ident, reason):
        self.clock += 1
        self.database.execute(
            "update sessions set ended_at = ?, end_reason = ? where id = ?", (self.clock, reason, ident)
        )

    def current(self):
        state = KIND.read_state(1, 1, self.stores)
        return state[1] if state else None


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.database.close()


class TestConversation:
    def test_the_first_conversation_of_the_source(self, store) -> None:
        assert store.current() is None
        store.session(1, source="mam-2")
        assert store.current() is None
        own = store.session(2)
        assert store.current() == own
        store.session(3)
        assert store.current() == own, "a conversation that a tool begins has the same source"

    @pytest.mark.parametrize("reason", ["new_session", "branched"])
    def test_the_next_conversation_replaces_an_ended_one(self, store, reason) -> None:
        first = store.session(1)
        store.session(2)
        store.end(first, reason)
        assert store.current() is None, "the next one does not exist yet"
        third = store.session(3)
        assert store.current() == third
        store.end(third, "cli_close")
        assert store.current() == third

    def test_a_compacted_conversation_continues_in_its_child(self, store) -> None:
        first = store.session(1)
        store.end(first, "compression")
        store.session(2, source="cli")
        third = store.session(3, source="cli", parent_session_id=first)
        assert store.current() == third

    def test_after_the_resume_of_another_conversation_the_present_one_is_unknown(self, store) -> None:
        first = store.session(1)
        store.end(first, "resumed_other")
        store.session(2)
        assert store.current() is None

    def test_a_conversation_is_on_disk_once_it_has_a_message(self, store) -> None:
        ident = store.session(1)
        assert KIND.on_disk(ident, "/w", store.stores) is False
        store.say(ident)
        assert KIND.on_disk(ident, "/w", store.stores) is True
        assert KIND.on_disk("20261115_120000_ffffff", "/w", store.stores) is False
        assert KIND.on_disk("x", "/w", store.stores) is None

    def test_the_conversations_of_a_workspace(self, store) -> None:
        old, new = store.session(1, "cli", cwd="/w"), store.session(2, "cli", cwd="/w")
        for ident in (store.session(3, "cli", cwd="/other"), store.session(4, "mam-2", cwd="/w"), new, old):
            store.say(ident)
        assert KIND.conversations("/w", store.stores) == [old, new], "by the last message"
        own = store.session(5)
        assert KIND.conversations("/w", store.stores) == []
        store.say(own)
        assert KIND.conversations("/w", store.stores) == [own], "only that of the session"

    def test_reading_creates_no_files(self, store) -> None:
        ident = store.session(1)
        store.say(ident)
        store.database.close()
        before = {path.name for path in store.home.iterdir()}
        assert before == {"state.db"}
        assert KIND.on_disk(ident, "/w", store.stores) is True
        assert {path.name for path in store.home.iterdir()} == before


class TestRecord:
    @pytest.mark.parametrize(
        ("role", "more", "state"),
        [
            ("user", {}, "working"),
            ("tool", {}, "working"),
            ("assistant", {"finish_reason": "tool_calls", "tool_calls": "[]"}, "working"),
            ("assistant", {"finish_reason": "stop"}, "idle"),
            ("assistant", {}, "idle"),
            ("assistant", {"finish_reason": "stop", "content": "Operation interrupted."}, "idle"),
        ],
    )
    def test_the_activity_by_the_last_message(self, store, role, more, state) -> None:
        ident = store.session(1)
        store.say(ident)
        at = store.say(ident, **{"role": role, "content": "x"} | more)
        store.say(ident, active=0)
        (evidence,) = KIND.read_transcript_evidence(ident, "/w", store.stores)
        assert (evidence.source, evidence.state, evidence.at) == ("transcript", state, at)

    @pytest.mark.parametrize("at", [float("inf"), 1e300, -1.0, "soon", b"x"])
    def test_a_message_of_an_absurd_time_shows_no_activity(self, store, at) -> None:
        """It would be newer than all other evidence for ever."""
        ident = store.session(1)
        store.say(ident, timestamp=at)
        assert KIND.read_transcript_evidence(ident, "/w", store.stores) == []

    @pytest.mark.parametrize("role", ["system", "session_meta"])
    def test_a_message_of_another_role_shows_no_activity(self, store, role) -> None:
        ident = store.session(1)
        store.say(ident, role)
        assert KIND.read_transcript_evidence(ident, "/w", store.stores) == []

    def test_a_prompt_proves_its_submission(self, store) -> None:
        other = store.session(9, "mam-2")
        store.say(other, content="hello")
        before = KIND.transcript_size("", store.stores)
        assert KIND.has_submitted("hello", "", store.stores, before) is False
        own = store.session(1)
        store.say(other, content="hello")
        store.say(own, "assistant", "hello")
        assert KIND.has_submitted("hello", "", store.stores, before) is False, "the prompt of another session"
        store.say(own, content="hello ")
        assert KIND.has_submitted("hello", "", store.stores, before) is True
        store.say(own, content="hello")
        assert KIND.count_submitted("hello", "", store.stores, before) == 2
        assert KIND.has_submitted("hello", "", store.stores, KIND.transcript_size("", store.stores)) is False

    def test_a_prompt_in_parts(self, store) -> None:
        store.say(store.session(1), content='[{"type": "text", "text": "hello"}]')
        assert KIND.has_submitted("hello", "", store.stores, 0) is True

    def test_a_transcript(self, store) -> None:
        ident = store.session(1, input_tokens=11, output_tokens=7)
        for number in range(3):
            store.say(ident, content=f"question {number}")
            store.say(ident, "assistant", "", tool_calls="[]")
            store.say(ident, "tool", "noise")
            store.say(ident, "assistant", f"answer {number}", finish_reason="stop")
        transcript = KIND.read_transcript(ident, "/w", store.stores, 3)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("assistant", "answer 1"),
            ("user", "question 2"),
            ("assistant", "answer 2"),
        ]
        assert (transcript.model, transcript.tokens_in, transcript.tokens_out, transcript.context) == (
            "m",
            11,
            7,
            None,
        )
        assert transcript.turns[0].at.startswith("1970-01-01T00:0")
        assert KIND.read_transcript(ident, "/w", store.stores, 0).turns == []
        assert KIND.read_transcript("20261115_120000_ffffff", "/w", store.stores, 3) is None


# Versions differ: some record the cache, and some also the tokens of each model.
CACHE = """
alter table sessions add column cache_read_tokens integer default 0;
alter table sessions add column cache_write_tokens integer default 0;
"""
BY_MODEL = """
create table session_model_usage (session_id text, model text, task text default '',
    api_call_count integer default 0, input_tokens integer default 0, output_tokens integer default 0,
    cache_read_tokens integer default 0, cache_write_tokens integer default 0);
"""
SUM = {"input_tokens": 30, "output_tokens": 14, "cache_read_tokens": 200, "cache_write_tokens": 5}


class TestTokenCounts:
    def used(self, store, ident, model, *numbers, calls=2, task=""):
        store.database.execute(
            "insert into session_model_usage values (?, ?, ?, ?, ?, ?, ?, ?)",
            (ident, model, task, calls, *numbers),
        )

    def read(self, store, ident):
        return KIND.read_transcript(ident, "/w", store.stores, 0)

    def test_a_version_without_the_table_does_not_tell_the_models(self, store) -> None:
        store.database.executescript(CACHE)
        transcript = self.read(store, store.session(1, **SUM))
        assert (transcript.tokens_in, transcript.tokens_cache_read, transcript.tokens_cache_write) == (
            235,
            200,
            5,
        )
        assert transcript.token_counts is None

    def test_the_tokens_of_each_model(self, store) -> None:
        store.database.executescript(CACHE + BY_MODEL)
        ident, other = store.session(1, **SUM), store.session(2)
        self.used(store, ident, "m", 10, 7, 100, 0)
        self.used(store, ident, "n", 20, 7, 100, 5, calls=1)
        self.used(store, ident, "small", 3, 1, 0, 0, task="title")
        self.used(store, other, "m", 1, 1, 1, 1)
        names = ("model", "input", "output", "cache_read", "cache_write", "is_one_request")
        counts = self.read(store, ident).token_counts
        assert [tuple(getattr(count, name) for name in names) for count in counts] == [
            ("m", 10, 7, 100, 0, False),
            ("n", 20, 7, 100, 5, True),
            ("small", 3, 1, 0, 0, False),
        ]

    @pytest.mark.parametrize(
        "numbers", [(29, 14, 200, 5), (31, 14, 200, 5), ("x", 14, 200, 5), (30, 14, 200, -5)]
    )
    def test_what_is_not_all_is_unknown(self, store, numbers) -> None:
        store.database.executescript(CACHE + BY_MODEL)
        ident = store.session(1, **SUM)
        self.used(store, ident, "m", *numbers)
        assert self.read(store, ident).token_counts is None


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_database_shows_nothing(tmp_path, content) -> None:
    (tmp_path / "state.db").write_bytes(content)
    stores = {"HERMES_HOME": str(tmp_path), "HERMES_SESSION_SOURCE": "mam-1"}
    ident = "20261115_120000_000001"
    assert KIND.on_disk(ident, "/w", stores) is None
    assert KIND.conversations("/w", stores) == []
    assert KIND.read_state(1, 1, stores) is None
    assert KIND.read_transcript_evidence(ident, "/w", stores) == []
    assert KIND.read_transcript(ident, "/w", stores, 3) is None
    assert KIND.has_submitted("x", ident, stores, 0) is None
    assert KIND.transcript_size(ident, stores) == 0


def test_no_database_is_no_conversation(tmp_path) -> None:
    stores = {"HERMES_HOME": str(tmp_path / "none")}
    assert KIND.on_disk("20261115_120000_000001", "/w", stores) is False
    assert KIND.on_disk("20261115_120000_000001", "/w", {}) is None


def test_a_purge_needs_a_whole_id() -> None:
    ident = "20261115_120000_000001"
    assert KIND.purge_command(ident, "/p") == ["/p", "sessions", "delete", ident, "--yes"]
    for part in ("", "2026", "20261115_12", "--all"):
        assert KIND.purge_command(part, "/p") is None
