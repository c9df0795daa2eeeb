"""Codex's files: where they lie, what their ends say, and that nothing is made of what is broken."""

import json
import os
import time
import tracemalloc
import uuid
from datetime import UTC, datetime

import pytest

from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.delete_files import remove
from mam.core.errors import IllegalTransition

KIND = Codex()
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
STAMP = AT.isoformat().replace("+00:00", "Z")


def line(kind, payload, **more):
    return {"timestamp": STAMP, "type": kind, "payload": payload, **more}


def event(kind, **payload):
    return line("event_msg", {"type": kind, **payload})


def said(role, text):
    kind = {"user": "UserMessage", "assistant": "AgentMessage"}[role]
    return event("item_completed", item={"type": kind, "content": [{"type": "text", "text": text}]})


STARTED, COMPLETE = event("task_started"), event("task_complete")
ABORTED = event("turn_aborted", reason="interrupted")
LIMIT = "usage_limit_exceeded"
ITEM = line("response_item", {"type": "message", "role": "assistant", "content": []})


class Store:
    """A home with rollouts in it."""

    def __init__(self, home):
        self.home = home
        self.config = home / ".codex"
        self.stores = {"HOME": str(home)}

    def write(self, workspace, *entries, ident=None, raw=b"", age=0.0, day="2026/11/15", **meta):
        ident = ident or str(uuid.uuid4())
        path = self.config / "sessions" / day / f"rollout-2026-11-15T12-00-00-{ident}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        # As in the real ones, most of the first line are instructions.
        about = {"id": ident, **meta, "cwd": workspace, "source": "cli", "thread_source": "user"} | meta
        first = line("session_meta", about | {"base_instructions": {"text": "x" * 20_000}})
        lines = [json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in (first, *entries)]
        path.write_bytes(b"".join(lines) + raw)
        os.utime(path, (time.time() - age, time.time() - age))
        return ident

    def path(self, ident):
        (found,) = self.home.rglob(f"rollout-*{ident}.jsonl")
        return found

    def lock(self, ident, at):
        path = self.config / "thread-writer-locks" / f"{ident}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (at, at))

    def tells(self, *entries, raw=b"", locked=-60.0):
        ident = self.write("/w", *entries, raw=raw)
        if locked is not None:
            self.lock(ident, AT.timestamp() + locked)
        found = KIND.read_records(ident, "/w", self.stores)
        return (found[0].state, found[0].waiting_for) if found else None


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


class TestFinding:
    def test_a_rollout_is_what_is_on_disk(self, store) -> None:
        ident = store.write("/w")
        assert KIND.on_disk(ident, "/w", store.stores) is True
        # Codex resumes it from anywhere.
        assert KIND.on_disk(ident, "/other", store.stores) is True
        assert KIND.on_disk(str(uuid.uuid4()), "/w", store.stores) is False
        assert KIND.on_disk("../x", "/w", store.stores) is False
        assert KIND.on_disk(ident, "/w", {}) is None

    def test_a_store_of_its_own(self, store, tmp_path) -> None:
        ident = store.write("/w")
        assert KIND.on_disk(ident, "/w", {"CODEX_HOME": str(store.config)}) is True
        assert KIND.on_disk(ident, "/w", {"CODEX_HOME": str(tmp_path / "other")}) is False

    def test_nothing_is_claimed_of_a_store_that_cannot_be_read(self, store, monkeypatch) -> None:
        ident = store.write("/w")

        def refuse(path):
            raise PermissionError(path)

        monkeypatch.setattr(os, "listdir", refuse)
        assert KIND.on_disk(ident, "/w", store.stores) is None
        assert KIND.conversations("/w", store.stores) == []
        assert KIND.has_submitted("x", ident, store.stores, 0) is None
        assert KIND.read_records(ident, "/w", store.stores) == []
        assert KIND.read_transcript(ident, "/w", store.stores, 5) is None

    @pytest.mark.parametrize("day", ["2026/11/14", "2026/11/15", "2026/11/16"])
    def test_an_id_names_its_day_and_not_the_time_zone(self, store, day) -> None:
        made = f"{int(AT.timestamp() * 1000):012x}"
        ident = f"{made[:8]}-{made[8:]}-7000-8000-000000000000"
        store.write("/w", ident=ident, day=day)
        assert KIND.on_disk(ident, "/w", store.stores) is True

    def test_an_id_of_an_absurd_day_is_looked_for_everywhere(self, store) -> None:
        ident = "ffffffff-ffff-7fff-8fff-ffffffffffff"
        assert KIND.on_disk(ident, "/w", store.stores) is False
        store.write("/w", ident=ident)
        assert KIND.on_disk(ident, "/w", store.stores) is True

    def test_the_conversations_of_a_directory_the_last_used_first(self, store) -> None:
        old = store.write("/w", age=100, day="2026/11/15")
        new = store.write("/w", age=10, day="2025/01/02")
        store.write("/w/below")
        store.write("/w", thread_source="subagent")
        store.write('/quo"ted')
        assert KIND.conversations("/w", store.stores) == [new, old]
        assert len(KIND.conversations('/quo"ted', store.stores)) == 1
        assert KIND.conversations("/w", {}) == []

    def test_what_is_no_rollout_is_passed_over(self, store) -> None:
        ident = store.write("/w")
        folder = store.path(ident).parent
        (folder / "rollout-x.jsonl").write_text("{", encoding="utf-8")
        (folder / f"rollout-x-{uuid.uuid4()}.jsonl").write_bytes(b"\xff\x00 no json")
        (store.config / "sessions" / "a file").write_text("", encoding="utf-8")
        assert KIND.conversations("/w", store.stores) == [ident]


class TestPurge:
    def test_the_rollout_and_its_snapshot(self, store) -> None:
        ident, other = store.write("/w"), store.write("/w")
        snapshots = store.config / "shell_snapshots"
        snapshots.mkdir()
        for one in (ident, other):
            (snapshots / f"{one}.1.sh").touch()
        for folder, path in KIND.purge_paths(ident, "/w", store.stores):
            assert remove(folder, path)
        assert not list(store.home.rglob(f"*{ident}*"))
        assert len(list(store.home.rglob(f"*{other}*"))) == 2
        assert KIND.purge_paths("../..", "/w", store.stores) == []

    def test_what_a_fork_lives_on_is_not_purged(self, store) -> None:
        ident = store.write("/w")
        fork = store.write("/w", forked_from_id=ident)
        with pytest.raises(IllegalTransition, match=fork):
            KIND.purge_paths(ident, "/w", store.stores)
        assert KIND.purge_paths(fork, "/w", store.stores)


class TestActivity:
    @pytest.mark.parametrize(
        ("entries", "expected"),
        [
            ([STARTED], ("working", None)),
            ([STARTED, ITEM, COMPLETE], ("idle", None)),
            ([STARTED, COMPLETE, STARTED, ITEM], ("working", None)),
            ([STARTED, ITEM, ABORTED], ("idle", None)),
            ([STARTED, event("task_complete", error={"message": "500"})], ("idle", None)),
            ([event("task_complete", error={"codex_error_info": LIMIT})], ("idle", None)),
            # What is written beside turns says nothing.
            ([STARTED, COMPLETE, ITEM, event("token_count"), line("turn_context", {})], ("idle", None)),
            # The beginning of a long turn is out of reach.
            ([STARTED, ITEM | {"x": "y" * 300_000}, ITEM], ("working", None)),
            ([], None),
        ],
    )
    def test_the_last_telling_line(self, store, entries, expected) -> None:
        assert store.tells(*entries) == expected

    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            ("2026-11-15 14:59", ("waiting", "limit, resets 11:30 PM")),
            ("2026-11-15 23:31", ("idle", None)),
            ("2026-11-16 07:00", ("idle", None)),
        ],
    )
    def test_a_limit_is_waited_for_until_its_end(self, store, monkeypatch, now, expected) -> None:
        monkeypatch.setattr(time, "time", datetime.fromisoformat(now).timestamp)
        reached = {"message": "x. Try again at 11:30 PM.", "codex_error_info": LIMIT}
        noon = datetime(2026, 11, 15, 12).astimezone().isoformat()
        assert store.tells(STARTED, event("task_complete", error=reached) | {"timestamp": noon}) == expected

    def test_a_turn_that_no_process_goes_on_with(self, store) -> None:
        """After a crash nothing in the rollout says that the turn is over."""
        assert store.tells(STARTED, ITEM, locked=None) is None
        assert store.tells(STARTED, ITEM, locked=+60.0) == ("idle", None)
        assert store.tells(STARTED, COMPLETE, locked=None) == ("idle", None)

    @pytest.mark.parametrize(
        "raw",
        [
            b'{"timestamp":"2026-11-15T12:00:00Z","type":"event_msg","payload":{"type":"task_comp',
            b"\xff\xfe\n\n[]\n3\nnull\n",
            b'{"type":"event_msg","payload":[]}\n',
            b'{"type":"event_msg","payload":{"type":"task_complete"}}\n',
            b'{"timestamp":"never","type":"event_msg","payload":{"type":"task_complete"}}\n',
            b'"event_msg"' + b"[" * 100_000 + b"\n",
        ],
    )
    def test_broken_lines_are_no_lines(self, store, raw) -> None:
        assert store.tells(STARTED, raw=raw) == ("working", None)

    def test_of_a_huge_rollout_only_the_end_is_read(self, store) -> None:
        ident = store.write("/w", STARTED)
        store.lock(ident, AT.timestamp() - 60)
        with store.path(ident).open("r+b") as file:
            file.truncate(1 << 30)
            file.seek(0, os.SEEK_END)
            file.write(b"\n" + json.dumps(COMPLETE).encode() + b"\n")
        tracemalloc.start()
        try:
            (found,) = KIND.read_records(ident, "/w", store.stores)
            assert KIND.read_transcript(ident, "/w", store.stores, 5) is not None
            assert tracemalloc.get_traced_memory()[1] < 100 * 1024 * 1024
        finally:
            tracemalloc.stop()
        assert found.state == "idle"


class TestSubmitted:
    def test_only_what_is_new_and_only_the_users_words(self, store) -> None:
        ident = store.write("/w", said("user", "old"))
        since = KIND.record_size(ident, store.stores)
        with store.path(ident).open("ab") as file:
            for one in (said("assistant", "answer"), said("user", "new\ttab")):
                file.write(json.dumps(one).encode() + b"\n")
            file.write(json.dumps(said("user", "half")).encode()[:-3])
        for text, expected in (("new\ttab", True), (" new\ttab ", True), ("old", False), ("answer", False)):
            assert KIND.has_submitted(text, ident, store.stores, since) is expected
        assert KIND.has_submitted("half", ident, store.stores, since) is False
        assert KIND.has_submitted("old", ident, store.stores, 0) is True
        assert KIND.has_submitted("old", "", store.stores, 0) is False
        assert KIND.record_size("", store.stores) == 0


class TestTranscript:
    def test_turns_model_and_tokens(self, store) -> None:
        usage = {
            "total_token_usage": {"input_tokens": 22, "output_tokens": 14},
            "last_token_usage": {"input_tokens": 11, "output_tokens": 7},
            "model_context_window": 258400,
        }
        ident = store.write(
            "/w",
            event("task_started", model_context_window=1000),
            line("turn_context", {"model": "gpt"}),
            said("user", "question"),
            said("assistant", "first"),
            said("assistant", "second"),
            event("token_count", info=usage),
            said("user", "more"),
            raw=b"broken\n",
        )
        found = KIND.read_transcript(ident, "/w", store.stores, 2)
        assert [(turn.role, turn.text) for turn in found.turns] == [
            ("assistant", "first\nsecond"),
            ("user", "more"),
        ]
        assert found.turns[0].at == STAMP
        assert (found.model, found.tokens_in, found.tokens_out) == ("gpt", 22, 14)
        assert (found.context, found.window) == (11, 258400)
        assert KIND.read_transcript(ident, "/w", store.stores, 0).turns == []
        assert KIND.read_transcript(str(uuid.uuid4()), "/w", store.stores, 2) is None

    def test_figures_of_a_wrong_type_are_none(self, store) -> None:
        ident = store.write(
            "/w",
            line("turn_context", {"model": 3}),
            event("token_count", info={"total_token_usage": [], "model_context_window": 10**400}),
            event("token_count", info=None),
            event("item_completed", item={"type": "UserMessage", "content": "no list"}),
            event("item_completed", item=None),
        )
        found = KIND.read_transcript(ident, "/w", store.stores, 2)
        assert (found.turns, found.model, found.tokens_in, found.window) == ([], None, None, None)
