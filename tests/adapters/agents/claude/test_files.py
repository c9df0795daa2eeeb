"""The files of Claude Code: where they are, what their ends show, and that damaged ones show nothing."""

import json
import os
import sys
import time
import tracemalloc
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mam.adapters.agents.claude import transcript as transcript_reader
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
    """Return how many bytes this process has read so far."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


class Store:
    """A home with transcripts."""

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
        (path,) = self.home.rglob(f"{ident}.jsonl")
        return path

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
        # tests/conformance/test_claude.py compares this rule with the program.
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

    def test_a_transcript_without_a_message_does_not_count(self, store) -> None:
        ident = store.write("/w/a", {"type": "mode"}, raw=b'{"type": "user", "half')
        assert KIND.on_disk(ident, "/w/a", store.stores) is False

    @pytest.mark.parametrize(("end", "expected"), [(b"", None), (b'\n{"type": "assistant"}\n', True)])
    def test_of_a_huge_transcript_only_the_ends_are_read(self, store, end, expected) -> None:
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

    def test_a_message_after_a_long_beginning(self, store) -> None:
        ident = store.write("/w/a", {"type": "attachment", "x": "y" * (1 << 20)}, user("hello"))
        assert KIND.on_disk(ident, "/w/a", store.stores) is True

    @pytest.mark.parametrize("ident", ["../../etc/passwd", "", "x"])
    def test_only_an_id_has_a_path(self, store, ident) -> None:
        assert KIND.on_disk(ident, "/w/a", store.stores) is None
        assert KIND.purge_paths(ident, "/w/a", store.stores) == []

    def test_a_row_without_a_store(self, store) -> None:
        assert KIND.on_disk(str(uuid.uuid4()), "/w/a", {}) is None
        assert KIND.conversations("/w/a", {}) == []

    def test_a_moved_configuration(self, store) -> None:
        ident = store.write("/w/a", user("hello"))
        assert KIND.on_disk(ident, "/w/a", {"CLAUDE_CONFIG_DIR": str(store.home / ".claude")}) is True


class TestConversations:
    def test_the_conversations_of_this_directory_newest_first(self, store) -> None:
        old = store.write("/w/a.b", {"type": "mode", "cwd": None}, user("x"), age=100)
        store.write("/w/a_b", user("a neighbour in the same folder"))
        new = store.write("/w/a.b", user("y"), age=5)
        (store.home / ".claude" / "projects" / project_key("/w/a.b") / "agent-1.jsonl").touch()
        assert KIND.conversations("/w/a.b", store.stores) == [new, old]

    def test_a_transcript_without_a_directory_is_left_out(self, store) -> None:
        store.write("/w/a", raw=b"{broken\n[]\nnull\n")
        assert KIND.conversations("/w/a", store.stores) == []


class TestPurge:
    def test_a_purge_deletes_only_that_conversation(self, store) -> None:
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
    def test_the_activity_by_the_status(self, store, facts, state, waiting_for) -> None:
        ident = str(uuid.uuid4())
        store.state(5, sessionId=ident, statusUpdatedAt=1794725647782, **facts)
        evidence, conversation = KIND.read_state(5, 77, store.stores)
        assert (evidence.source, evidence.state, evidence.waiting_for) == ("state-file", state, waiting_for)
        assert (evidence.at, conversation) == (1794725647.782, ident)

    @pytest.mark.parametrize(
        "facts", [{"procStart": "76"}, {"pid": 6}, {"status": "dreaming"}, {"status": ["idle"]}]
    )
    def test_another_process_and_an_unknown_status_are_ignored(self, store, facts) -> None:
        store.state(5, **facts)
        assert KIND.read_state(5, 77, store.stores) is None

    @pytest.mark.parametrize("at", [10**400, -1, "soon", float("inf"), None])
    def test_an_absurd_time_is_ignored(self, store, at) -> None:
        store.state(5, statusUpdatedAt=at, updatedAt=2000)
        assert KIND.read_state(5, 77, store.stores)[0].at == 2.0

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
    def test_a_damaged_file_is_ignored(self, store, text) -> None:
        store.state(5).write_bytes(text)
        assert KIND.read_state(5, 77, store.stores) is None
        assert KIND.holders("x", store.stores) == []

    def test_the_process_that_has_a_conversation_open(self, store) -> None:
        ident = str(uuid.uuid4())
        store.state(5, sessionId=ident)
        store.state(6, sessionId=str(uuid.uuid4()))
        assert KIND.holders(ident, store.stores) == [(5, 77)]

    @pytest.mark.parametrize("start", ["9" * 5000, "²", "", None, [77]])
    def test_a_start_that_is_no_number_names_no_process(self, store, start) -> None:
        ident = str(uuid.uuid4())
        store.state(5, sessionId=ident, procStart=start)
        assert KIND.holders(ident, store.stores) == []


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
            # Entries that are not messages of the conversation change nothing.
            ([user("go"), {"type": "attachment"}, user("meta", isMeta=True)], "working"),
            ([assistant("end_turn"), user("aside", isSidechain=True)], "idle"),
            ([assistant("end_turn"), user("<command-name>/clear</command-name>")], "idle"),
        ],
    )
    def test_the_activity_by_the_last_line_that_shows_it(self, store, entries, state) -> None:
        ident = store.write("/w/a", *entries)
        (evidence,) = KIND.read_transcript_evidence(ident, "/w/a", store.stores)
        assert (evidence.source, evidence.state, evidence.at) == ("transcript", state, AT.timestamp())

    @pytest.mark.parametrize(
        "raw", [b"", b"{broken\n", b"null\n[]\n", b'{"type":"user","message":{}}\n', b"\n\n"]
    )
    def test_other_lines_show_no_activity(self, store, raw) -> None:
        assert KIND.read_transcript_evidence(store.write("/w/a", raw=raw), "/w/a", store.stores) == []

    def test_an_incomplete_last_line_does_not_count(self, store) -> None:
        ident = store.write("/w/a", user("go"), raw=json.dumps(assistant("end_turn")).encode())
        assert KIND.read_transcript_evidence(ident, "/w/a", store.stores)[0].state == "working"

    @pytest.mark.skipif(sys.platform != "linux", reason="the count of bytes is in /proc")
    def test_only_the_end_of_a_gigabyte_is_read(self, store) -> None:
        ident = store.write("/w/a", user("go"))
        with store.path(ident).open("r+b") as file:
            file.seek(10**9)
            file.write(b"\n" + json.dumps(assistant("end_turn")).encode() + b"\n")
        before = bytes_read()
        assert KIND.read_transcript_evidence(ident, "/w/a", store.stores)[0].state == "idle"
        assert KIND.on_disk(ident, "/w/a", store.stores)
        assert bytes_read() - before < 10**8


class TestProof:
    def test_only_a_later_line_proves_a_prompt(self, store) -> None:
        ident = store.write("/w/a", user("hello"))
        before = KIND.transcript_size(ident, store.stores)
        assert KIND.has_submitted("hello", ident, store.stores, 0) is True
        assert KIND.has_submitted("hello", ident, store.stores, before) is False
        with store.path(ident).open("ab") as file:
            file.write(json.dumps(user([{"type": "text", "text": "hello"}])).encode() + b"\n")
        assert KIND.has_submitted("hello", ident, store.stores, before) is True
        assert KIND.count_submitted("hello", ident, store.stores, before) == 1
        assert KIND.count_submitted("hello", ident, store.stores, 0) == 2

    def test_a_line_of_the_queue_proves_a_prompt(self, store) -> None:
        ident = store.write("/w/a", {"type": "queue-operation", "operation": "enqueue", "content": "later"})
        assert KIND.has_submitted("later", ident, store.stores, 0) is True
        assert KIND.count_submitted("later", ident, store.stores, 0) == 1

    def test_a_queued_prompt_that_was_taken_counts_once(self, store) -> None:
        queued = {"type": "queue-operation", "operation": "enqueue", "content": "later"}
        ident = store.write("/w/a", queued, user("later"))
        assert KIND.count_submitted("later", ident, store.stores, 0) == 1

    def test_what_is_in_the_queue_is_not_taken_yet(self, store) -> None:
        queued = {"type": "queue-operation", "operation": "enqueue", "content": "later"}
        ident = store.write("/w/a", queued)
        assert KIND.count_taken("later", ident, store.stores, 0) == 0
        with store.path(ident).open("ab") as file:
            file.write(json.dumps(user("later")).encode() + b"\n")
        assert KIND.count_taken("later", ident, store.stores, 0) == 1
        assert KIND.count_taken("later", str(uuid.uuid4()), store.stores, 0) == 0

    @pytest.mark.parametrize("prompt", ["later", [{"type": "text", "text": "later"}]])
    def test_a_running_turn_takes_a_queued_prompt_in(self, store, prompt) -> None:
        queued = {"type": "queue-operation", "operation": "enqueue", "content": "later"}
        attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": prompt}
        other = {"type": "attachment", "attachment": {"type": "file", "prompt": "queued_command"}}
        ident = store.write("/w/a", queued, other, {"type": "attachment", "attachment": attachment})
        assert KIND.count_taken("later", ident, store.stores, 0) == 1

    def test_a_prompt_counts_as_claude_code_records_it(self, store) -> None:
        ident = store.write("/w/a", user("a    b\n\nc"))
        assert KIND.has_submitted(" a\tb\n\nc  ", ident, store.stores, 0) is True
        assert KIND.has_submitted("a b", ident, store.stores, 0) is False

    def test_only_a_line_of_a_person_proves_a_prompt(self, store) -> None:
        ident = store.write(
            "/w/a", user("hello", isMeta=True), assistant("end_turn"), raw=b'{"type": "user"}\n'
        )
        assert KIND.has_submitted("hello", ident, store.stores, 0) is False

    def test_without_a_transcript_nothing_is_proven(self, store) -> None:
        assert KIND.has_submitted("hello", str(uuid.uuid4()), store.stores, 0) is False
        assert KIND.transcript_size(str(uuid.uuid4()), store.stores) == 0


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
        transcript = KIND.read_transcript(ident, "/elsewhere", store.stores, 3)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("assistant", "hi\nthere"),
            ("user", "bye"),
            ("assistant", "bye"),
        ]
        assert transcript.turns[0].at == STAMP
        assert (transcript.model, transcript.tokens_in, transcript.tokens_out) == (
            "claude-opus-5-5",
            30_090,
            14,
        )
        assert (transcript.context, transcript.window) == (20_000, 200_000)

    def test_a_context_above_the_usual_window_means_the_large_one(self, store) -> None:
        ident = store.write("/w", user("x"), answered("y", 300_000))
        assert KIND.read_transcript(ident, "/w", store.stores, 0).window == 1_000_000

    def test_an_error_names_no_model(self, store) -> None:
        entry = answered("API Error", 5, isApiErrorMessage=True)
        ident = store.write("/w", user("x"), entry)
        transcript = KIND.read_transcript(ident, "/w", store.stores, 5)
        assert (transcript.model, transcript.tokens_in) == (None, None)
        assert transcript.turns[-1].text == "API Error"

    def test_no_transcript(self, store) -> None:
        assert KIND.read_transcript(str(uuid.uuid4()), "/w", store.stores, 5) is None
        assert KIND.read_transcript("../x", "/w", store.stores, 5) is None

    def test_only_the_end_of_a_large_transcript_is_read(self, store) -> None:
        ident = store.write("/w", user("early"), user("x"), answered("y", 1))
        path = store.path(ident)
        with path.open("r+b") as file:
            content = file.read()
            file.seek(1024**3)
            file.write(b"\n" + content.replace(b"early", b"later"))
        transcript = KIND.read_transcript(ident, "/w", store.stores, 9)
        assert transcript.turns[0].text == "later"


def counted(ident, model="claude-opus-5-5", **usage):
    usage = {"input_tokens": 10, "output_tokens": 7, **usage}
    message = {"id": ident, "model": model, "content": [], "usage": usage}
    return {"type": "assistant", "message": message, "timestamp": STAMP}


class TestTokenCounts:
    def counts(self, store, *entries, raw=b""):
        ident = store.write("/w", user("x"), *entries, raw=raw)
        counts = KIND.read_transcript(ident, "/w", store.stores, 0).token_counts
        if counts is None:
            return None
        names = ("model", "input", "output", "cache_read", "cache_write", "cache_write_1h")
        return [tuple(getattr(count, name) for name in names) for count in counts]

    def test_each_answer_counts_once_by_its_own_model(self, store) -> None:
        written = {
            "cache_creation_input_tokens": 900,
            "cache_creation": {"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 100},
            "cache_read_input_tokens": 5000,
            "speed": "standard",
            "service_tier": "standard",
            "inference_geo": "not_available",
        }
        entries = [counted("msg_1", output_tokens=1), counted("msg_1"), counted("msg_2", "other", **written)]
        side = {**counted("msg_3"), "isSidechain": True}
        assert self.counts(store, *entries, side) == [
            ("claude-opus-5-5", 10, 7, 0, 0, 0),
            ("other", 10, 7, 5000, 800, 100),
        ]

    def test_the_figures_say_how_much_the_cache_had(self, store) -> None:
        used = {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 5000}
        ident = store.write("/w", counted("msg_1", **used), counted("msg_2"))
        transcript = KIND.read_transcript(ident, "/w", store.stores, 0)
        assert (transcript.tokens_in, transcript.tokens_cache_read, transcript.tokens_cache_write) == (
            5920,
            5000,
            900,
        )

    @pytest.mark.parametrize(
        "special", [{"speed": "fast"}, {"service_tier": "priority"}, {"inference_geo": "us"}, {"speed": []}]
    )
    def test_a_request_with_another_price_has_no_model(self, store, special) -> None:
        assert self.counts(store, counted("msg_1", **special))[0][0] is None

    @pytest.mark.parametrize(
        "usage",
        [
            {"input_tokens": "10"},
            {"output_tokens": -1},
            {"cache_read_input_tokens": 2**60},
            {"cache_creation": {"ephemeral_1h_input_tokens": 5}},
            {"cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": []}},
        ],
    )
    def test_damaged_numbers_make_all_of_it_unknown(self, store, usage) -> None:
        assert self.counts(store, counted("msg_1"), counted("msg_2", **usage)) is None

    def test_a_damaged_line_may_be_that_of_a_request(self, store) -> None:
        assert self.counts(store, counted("msg_1"), raw=b'{"type": "assistant", "mess\n') is None
        assert self.counts(store, counted("msg_1"), raw=b'{"type": "assistant", "mess') is not None

    def test_the_end_of_a_large_transcript_is_a_part(self, store, monkeypatch) -> None:
        monkeypatch.setattr(transcript_reader, "_LARGEST", 1000)
        assert self.counts(store, counted("msg_1")) is not None
        assert self.counts(store, user("y" * 1000), counted("msg_1")) is None


class TestIdentity:
    def test_the_last_colour_and_name_count(self, store) -> None:
        ident = store.write(
            "/w",
            {"type": "agent-color", "agentColor": "red"},
            {"type": "agent-name", "agentName": "old"},
            user("/rename green"),
            {"type": "agent-color", "agentColor": "green"},
            {"type": "agent-name", "agentName": "dev-agent"},
        )

        def took_effect(command, conversation=ident):
            return KIND.identity_took_effect(command, conversation, store.stores, Screen(""))

        commands = KIND.identity_commands("dev-agent", "green")
        assert commands == ["/color green", "/rename dev-agent"]
        assert [took_effect(command) for command in commands] == [True, True]
        wrong = ("/color red", "/rename old", "/rename green", "/color dev-agent")
        assert [took_effect(command) for command in wrong] == [False] * 4
        assert took_effect("/color green", str(uuid.uuid4())) is False, "that conversation does not exist"
