"""The files of Gemini CLI: where they are, what their ends show, and that damaged ones show nothing."""

import json
import os
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mam.adapters.agents.delete_files import remove
from mam.adapters.agents.gemini import record
from mam.adapters.agents.gemini.kind import Gemini

KIND = Gemini()
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
WORKSPACE = "/w/demo"
CONTEXT = {"id": "c", "type": "user", "content": [{"text": "<session_context>\nThis is the Gemini CLI."}]}


def stamp(seconds=0.0, base=AT):
    return (base + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user(text, seconds=1.0, **more):
    return {
        "id": str(uuid.uuid4()),
        "timestamp": stamp(seconds),
        "type": "user",
        "content": [{"text": text}],
    } | more


def model(text, seconds=2.0, **more):
    return {
        "id": str(uuid.uuid4()),
        "timestamp": stamp(seconds),
        "type": "gemini",
        "content": text,
        "thoughts": [],
        "tokens": {"input": 11, "output": 7, "thoughts": 2, "cached": 0, "tool": 0, "total": 20},
        "model": "gemini-3.8-flash",
    } | more


def notice(kind, text, seconds=3.0):
    return {"id": str(uuid.uuid4()), "timestamp": stamp(seconds), "type": kind, "content": text}


class Store:
    """A home with the chats of one workspace."""

    def __init__(self, home, slug="demo"):
        self.home = home
        self.stores = {"HOME": str(home)}
        self.folder = home / ".gemini" / "tmp" / slug
        (self.folder / "chats").mkdir(parents=True)
        (self.folder / ".project_root").write_text(WORKSPACE, encoding="utf-8")
        projects = json.dumps({"projects": {WORKSPACE: slug}})
        (home / ".gemini" / "projects.json").write_text(projects, encoding="utf-8")

    def chat(self, *entries, ident=None, minute="12-00", head=True, raw=b"", age=0.0):
        ident = ident or str(uuid.uuid4())
        first = {
            "sessionId": ident,
            "projectHash": "h",
            "startTime": stamp(),
            "lastUpdated": stamp(),
            "kind": "main",
        }
        lines = [first, {"$set": {"messages": [CONTEXT]}}] if head else []
        for entry in entries:
            lines += [entry, {"$set": {"lastUpdated": stamp()}}]
        path = self.folder / "chats" / f"session-2026-11-15T{minute}-{ident[:8]}.jsonl"
        path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + raw)
        os.utime(path, (time.time() - age, time.time() - age))
        return ident

    def path(self, ident):
        (path,) = self.folder.glob(f"chats/*-{ident[:8]}.jsonl")
        return path

    def log(self, *entries):
        prompts = [
            {"sessionId": ident, "messageId": number, "type": "user", "message": text, "timestamp": at}
            for number, (ident, text, at) in enumerate(entries)
        ]
        (self.folder / "logs.json").write_text(json.dumps(prompts, indent=2), encoding="utf-8")

    def on_disk(self, ident):
        return KIND.on_disk(ident, WORKSPACE, self.stores)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


class TestOnDisk:
    def test_a_conversation_is_on_disk_once_it_has_a_message(self, store) -> None:
        assert store.on_disk(store.chat(user("hello"))) is True
        assert store.on_disk(store.chat()) is False
        assert store.on_disk(str(uuid.uuid4())) is False

    def test_a_withdrawn_turn_is_no_history(self, store) -> None:
        cut = store.chat(user("stop me"), {"$set": {"messages": [CONTEXT]}})
        assert store.on_disk(cut) is False
        kept = store.chat(user("one"), user("stop me"), {"$set": {"messages": [CONTEXT, user("one")]}})
        assert store.on_disk(kept) is True

    def test_commands_are_no_history(self, store) -> None:
        assert store.on_disk(store.chat(user("/stats"), user("?help"))) is False

    def test_a_chat_without_its_first_line_cannot_be_resumed(self, store) -> None:
        """Another Gemini deleted the file while its process was running; mam can still read the rest."""
        ident = store.chat(user("hello"), head=False)
        assert store.on_disk(ident) is False
        assert KIND.conversations(WORKSPACE, store.stores) == []
        assert KIND.has_submitted("hello", ident, store.stores, 0) is True
        assert [
            evidence.state for evidence in KIND.read_transcript_evidence(ident, WORKSPACE, store.stores)
        ] == ["working"]
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 1).turns[0].text == "hello"
        assert len(KIND.purge_paths(ident, WORKSPACE, store.stores)) == 1

    def test_without_a_store_the_answer_is_unknown(self, store, tmp_path) -> None:
        ident = store.chat(user("hello"))
        assert KIND.on_disk(ident, WORKSPACE, {}) is None
        assert KIND.on_disk(ident, "/w/other", store.stores) is False

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_an_unreadable_folder_is_unknown(self, store) -> None:
        ident = store.chat(user("hello"))
        (store.folder / "chats").chmod(0)
        assert store.on_disk(ident) is None
        (store.folder / "chats").chmod(0o700)

    def test_a_path_is_no_id(self, store) -> None:
        assert store.on_disk("../../x") is False
        assert KIND.purge_paths("../../x", WORKSPACE, store.stores) == []

    def test_another_store(self, tmp_path) -> None:
        (tmp_path / "elsewhere").mkdir()
        store = Store(tmp_path / "elsewhere")
        ident = store.chat(user("hello"))
        assert KIND.on_disk(ident, WORKSPACE, {"GEMINI_CLI_HOME": str(tmp_path / "elsewhere")}) is True
        assert KIND.on_disk(ident, WORKSPACE, {"HOME": str(tmp_path)}) is False

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b'{"projects": []}', b'{"projects": {"/w/demo": "../x"}}']
    )
    def test_without_the_map_the_folder_names_its_workspace(self, store, content) -> None:
        ident = store.chat(user("hello"))
        (store.home / ".gemini" / "projects.json").write_bytes(content)
        assert store.on_disk(ident) is True

    def test_a_link_is_no_chat(self, store, tmp_path) -> None:
        ident = store.chat(user("hello"))
        path = store.path(ident)
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")
        assert store.on_disk(ident) is False

    def test_of_a_huge_chat_only_the_end_is_read(self, store) -> None:
        ident = store.chat(user("hello"))
        with store.path(ident).open("r+b") as file:
            # A gigabyte without content, which takes no space on the disk.
            file.seek(1 << 30)
            file.write(b"\n" + json.dumps(notice("info", "x")).encode() + b"\n")
        assert store.on_disk(ident) is True
        assert KIND.read_transcript_evidence(ident, WORKSPACE, store.stores) == []


def test_the_conversations_newest_first_and_each_once(store) -> None:
    old, new = store.chat(user("a"), age=100), store.chat(user("b"), age=10)
    store.chat(user("a"), ident=old, minute="13-00", age=50)
    store.chat(age=1)
    assert KIND.conversations(WORKSPACE, store.stores) == [new, old]
    assert KIND.conversations("/w/other", store.stores) == []
    assert KIND.conversations(WORKSPACE, {}) == []


def test_leftovers_are_empty_files_beside_one_with_a_history(store) -> None:
    resumed = store.chat(user("a"))
    store.chat(ident=resumed, minute="13-00")
    store.chat()
    store.chat(user("b"))
    (leftover,) = KIND.leftovers(WORKSPACE, store.stores)
    assert leftover == (
        str(store.home),
        f".gemini/tmp/demo/chats/session-2026-11-15T13-00-{resumed[:8]}.jsonl",
    )
    assert remove(*leftover)
    assert store.on_disk(resumed) is True
    assert KIND.leftovers(WORKSPACE, store.stores) == []


def test_a_purge_deletes_only_files_of_the_conversation(store) -> None:
    ident, other = store.chat(user("a")), store.chat(user("b"))
    store.chat(ident=ident, minute="13-00")
    subagent = str(uuid.uuid4())
    own = [
        f"chats/{ident}/{subagent}.jsonl",
        f"tool-outputs/session-{ident}/x.txt",
        f"tool-outputs/session-{subagent}/x.txt",
        f"logs/session-{ident}.jsonl",
        f"{ident}/plans/plan.md",
    ]
    for name in (*own, f"{other}/plans/plan.md", f"tool-outputs/session-{other}/x.txt"):
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    store.log((ident, "a", stamp()))
    for base, path in KIND.purge_paths(ident, WORKSPACE, store.stores):
        assert remove(base, path), path
    remaining = {str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()}
    assert remaining == {
        ".project_root",
        "logs.json",
        f"chats/{store.path(other).name}",
        f"{other}/plans/plan.md",
        f"tool-outputs/session-{other}/x.txt",
    }


class TestActivity:
    def activity(self, store, *entries):
        records = KIND.read_transcript_evidence(store.chat(*entries), WORKSPACE, store.stores)
        return [(evidence.source, evidence.state) for evidence in records]

    @pytest.mark.parametrize(
        ("last", "state"),
        [
            (user("do it"), "working"),
            (user("", content=[{"functionResponse": {"id": "x"}}]), "working"),
            (model("all done"), "idle"),
            # The file does not show whether the tool runs or waits for a permission.
            (model(""), "unknown"),
            (model("", toolCalls=[{"id": "x"}]), "unknown"),
            (notice("error", "[API Error: 400]"), "idle"),
            (notice("info", "Request cancelled."), "idle"),
        ],
    )
    def test_the_activity_by_the_last_line_that_shows_it(self, store, last, state) -> None:
        more = (notice("info", "Something else."), {"$rewindTo": "x"}, {"type": ["odd"]}, {"$set": 3})
        assert self.activity(store, user("first", 0.5), last, *more) == [("transcript", state)]

    def test_a_call_of_a_tool_may_follow_a_new_answer(self, store) -> None:
        now = datetime.now(UTC)
        assert self.activity(store, user("x"), model("I will run it", timestamp=stamp(-1, now))) == []
        assert self.activity(store, user("x"), model("done", timestamp=stamp(-10, now))) == [
            ("transcript", "idle")
        ]

    @pytest.mark.parametrize(
        "raw", [b"{", b'{"type":"gemini"', b"\xff\xfe\n", b"[]\n", b"null\n", b"[" * 5000 + b"\n"]
    )
    def test_damaged_lines_are_ignored(self, store, raw) -> None:
        ident = store.chat(user("do it"), raw=raw)
        (evidence,) = KIND.read_transcript_evidence(ident, WORKSPACE, store.stores)
        assert evidence.state == "working"

    def test_without_a_file_there_is_no_activity(self, store) -> None:
        assert KIND.read_transcript_evidence(str(uuid.uuid4()), WORKSPACE, store.stores) == []


class TestSubmitted:
    def test_only_a_later_line_of_the_chat_proves_a_prompt(self, store) -> None:
        ident = store.chat(user("again"))
        size = KIND.transcript_size(ident, store.stores)
        assert KIND.has_submitted("again", ident, store.stores, 0) is True
        assert KIND.has_submitted("again", ident, store.stores, size) is False
        with store.path(ident).open("ab") as file:
            file.write(json.dumps(user("again")).encode())
            file.flush()
            assert KIND.has_submitted("again", ident, store.stores, size) is False, "half a line"
            file.write(b"\n")
        assert KIND.has_submitted("again", ident, store.stores, size) is True
        assert KIND.count_submitted("again", ident, store.stores, size) == 1
        assert KIND.count_submitted("again", ident, store.stores, 0) == 2

    def test_gemini_strips_spaces_and_adds_mentioned_files(self, store) -> None:
        ident = store.chat(user("", content=[{"text": "see @a.txt"}, {"text": "\n--- Content ---"}]))
        assert KIND.has_submitted(" see @a.txt ", ident, store.stores, 0) is True
        assert KIND.has_submitted("see", ident, store.stores, 0) is False

    def test_the_log_has_a_prompt_first(self, store) -> None:
        ident = store.chat(user("again", 1))
        size = KIND.transcript_size(ident, store.stores)
        store.log((ident, "again", stamp(0.5)))
        assert KIND.has_submitted("again", ident, store.stores, size) is False, "this is the earlier prompt"
        store.log((ident, "again", stamp(0.5)), (str(uuid.uuid4()), "again", stamp(9)))
        assert KIND.has_submitted("again", ident, store.stores, size) is False, (
            "this is the prompt of another session"
        )
        store.log((ident, "again", stamp(0.5)), (ident, "again", stamp(9)))
        assert KIND.has_submitted("again", ident, store.stores, size) is True
        assert KIND.count_submitted("again", ident, store.stores, size) == 1

    def test_of_a_long_log_only_the_end_is_read(self, store) -> None:
        ident = store.chat()
        size = KIND.transcript_size(ident, store.stores)
        store.log(*[(ident, "x" * 1000, stamp(1))] * 1000, (ident, "new", stamp(9)))
        assert (store.folder / "logs.json").stat().st_size > 1_000_000
        assert KIND.has_submitted("new", ident, store.stores, size) is True

    @pytest.mark.parametrize("content", [b"", b"[", b"{}", b'[3, {"sessionId": 3}]', b"\xff", b"[" * 9000])
    def test_a_damaged_log_is_ignored(self, store, content) -> None:
        ident = store.chat()
        (store.folder / "logs.json").write_bytes(content)
        assert KIND.has_submitted("x", ident, store.stores, 0) is False

    def test_without_a_chat_nothing_is_proven(self, store) -> None:
        assert KIND.has_submitted("x", str(uuid.uuid4()), store.stores, 0) is False
        assert KIND.transcript_size(str(uuid.uuid4()), store.stores) == 0


class TestPresentConversation:
    """mam finds the process of a pane by its arguments, so a Python with the same ones replaces Gemini."""

    @pytest.fixture
    def gemini(self, store, tmp_path):
        workspace = tmp_path / "work"
        workspace.mkdir()
        (store.home / ".gemini" / "projects.json").write_text(
            json.dumps({"projects": {str(workspace): "demo"}})
        )
        script = tmp_path / "gemini"
        script.write_text("import sys; print(); sys.stdin.read()", encoding="utf-8")
        started = []

        def start(*args):
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = subprocess.Popen([sys.executable, str(script), *args], cwd=workspace, **pipes)
            process.stdout.readline()
            started.append(process)
            fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            return process.pid, int(fields[19])

        yield start
        for process in started:
            process.communicate()

    def at(self, seconds):
        return stamp(seconds, datetime.now(UTC))

    def test_the_conversation_with_the_last_prompt(self, store, gemini) -> None:
        first = store.chat(user("one", timestamp=self.at(-20)))
        second = store.chat(user("two", timestamp=self.at(-9)))
        store.chat(user("two", timestamp=self.at(-500)))
        process = gemini("--session-id", first)
        store.log((first, "one", self.at(-21)))
        assert KIND.read_state(*process, store.stores)[1] == first
        store.log((first, "one", self.at(-21)), (first, "/clear", self.at(-15)), (first, "two", self.at(-10)))
        evidence, conversation = KIND.read_state(*process, store.stores)
        assert (evidence.state, conversation) == ("unknown", second)

    def test_of_two_possible_conversations_none_is_named(self, store, gemini) -> None:
        first = store.chat(user("one", timestamp=self.at(-20)))
        for _ in range(2):
            store.chat(user("two", timestamp=self.at(-9)))
        store.log((first, "two", self.at(-10)))
        assert KIND.read_state(*gemini("--resume", first), store.stores) is None

    def test_the_same_prompt_in_another_session_belongs_to_that_session(self, store, gemini) -> None:
        own, foreign = store.chat(user("one", timestamp=self.at(-90))), str(uuid.uuid4())
        store.chat(user("continue", timestamp=self.at(-7)), ident=foreign)
        store.log((own, "continue", self.at(-8)), (foreign, "continue", self.at(-8)))
        process = gemini("--session-id", own)
        assert KIND.read_state(*process, store.stores) is None
        cleared = store.chat(user("continue", timestamp=self.at(-5)))
        assert KIND.read_state(*process, store.stores)[1] == cleared

    def test_the_same_prompt_after_a_clear_in_both_sessions_is_ambiguous(self, store, gemini) -> None:
        own, foreign = (store.chat(user("one", timestamp=self.at(-90))) for _ in range(2))
        store.chat(user("continue", timestamp=self.at(-7)))
        store.log((own, "continue", self.at(-8)), (foreign, "continue", self.at(-8)))
        assert KIND.read_state(*gemini("--session-id", own), store.stores) is None

    def test_a_prompt_that_only_the_log_has_shows_a_working_agent(self, store, gemini) -> None:
        ident = store.chat()
        process = gemini("--session-id", ident)
        store.log((ident, "go", self.at(0)))
        evidence, conversation = KIND.read_state(*process, store.stores)
        assert (evidence.state, conversation) == ("working", None)
        store.log((ident, "go", self.at(-30)))
        assert KIND.read_state(*process, store.stores) is None

    def test_another_process_has_no_conversation(self, store, gemini) -> None:
        ident = store.chat(user("one", timestamp=self.at(-20)))
        store.log((ident, "one", self.at(-21)))
        pid, start = gemini("--session-id", ident)
        assert KIND.read_state(pid, start + 1, store.stores) is None
        assert KIND.read_state(*gemini("-p", "words"), store.stores) is None
        assert KIND.read_state(0, 0, store.stores) is None

    def test_a_process_that_got_the_id_at_its_start_is_a_holder(self, gemini) -> None:
        ident = str(uuid.uuid4())
        assert KIND.holders(ident, {}) == []
        process = gemini("--resume", ident)
        assert KIND.holders(ident, {}) == [process]


class TestTranscript:
    def test_turns_and_figures(self, store) -> None:
        call = model("Let me see.", toolCalls=[{"id": "x"}])
        ident = store.chat(
            *(user("first"), model("one"), user("second"), call),
            *(user("", content=[{"functionResponse": {}}]), model("done"), notice("info", "x")),
        )
        transcript = KIND.read_transcript(ident, WORKSPACE, store.stores, 10)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("user", "first"),
            ("assistant", "one"),
            ("user", "second"),
            ("assistant", "Let me see.\ndone"),
        ]
        assert transcript.turns[0].at == stamp(1)
        assert (transcript.model, transcript.context, transcript.window) == (
            "gemini-3.8-flash",
            11,
            1_048_576,
        )
        assert (transcript.tokens_in, transcript.tokens_out) == (33, 27)
        assert [turn.text for turn in KIND.read_transcript(ident, WORKSPACE, store.stores, 1).turns] == [
            "Let me see.\ndone"
        ]
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 0).turns == []

    def test_a_withdrawn_turn_is_left_out(self, store) -> None:
        kept, gone = user("kept"), user("gone")
        ident = store.chat(kept, gone, {"$set": {"messages": [CONTEXT, kept]}})
        assert [turn.text for turn in KIND.read_transcript(ident, WORKSPACE, store.stores, 9).turns] == [
            "kept"
        ]
        ident = store.chat(kept, gone, model("x"), {"$rewindTo": gone["id"]})
        assert [turn.text for turn in KIND.read_transcript(ident, WORKSPACE, store.stores, 9).turns] == [
            "kept"
        ]

    def test_values_of_a_wrong_type_are_ignored(self, store) -> None:
        odd = model("x", tokens={"input": "11", "output": -1}, model=3, content=[{"text": 3}, "words", 4])
        transcript = KIND.read_transcript(store.chat(user("a"), odd), WORKSPACE, store.stores, 9)
        assert [turn.text for turn in transcript.turns] == ["a", "words"]
        assert (transcript.model, transcript.tokens_in, transcript.tokens_out) == (None, 0, 0)

    def test_each_request_counts_by_its_own_model(self, store) -> None:
        tokens = {"input": 100, "cached": 60, "output": 7, "thoughts": 2, "tool": 5}
        ident = store.chat(user("a"), model("x"), model("y", tokens=tokens, model="gemini-2.5-pro"))
        transcript = KIND.read_transcript(ident, WORKSPACE, store.stores, 0)
        assert (transcript.tokens_in, transcript.tokens_cache_read) == (111, 60)
        assert transcript.tokens_cache_write is None
        assert [
            (count.model, count.input, count.cache_read, count.output) for count in transcript.token_counts
        ] == [("gemini-3.8-flash", 11, 0, 9), ("gemini-2.5-pro", 45, 60, 9)]

    def test_what_was_taken_back_was_paid(self, store) -> None:
        kept, gone = user("kept"), user("gone")
        for back in ({"$rewindTo": gone["id"]}, {"$set": {"messages": [CONTEXT, kept]}}):
            transcript = KIND.read_transcript(
                store.chat(kept, gone, model("x"), back), WORKSPACE, store.stores, 0
            )
            assert transcript.tokens_in is None
            assert len(transcript.token_counts) == 1

    @pytest.mark.parametrize("tokens", [{"input": "11"}, {"output": -1}, {"input": 5, "cached": 6}])
    def test_damaged_numbers_make_the_cost_unknown(self, store, tokens) -> None:
        ident = store.chat(user("a"), model("x"), model("y", tokens=tokens))
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 0).token_counts is None

    def test_a_damaged_line_or_a_part_makes_the_cost_unknown(self, store, monkeypatch) -> None:
        ident = store.chat(user("a"), model("x"), raw=b'{"id": "1", "type": "gem\n')
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 0).token_counts is None
        ident = store.chat(user("a"), model("x"))
        monkeypatch.setattr(record, "_LARGEST", 100)
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 0).token_counts is None

    def test_without_a_chat_there_is_no_transcript(self, store) -> None:
        assert KIND.read_transcript(str(uuid.uuid4()), WORKSPACE, store.stores, 9) is None


def test_a_file_without_an_id_among_those_of_subagents_deletes_nothing_else(tmp_path) -> None:
    ident = str(uuid.uuid4())
    folder = tmp_path / ".gemini" / "tmp" / "work"
    subagents = folder / "chats" / ident
    subagents.mkdir(parents=True)
    (subagents / "chats.jsonl").touch()
    (tmp_path / ".gemini" / "projects.json").write_text(
        json.dumps({"projects": {str(tmp_path / "work"): "work"}}), encoding="utf-8"
    )
    paths = Gemini().purge_paths(ident, str(tmp_path / "work"), {"HOME": str(tmp_path)})
    assert not [path for _, path in paths if path.endswith("/chats")]
