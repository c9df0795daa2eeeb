"""Claude's files: where they lie, what their ends say, and that nothing is made of what is broken."""

import json
import os
import sys
import time
import tracemalloc
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mam.adapters.agents.claude.files import project_key
from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.delete_files import remove
from mam.adapters.agents.kind import Screen

KIND = Claude()
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
STAMP = AT.isoformat().replace("+00:00", "Z")


def user(text, **more):
    return {"type": "user", "message": {"role": "user", "content": text}, "timestamp": STAMP, **more}


def assistant(reason, **more):
    message = {"role": "assistant", "stop_reason": reason, "content": [{"type": "text", "text": "x"}]}
    return {"type": "assistant", "message": message, "timestamp": STAMP, **more}


def bytes_read() -> int:
    """Return how many bytes this process has read of files so far."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


class Store:
    """A home with transcripts in it."""

    def __init__(self, home):
        self.home = home
        self.stores = {"HOME": str(home)}

    def write(self, workspace, *entries, ident=None, raw=b"", age=0.0):
        ident = ident or str(uuid.uuid4())
        path = self.home / ".claude" / "projects" / project_key(workspace) / f"{ident}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"cwd": workspace} | entry).encode() + b"\n" for entry in entries]
        path.write_bytes(b"".join(lines) + raw)
        os.utime(path, (time.time() - age, time.time() - age))
        return ident

    def path(self, ident):
        (found,) = self.home.rglob(f"{ident}.jsonl")
        return found

    def state(self, number, **facts):
        path = self.home / ".claude" / "sessions" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"pid": number, "procStart": "77", "status": "idle"} | facts), encoding="utf-8"
        )
        return path


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/w/c2", "-w-c2"),
        ("/a.b_c d", "-a-b-c-d"),
        ("/é漢", "---"),
        ("/🙂", "---"),
        ("/" + "a" * 199, "-" + "a" * 199),
        # The rule is checked against the program itself in tests/conformance/test_claude.py.
        ("/" + "a" * 200, "-" + "a" * 199 + "-" + "b6ymvl"),
    ],
)
def test_project_key(cwd, key) -> None:
    assert project_key(cwd) == key


class TestOnDisk:
    def test_a_conversation_of_this_workspace(self, store) -> None:
        ident = store.write("/w/a", user("hello"))
        assert KIND.on_disk(ident, "/w/a", store.stores) is True
        assert KIND.on_disk(ident, "/w/other", store.stores) is False
        assert KIND.on_disk(str(uuid.uuid4()), "/w/a", store.stores) is False

    def test_nothing_was_said_yet(self, store) -> None:
        ident = store.write("/w/a", {"type": "mode"}, raw=b'{"type": "user", "half')
        assert KIND.on_disk(ident, "/w/a", store.stores) is False

    @pytest.mark.parametrize(("end", "expected"), [(b"", None), (b'\n{"type": "assistant"}\n', True)])
    def test_a_huge_transcript_is_read_at_its_ends(self, store, end, expected) -> None:
        ident = store.write("/w/a", {"type": "mode"}, raw=b'{"type": "attachment", "x": "')
        with store.path(ident).open("r+b") as file:
            file.seek(1 << 30)
            file.write(b'"}' + end)
        tracemalloc.start()
        try:
            assert KIND.on_disk(ident, "/w/a", store.stores) is expected
            assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
        finally:
            tracemalloc.stop()

    def test_something_said_after_a_long_beginning(self, store) -> None:
        ident = store.write("/w/a", {"type": "attachment", "x": "y" * (1 << 20)}, user("hello"))
        assert KIND.on_disk(ident, "/w/a", store.stores) is True

    @pytest.mark.parametrize("ident", ["../../etc/passwd", "", "x"])
    def test_what_is_no_id_is_no_path(self, store, ident) -> None:
        assert KIND.on_disk(ident, "/w/a", store.stores) is None
        assert KIND.purge_paths(ident, "/w/a", store.stores) == []

    def test_a_row_without_a_store(self, store) -> None:
        assert KIND.on_disk(str(uuid.uuid4()), "/w/a", {}) is None
        assert KIND.conversations("/w/a", {}) == []

    def test_a_moved_configuration(self, store) -> None:
        ident = store.write("/w/a", user("hello"))
        assert KIND.on_disk(ident, "/w/a", {"CLAUDE_CONFIG_DIR": str(store.home / ".claude")}) is True


class TestConversations:
    def test_newest_first_and_only_those_of_this_directory(self, store) -> None:
        old = store.write("/w/a.b", {"type": "mode", "cwd": None}, user("x"), age=100)
        store.write("/w/a_b", user("a neighbour in the same folder"))
        new = store.write("/w/a.b", user("y"), age=5)
        (store.home / ".claude" / "projects" / project_key("/w/a.b") / "agent-1.jsonl").touch()
        assert KIND.conversations("/w/a.b", store.stores) == [new, old]

    def test_one_that_does_not_say_where_it_began_is_nobodys(self, store) -> None:
        store.write("/w/a", raw=b"{broken\n[]\nnull\n")
        assert KIND.conversations("/w/a", store.stores) == []


class TestPurge:
    def test_just_that_conversation(self, store) -> None:
        gone, kept = store.write("/w/a", user("x")), store.write("/w/a", user("y"))
        config = store.home / ".claude"
        for name in ("file-history", "session-env", "todos"):
            for ident in (gone, kept):
                (config / name / ident).mkdir(parents=True)
                (config / name / ident / "x").touch()
        (config / "history.jsonl").touch()
        for folder, path in KIND.purge_paths(gone, "/w/a", store.stores):
            remove(folder, path)
        assert not [path for path in store.home.rglob("*") if gone in str(path)]
        assert len([path for path in store.home.rglob(f"{kept}*")]) == 4
        assert (config / "history.jsonl").exists()


class TestStateFile:
    @pytest.mark.parametrize(
        ("facts", "state", "waiting_for"),
        [
            ({}, "idle", None),
            ({"status": "busy"}, "working", None),
            ({"status": "waiting", "waitingFor": "permission prompt"}, "waiting", "permission"),
            ({"status": "waiting", "waitingFor": "input needed"}, "waiting", "question"),
            ({"status": "waiting", "waitingFor": "dialog open"}, "waiting", "menu"),
            ({"status": "waiting", "waitingFor": "something new"}, "waiting", "dialog"),
        ],
    )
    def test_status(self, store, facts, state, waiting_for) -> None:
        ident = str(uuid.uuid4())
        store.state(5, sessionId=ident, statusUpdatedAt=1794725647782, **facts)
        said, conversation = KIND.read_state(5, 77, store.stores)
        assert (said.source, said.state, said.waiting_for) == ("state-file", state, waiting_for)
        assert (said.at, conversation) == (1794725647.782, ident)

    @pytest.mark.parametrize(
        "facts", [{"procStart": "76"}, {"pid": 6}, {"status": "dreaming"}, {"status": ["idle"]}]
    )
    def test_another_process_or_word_is_nothing(self, store, facts) -> None:
        store.state(5, **facts)
        assert KIND.read_state(5, 77, store.stores) is None

    @pytest.mark.parametrize("at", [10**400, -1, "soon", float("inf"), None])
    def test_an_absurd_time_is_none(self, store, at) -> None:
        store.state(5, statusUpdatedAt=at, updatedAt=2000)
        assert KIND.read_state(5, 77, store.stores)[0].at == 2.0

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
    def test_a_broken_file_is_nothing(self, store, text) -> None:
        store.state(5).write_bytes(text)
        assert KIND.read_state(5, 77, store.stores) is None
        assert KIND.holders("x", store.stores) == []

    def test_who_has_a_conversation_open(self, store) -> None:
        ident = str(uuid.uuid4())
        store.state(5, sessionId=ident)
        store.state(6, sessionId=str(uuid.uuid4()))
        assert KIND.holders(ident, store.stores) == [(5, 77)]


class TestTranscript:
    @pytest.mark.parametrize(
        ("entries", "state"),
        [
            ([user("go")], "working"),
            ([user("go"), assistant("tool_use")], "working"),
            ([user("go"), assistant("end_turn")], "idle"),
            ([user("go"), assistant(None, isApiErrorMessage=True)], "idle"),
            ([user("go"), user([{"type": "text", "text": "[Request interrupted by user]"}])], "idle"),
            ([user("go"), {"type": "system", "subtype": "turn_duration", "timestamp": STAMP}], "idle"),
            # What is written beside the dialogue changes nothing.
            ([user("go"), {"type": "attachment"}, user("meta", isMeta=True)], "working"),
            ([assistant("end_turn"), user("aside", isSidechain=True)], "idle"),
            ([assistant("end_turn"), user("<command-name>/clear</command-name>")], "idle"),
        ],
    )
    def test_the_last_telling_line(self, store, entries, state) -> None:
        ident = store.write("/w/a", *entries)
        (said,) = KIND.read_records(ident, "/w/a", store.stores)
        assert (said.source, said.state, said.at) == ("transcript", state, AT.timestamp())

    @pytest.mark.parametrize(
        "raw", [b"", b"{broken\n", b"null\n[]\n", b'{"type":"user","message":{}}\n', b"\n\n"]
    )
    def test_nothing_telling_is_nothing(self, store, raw) -> None:
        assert KIND.read_records(store.write("/w/a", raw=raw), "/w/a", store.stores) == []

    def test_half_a_line_at_the_end_does_not_count(self, store) -> None:
        ident = store.write("/w/a", user("go"), raw=json.dumps(assistant("end_turn")).encode())
        assert KIND.read_records(ident, "/w/a", store.stores)[0].state == "working"

    @pytest.mark.skipif(sys.platform != "linux", reason="what was read is counted in /proc")
    def test_only_the_end_of_a_gigabyte_is_read(self, store) -> None:
        ident = store.write("/w/a", user("go"))
        with store.path(ident).open("r+b") as file:
            file.seek(10**9)
            file.write(b"\n" + json.dumps(assistant("end_turn")).encode() + b"\n")
        before = bytes_read()
        assert KIND.read_records(ident, "/w/a", store.stores)[0].state == "idle"
        assert KIND.on_disk(ident, "/w/a", store.stores)
        assert bytes_read() - before < 10**8


class TestProof:
    def test_a_prompt_is_proven_by_what_came_after(self, store) -> None:
        ident = store.write("/w/a", user("hello"))
        before = KIND.record_size(ident, store.stores)
        assert KIND.has_submitted("hello", ident, store.stores, 0) is True
        assert KIND.has_submitted("hello", ident, store.stores, before) is False
        with store.path(ident).open("ab") as file:
            file.write(json.dumps(user([{"type": "text", "text": "hello"}])).encode() + b"\n")
        assert KIND.has_submitted("hello", ident, store.stores, before) is True

    def test_a_queued_prompt_too(self, store) -> None:
        ident = store.write("/w/a", {"type": "queue-operation", "operation": "enqueue", "content": "later"})
        assert KIND.has_submitted("later", ident, store.stores, 0) is True

    def test_as_claude_keeps_it(self, store) -> None:
        ident = store.write("/w/a", user("a    b\n\nc"))
        assert KIND.has_submitted(" a\tb\n\nc  ", ident, store.stores, 0) is True
        assert KIND.has_submitted("a b", ident, store.stores, 0) is False

    def test_what_is_not_said_by_a_person_proves_nothing(self, store) -> None:
        ident = store.write(
            "/w/a", user("hello", isMeta=True), assistant("end_turn"), raw=b'{"type": "user"}\n'
        )
        assert KIND.has_submitted("hello", ident, store.stores, 0) is False

    def test_no_record_yet(self, store) -> None:
        assert KIND.has_submitted("hello", str(uuid.uuid4()), store.stores, 0) is False
        assert KIND.record_size(str(uuid.uuid4()), store.stores) == 0


def answered(text, tokens, ident="msg_1", **more):
    message = {
        "id": ident,
        "model": "claude-opus-5-5",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": tokens, "cache_read_input_tokens": 10_000, "output_tokens": 7},
    }
    return {"type": "assistant", "message": message, "timestamp": STAMP, **more}


class TestReadTranscript:
    def test_turns_model_and_tokens(self, store) -> None:
        ident = store.write(
            "/w",
            user("<command-name>/color</command-name>"),
            user("hello"),
            answered("hi", 90, "msg_1"),
            answered("there", 90, "msg_1"),
            user("a note of its own", isMeta=True),
            answered("of a subagent", 5, "msg_2", isSidechain=True),
            user("bye"),
            answered("bye", 10_000, "msg_3"),
            raw=b'{"type": "assistant", "message": {"usage": "broken\n[]\n{"type": "user"',
        )
        found = KIND.read_transcript(ident, "/elsewhere", store.stores, 3)
        assert [(turn.role, turn.text) for turn in found.turns] == [
            ("assistant", "hi\nthere"),
            ("user", "bye"),
            ("assistant", "bye"),
        ]
        assert found.turns[0].at == STAMP
        assert (found.model, found.tokens_in, found.tokens_out) == ("claude-opus-5-5", 30_090, 14)
        assert (found.context, found.window) == (20_000, 200_000)

    def test_a_context_that_is_larger_than_usual(self, store) -> None:
        ident = store.write("/w", user("x"), answered("y", 300_000))
        assert KIND.read_transcript(ident, "/w", store.stores, 0).window == 1_000_000

    def test_an_error_is_no_model(self, store) -> None:
        entry = answered("API Error", 5, isApiErrorMessage=True)
        ident = store.write("/w", user("x"), entry)
        found = KIND.read_transcript(ident, "/w", store.stores, 5)
        assert (found.model, found.tokens_in) == (None, None)
        assert found.turns[-1].text == "API Error"

    def test_no_transcript(self, store) -> None:
        assert KIND.read_transcript(str(uuid.uuid4()), "/w", store.stores, 5) is None
        assert KIND.read_transcript("../x", "/w", store.stores, 5) is None

    def test_only_the_end_of_a_large_one_is_read(self, store) -> None:
        ident = store.write("/w", user("early"), user("x"), answered("y", 1))
        path = store.path(ident)
        with path.open("r+b") as file:
            content = file.read()
            file.seek(1024**3)
            file.write(b"\n" + content.replace(b"early", b"later"))
        found = KIND.read_transcript(ident, "/w", store.stores, 9)
        assert found.turns[0].text == "later"


class TestIdentity:
    def test_colour_and_name_are_those_given_last(self, store) -> None:
        ident = store.write(
            "/w",
            {"type": "agent-color", "agentColor": "red"},
            {"type": "agent-name", "agentName": "old"},
            user("/rename green"),
            {"type": "agent-color", "agentColor": "green"},
            {"type": "agent-name", "agentName": "dev-agent"},
        )

        def has(command, conversation=ident):
            return KIND.has_identity(command, conversation, store.stores, Screen(""))

        commands = KIND.identity("dev-agent", "green")
        assert commands == ["/color green", "/rename dev-agent"]
        assert [has(one) for one in commands] == [True, True]
        wrong = ("/color red", "/rename old", "/rename green", "/color dev-agent")
        assert [has(one) for one in wrong] == [False] * 4
        assert has("/color green", str(uuid.uuid4())) is False, "nothing was said there yet"
