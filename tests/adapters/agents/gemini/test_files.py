"""Gemini's files: where they lie, what their ends say, and that nothing is made of what is broken."""

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
    """A home with chats of one directory in it."""

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
        (found,) = self.folder.glob(f"chats/*-{ident[:8]}.jsonl")
        return found

    def log(self, *entries):
        found = [
            {"sessionId": ident, "messageId": number, "type": "user", "message": text, "timestamp": at}
            for number, (ident, text, at) in enumerate(entries)
        ]
        (self.folder / "logs.json").write_text(json.dumps(found, indent=2), encoding="utf-8")

    def on_disk(self, ident):
        return KIND.on_disk(ident, WORKSPACE, self.stores)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


class TestOnDisk:
    def test_something_was_said(self, store) -> None:
        assert store.on_disk(store.chat(user("hello"))) is True
        assert store.on_disk(store.chat()) is False
        assert store.on_disk(str(uuid.uuid4())) is False

    def test_a_turn_that_was_taken_back_is_nothing_to_go_on_from(self, store) -> None:
        cut = store.chat(user("stop me"), {"$set": {"messages": [CONTEXT]}})
        assert store.on_disk(cut) is False
        kept = store.chat(user("one"), user("stop me"), {"$set": {"messages": [CONTEXT, user("one")]}})
        assert store.on_disk(kept) is True

    def test_commands_alone_are_nothing(self, store) -> None:
        assert store.on_disk(store.chat(user("/stats"), user("?help"))) is False

    def test_a_chat_without_its_first_line_cannot_be_taken_up(self, store) -> None:
        """Another Gemini deleted the file under its process; what is said there can be read all the same."""
        ident = store.chat(user("hello"), head=False)
        assert store.on_disk(ident) is False
        assert KIND.conversations(WORKSPACE, store.stores) == []
        assert KIND.has_submitted("hello", ident, store.stores, 0) is True
        assert [one.state for one in KIND.read_records(ident, WORKSPACE, store.stores)] == ["working"]
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 1).turns[0].text == "hello"
        assert len(KIND.purge_paths(ident, WORKSPACE, store.stores)) == 1

    def test_unknown_is_not_absent(self, store, tmp_path) -> None:
        ident = store.chat(user("hello"))
        assert KIND.on_disk(ident, WORKSPACE, {}) is None
        assert KIND.on_disk(ident, "/w/other", store.stores) is False

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_folder_that_cannot_be_read(self, store) -> None:
        ident = store.chat(user("hello"))
        (store.folder / "chats").chmod(0)
        assert store.on_disk(ident) is None
        (store.folder / "chats").chmod(0o700)

    def test_ids_that_are_paths_are_none(self, store) -> None:
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
    def test_without_its_map_the_owner_of_a_folder_tells(self, store, content) -> None:
        ident = store.chat(user("hello"))
        (store.home / ".gemini" / "projects.json").write_bytes(content)
        assert store.on_disk(ident) is True

    def test_a_link_is_no_chat(self, store, tmp_path) -> None:
        ident = store.chat(user("hello"))
        path = store.path(ident)
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")
        assert store.on_disk(ident) is False

    def test_a_huge_chat_is_read_at_its_end(self, store) -> None:
        ident = store.chat(user("hello"))
        with store.path(ident).open("r+b") as file:
            # A hole: a gigabyte that takes no room.
            file.seek(1 << 30)
            file.write(b"\n" + json.dumps(notice("info", "x")).encode() + b"\n")
        assert store.on_disk(ident) is True
        assert KIND.read_records(ident, WORKSPACE, store.stores) == []


def test_conversations_are_the_newest_first_and_each_once(store) -> None:
    old, new = store.chat(user("a"), age=100), store.chat(user("b"), age=10)
    store.chat(user("a"), ident=old, minute="13-00", age=50)
    store.chat(age=1)
    assert KIND.conversations(WORKSPACE, store.stores) == [new, old]
    assert KIND.conversations("/w/other", store.stores) == []
    assert KIND.conversations(WORKSPACE, {}) == []


def test_leftovers_are_empty_files_beside_a_full_one(store) -> None:
    resumed = store.chat(user("a"))
    store.chat(ident=resumed, minute="13-00")
    store.chat()
    store.chat(user("b"))
    (found,) = KIND.leftovers(WORKSPACE, store.stores)
    assert found == (str(store.home), f".gemini/tmp/demo/chats/session-2026-11-15T13-00-{resumed[:8]}.jsonl")
    assert remove(*found)
    assert store.on_disk(resumed) is True
    assert KIND.leftovers(WORKSPACE, store.stores) == []


def test_a_purge_takes_what_is_the_conversations_own(store) -> None:
    ident, other = store.chat(user("a")), store.chat(user("b"))
    store.chat(ident=ident, minute="13-00")
    helper = str(uuid.uuid4())
    own = [
        f"chats/{ident}/{helper}.jsonl",
        f"tool-outputs/session-{ident}/x.txt",
        f"tool-outputs/session-{helper}/x.txt",
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
    left = {str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()}
    assert left == {
        ".project_root",
        "logs.json",
        f"chats/{store.path(other).name}",
        f"{other}/plans/plan.md",
        f"tool-outputs/session-{other}/x.txt",
    }


class TestActivity:
    def said(self, store, *entries):
        found = KIND.read_records(store.chat(*entries), WORKSPACE, store.stores)
        return [(one.source, one.state) for one in found]

    @pytest.mark.parametrize(
        ("last", "state"),
        [
            (user("do it"), "working"),
            (user("", content=[{"functionResponse": {"id": "x"}}]), "working"),
            (model("all done"), "idle"),
            # Whether it runs or asks for consent is not in the file.
            (model(""), "unknown"),
            (model("", toolCalls=[{"id": "x"}]), "unknown"),
            (notice("error", "[API Error: 400]"), "idle"),
            (notice("info", "Request cancelled."), "idle"),
        ],
    )
    def test_the_last_telling_line(self, store, last, state) -> None:
        more = (notice("info", "Something else."), {"$rewindTo": "x"}, {"type": ["odd"]}, {"$set": 3})
        assert self.said(store, user("first", 0.5), last, *more) == [("transcript", state)]

    def test_an_answer_just_written_may_have_a_tool_behind_it(self, store) -> None:
        now = datetime.now(UTC)
        assert self.said(store, user("x"), model("I will run it", timestamp=stamp(-1, now))) == []
        assert self.said(store, user("x"), model("done", timestamp=stamp(-10, now))) == [
            ("transcript", "idle")
        ]

    @pytest.mark.parametrize(
        "raw", [b"{", b'{"type":"gemini"', b"\xff\xfe\n", b"[]\n", b"null\n", b"[" * 5000 + b"\n"]
    )
    def test_broken_lines_say_nothing(self, store, raw) -> None:
        ident = store.chat(user("do it"), raw=raw)
        (found,) = KIND.read_records(ident, WORKSPACE, store.stores)
        assert found.state == "working"

    def test_no_file_says_nothing(self, store) -> None:
        assert KIND.read_records(str(uuid.uuid4()), WORKSPACE, store.stores) == []


class TestSubmitted:
    def test_the_chat_beyond_a_place(self, store) -> None:
        ident = store.chat(user("again"))
        size = KIND.record_size(ident, store.stores)
        assert KIND.has_submitted("again", ident, store.stores, 0) is True
        assert KIND.has_submitted("again", ident, store.stores, size) is False
        with store.path(ident).open("ab") as file:
            file.write(json.dumps(user("again")).encode())
            file.flush()
            assert KIND.has_submitted("again", ident, store.stores, size) is False, "half a line"
            file.write(b"\n")
        assert KIND.has_submitted("again", ident, store.stores, size) is True

    def test_blanks_at_the_ends_are_dropped_and_mentioned_files_follow(self, store) -> None:
        ident = store.chat(user("", content=[{"text": "see @a.txt"}, {"text": "\n--- Content ---"}]))
        assert KIND.has_submitted(" see @a.txt ", ident, store.stores, 0) is True
        assert KIND.has_submitted("see", ident, store.stores, 0) is False

    def test_the_log_has_it_first(self, store) -> None:
        ident = store.chat(user("again", 1))
        size = KIND.record_size(ident, store.stores)
        store.log((ident, "again", stamp(0.5)))
        assert KIND.has_submitted("again", ident, store.stores, size) is False, "that was the one before"
        store.log((ident, "again", stamp(0.5)), (str(uuid.uuid4()), "again", stamp(9)))
        assert KIND.has_submitted("again", ident, store.stores, size) is False, "another session's"
        store.log((ident, "again", stamp(0.5)), (ident, "again", stamp(9)))
        assert KIND.has_submitted("again", ident, store.stores, size) is True

    def test_a_long_log_is_read_at_its_end(self, store) -> None:
        ident = store.chat()
        size = KIND.record_size(ident, store.stores)
        store.log(*[(ident, "x" * 1000, stamp(1))] * 1000, (ident, "new", stamp(9)))
        assert (store.folder / "logs.json").stat().st_size > 1_000_000
        assert KIND.has_submitted("new", ident, store.stores, size) is True

    @pytest.mark.parametrize("content", [b"", b"[", b"{}", b'[3, {"sessionId": 3}]', b"\xff", b"[" * 9000])
    def test_a_broken_log_says_nothing(self, store, content) -> None:
        ident = store.chat()
        (store.folder / "logs.json").write_bytes(content)
        assert KIND.has_submitted("x", ident, store.stores, 0) is False

    def test_no_chat(self, store) -> None:
        assert KIND.has_submitted("x", str(uuid.uuid4()), store.stores, 0) is False
        assert KIND.record_size(str(uuid.uuid4()), store.stores) == 0


class TestNowOpen:
    """The pane's process is known by its arguments; a Python that has them stands for it."""

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
            one = subprocess.Popen([sys.executable, str(script), *args], cwd=workspace, **pipes)
            one.stdout.readline()
            started.append(one)
            fields = Path(f"/proc/{one.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            return one.pid, int(fields[19])

        yield start
        for one in started:
            one.communicate()

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
        said, found = KIND.read_state(*process, store.stores)
        assert (said.state, found) == ("unknown", second)

    def test_two_that_it_could_be_are_none(self, store, gemini) -> None:
        first = store.chat(user("one", timestamp=self.at(-20)))
        for _ in range(2):
            store.chat(user("two", timestamp=self.at(-9)))
        store.log((first, "two", self.at(-10)))
        assert KIND.read_state(*gemini("--resume", first), store.stores) is None

    def test_what_a_neighbour_said_too_is_the_neighbours(self, store, gemini) -> None:
        ours, theirs = store.chat(user("one", timestamp=self.at(-90))), str(uuid.uuid4())
        store.chat(user("continue", timestamp=self.at(-7)), ident=theirs)
        store.log((ours, "continue", self.at(-8)), (theirs, "continue", self.at(-8)))
        process = gemini("--session-id", ours)
        assert KIND.read_state(*process, store.stores) is None
        cleared = store.chat(user("continue", timestamp=self.at(-5)))
        assert KIND.read_state(*process, store.stores)[1] == cleared

    def test_where_a_neighbour_was_cleared_as_well_nobody_can_say(self, store, gemini) -> None:
        ours, theirs = (store.chat(user("one", timestamp=self.at(-90))) for _ in range(2))
        store.chat(user("continue", timestamp=self.at(-7)))
        store.log((ours, "continue", self.at(-8)), (theirs, "continue", self.at(-8)))
        assert KIND.read_state(*gemini("--session-id", ours), store.stores) is None

    def test_a_prompt_that_only_the_log_has_is_about_to_be_worked_on(self, store, gemini) -> None:
        ident = store.chat()
        process = gemini("--session-id", ident)
        store.log((ident, "go", self.at(0)))
        said, found = KIND.read_state(*process, store.stores)
        assert (said.state, found) == ("working", None)
        store.log((ident, "go", self.at(-30)))
        assert KIND.read_state(*process, store.stores) is None

    def test_another_process_says_nothing(self, store, gemini) -> None:
        ident = store.chat(user("one", timestamp=self.at(-20)))
        store.log((ident, "one", self.at(-21)))
        pid, start = gemini("--session-id", ident)
        assert KIND.read_state(pid, start + 1, store.stores) is None
        assert KIND.read_state(*gemini("-p", "words"), store.stores) is None
        assert KIND.read_state(0, 0, store.stores) is None

    def test_who_was_started_with_a_conversation_holds_it(self, gemini) -> None:
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
        found = KIND.read_transcript(ident, WORKSPACE, store.stores, 10)
        assert [(turn.role, turn.text) for turn in found.turns] == [
            ("user", "first"),
            ("assistant", "one"),
            ("user", "second"),
            ("assistant", "Let me see.\ndone"),
        ]
        assert found.turns[0].at == stamp(1)
        assert (found.model, found.context, found.window) == ("gemini-3.8-flash", 11, 1_048_576)
        assert (found.tokens_in, found.tokens_out) == (33, 27)
        assert [turn.text for turn in KIND.read_transcript(ident, WORKSPACE, store.stores, 1).turns] == [
            "Let me see.\ndone"
        ]
        assert KIND.read_transcript(ident, WORKSPACE, store.stores, 0).turns == []

    def test_what_was_taken_back_is_not_told(self, store) -> None:
        kept, gone = user("kept"), user("gone")
        ident = store.chat(kept, gone, {"$set": {"messages": [CONTEXT, kept]}})
        assert [one.text for one in KIND.read_transcript(ident, WORKSPACE, store.stores, 9).turns] == ["kept"]
        ident = store.chat(kept, gone, model("x"), {"$rewindTo": gone["id"]})
        assert [one.text for one in KIND.read_transcript(ident, WORKSPACE, store.stores, 9).turns] == ["kept"]

    def test_odd_values(self, store) -> None:
        odd = model("x", tokens={"input": "11", "output": -1}, model=3, content=[{"text": 3}, "words", 4])
        found = KIND.read_transcript(store.chat(user("a"), odd), WORKSPACE, store.stores, 9)
        assert [one.text for one in found.turns] == ["a", "words"]
        assert (found.model, found.tokens_in, found.tokens_out) == (None, 0, 0)

    def test_no_record(self, store) -> None:
        assert KIND.read_transcript(str(uuid.uuid4()), WORKSPACE, store.stores, 9) is None


def test_a_strange_file_among_a_conversations_helpers_deletes_nothing_else(tmp_path) -> None:
    ident = str(uuid.uuid4())
    folder = tmp_path / ".gemini" / "tmp" / "work"
    helpers = folder / "chats" / ident
    helpers.mkdir(parents=True)
    (helpers / "chats.jsonl").touch()
    (tmp_path / ".gemini" / "projects.json").write_text(
        json.dumps({"projects": {str(tmp_path / "work"): "work"}}), encoding="utf-8"
    )
    found = Gemini().purge_paths(ident, str(tmp_path / "work"), {"HOME": str(tmp_path)})
    assert not [path for _, path in found if path.endswith("/chats")]
