"""The files of Codex: where they are, what their ends show, and that damaged ones show nothing."""

import json
import os
import time
import tracemalloc
import uuid
from datetime import UTC, datetime

import pytest

from mam.adapters.agents.codex import transcript as transcript_reader
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


def message(role, text):
    kind = {"user": "UserMessage", "assistant": "AgentMessage"}[role]
    return event("item_completed", item={"type": kind, "content": [{"type": "text", "text": text}]})


STARTED, COMPLETE = event("task_started"), event("task_complete")
ABORTED = event("turn_aborted", reason="interrupted")
LIMIT = "usage_limit_exceeded"
ITEM = line("response_item", {"type": "message", "role": "assistant", "content": []})


class Store:
    """A home with rollouts."""

    def __init__(self, home):
        self.home = home
        self.config = home / ".codex"
        self.stores = {"HOME": str(home)}

    def write(self, workspace, *entries, ident=None, raw=b"", age=0.0, day="2026/11/15", **meta):
        ident = ident or str(uuid.uuid4())
        path = self.config / "sessions" / day / f"rollout-2026-11-15T12-00-00-{ident}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        # As in a real rollout, most of the first line is instructions.
        about = {"id": ident, **meta, "cwd": workspace, "source": "cli", "thread_source": "user"} | meta
        first = line("session_meta", about | {"base_instructions": {"text": "x" * 20_000}})
        lines = [json.dumps(entry, separators=(",", ":")).encode() + b"\n" for entry in (first, *entries)]
        path.write_bytes(b"".join(lines) + raw)
        os.utime(path, (time.time() - age, time.time() - age))
        return ident

    def path(self, ident):
        (path,) = self.home.rglob(f"rollout-*{ident}.jsonl")
        return path

    def lock(self, ident, at):
        path = self.config / "thread-writer-locks" / f"{ident}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (at, at))

    def activity(self, *entries, raw=b"", locked=-60.0):
        ident = self.write("/w", *entries, raw=raw)
        if locked is not None:
            self.lock(ident, AT.timestamp() + locked)
        evidence = KIND.read_transcript_evidence(ident, "/w", self.stores)
        return (evidence[0].state, evidence[0].waiting_for) if evidence else None


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


class TestFinding:
    def test_a_conversation_is_on_disk_with_its_rollout(self, store) -> None:
        ident = store.write("/w")
        assert KIND.on_disk(ident, "/w", store.stores) is True
        # Codex resumes a conversation from any directory.
        assert KIND.on_disk(ident, "/other", store.stores) is True
        assert KIND.on_disk(str(uuid.uuid4()), "/w", store.stores) is False
        assert KIND.on_disk("../x", "/w", store.stores) is False
        assert KIND.on_disk(ident, "/w", {}) is None

    def test_a_store_that_a_variable_names(self, store, tmp_path) -> None:
        ident = store.write("/w")
        assert KIND.on_disk(ident, "/w", {"CODEX_HOME": str(store.config)}) is True
        assert KIND.on_disk(ident, "/w", {"CODEX_HOME": str(tmp_path / "other")}) is False

    def test_an_unreadable_store_is_unknown(self, store, monkeypatch) -> None:
        ident = store.write("/w")

        def refuse(path):
            raise PermissionError(path)

        monkeypatch.setattr(os, "listdir", refuse)
        assert KIND.on_disk(ident, "/w", store.stores) is None
        assert KIND.conversations("/w", store.stores) == []
        assert KIND.has_submitted("x", ident, store.stores, 0) is None
        assert KIND.read_transcript_evidence(ident, "/w", store.stores) == []
        assert KIND.read_transcript(ident, "/w", store.stores, 5) is None

    @pytest.mark.parametrize("day", ["2026/11/14", "2026/11/15", "2026/11/16"])
    def test_an_id_names_its_day_in_any_time_zone(self, store, day) -> None:
        time_hex = f"{int(AT.timestamp() * 1000):012x}"
        ident = f"{time_hex[:8]}-{time_hex[8:]}-7000-8000-000000000000"
        store.write("/w", ident=ident, day=day)
        assert KIND.on_disk(ident, "/w", store.stores) is True

    def test_mam_looks_everywhere_for_an_id_with_an_absurd_day(self, store) -> None:
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

    def test_other_files_are_ignored(self, store) -> None:
        ident = store.write("/w")
        folder = store.path(ident).parent
        (folder / "rollout-x.jsonl").write_text("{", encoding="utf-8")
        (folder / f"rollout-x-{uuid.uuid4()}.jsonl").write_bytes(b"\xff\x00 no json")
        (store.config / "sessions" / "a file").write_text("", encoding="utf-8")
        assert KIND.conversations("/w", store.stores) == [ident]


class TestPurge:
    def test_a_purge_deletes_the_rollout_and_its_snapshot(self, store) -> None:
        ident, other = store.write("/w"), store.write("/w")
        snapshots = store.config / "shell_snapshots"
        snapshots.mkdir()
        for conversation in (ident, other):
            (snapshots / f"{conversation}.1.sh").touch()
        for folder, path in KIND.purge_paths(ident, "/w", store.stores):
            assert remove(folder, path)
        assert not list(store.home.rglob(f"*{ident}*"))
        assert len(list(store.home.rglob(f"*{other}*"))) == 2
        assert KIND.purge_paths("../..", "/w", store.stores) == []

    def test_a_conversation_that_a_fork_needs_is_not_purged(self, store) -> None:
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
            # Other entries show no activity.
            ([STARTED, COMPLETE, ITEM, event("token_count"), line("turn_context", {})], ("idle", None)),
            # mam does not read as far back as the beginning of a long turn.
            ([STARTED, ITEM | {"x": "y" * 300_000}, ITEM], ("working", None)),
            ([], None),
        ],
    )
    def test_the_activity_by_the_last_line_that_shows_it(self, store, entries, expected) -> None:
        assert store.activity(*entries) == expected

    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            ("2026-11-15 14:59", ("waiting", "limit, resets 11:30 PM")),
            ("2026-11-15 23:31", ("idle", None)),
            ("2026-11-16 07:00", ("idle", None)),
        ],
    )
    def test_the_agent_waits_until_the_end_of_a_limit(self, store, monkeypatch, now, expected) -> None:
        monkeypatch.setattr(time, "time", datetime.fromisoformat(now).timestamp)
        reached = {"message": "x. Try again at 11:30 PM.", "codex_error_info": LIMIT}
        noon = datetime(2026, 11, 15, 12).astimezone().isoformat()
        assert (
            store.activity(STARTED, event("task_complete", error=reached) | {"timestamp": noon}) == expected
        )

    def test_a_turn_whose_process_has_ended(self, store) -> None:
        """After a crash the rollout does not show that the turn has ended."""
        assert store.activity(STARTED, ITEM, locked=None) is None
        assert store.activity(STARTED, ITEM, locked=+60.0) == ("idle", None)
        assert store.activity(STARTED, COMPLETE, locked=None) == ("idle", None)

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
    def test_damaged_lines_are_ignored(self, store, raw) -> None:
        assert store.activity(STARTED, raw=raw) == ("working", None)

    def test_of_a_huge_rollout_only_the_end_is_read(self, store) -> None:
        ident = store.write("/w", STARTED)
        store.lock(ident, AT.timestamp() - 60)
        with store.path(ident).open("r+b") as file:
            file.truncate(1 << 30)
            file.seek(0, os.SEEK_END)
            file.write(b"\n" + json.dumps(COMPLETE).encode() + b"\n")
        tracemalloc.start()
        try:
            (evidence,) = KIND.read_transcript_evidence(ident, "/w", store.stores)
            assert KIND.read_transcript(ident, "/w", store.stores, 5) is not None
            assert tracemalloc.get_traced_memory()[1] < 100 * 1024 * 1024
        finally:
            tracemalloc.stop()
        assert evidence.state == "idle"


class TestSubmitted:
    def test_only_a_new_prompt_of_the_user_counts(self, store) -> None:
        ident = store.write("/w", message("user", "old"))
        since = KIND.transcript_size(ident, store.stores)
        with store.path(ident).open("ab") as file:
            for entry in (message("assistant", "answer"), message("user", "new\ttab")):
                file.write(json.dumps(entry).encode() + b"\n")
            file.write(json.dumps(message("user", "half")).encode()[:-3])
        for text, expected in (("new\ttab", True), (" new\ttab ", True), ("old", False), ("answer", False)):
            assert KIND.has_submitted(text, ident, store.stores, since) is expected
        assert KIND.has_submitted("half", ident, store.stores, since) is False
        assert KIND.has_submitted("old", ident, store.stores, 0) is True
        assert KIND.count_submitted("new\ttab", ident, store.stores, since) == 1
        assert KIND.has_submitted("old", "", store.stores, 0) is False
        assert KIND.transcript_size("", store.stores) == 0


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
            message("user", "question"),
            message("assistant", "first"),
            message("assistant", "second"),
            event("token_count", info=usage),
            message("user", "more"),
            raw=b"broken\n",
        )
        transcript = KIND.read_transcript(ident, "/w", store.stores, 2)
        assert [(turn.role, turn.text) for turn in transcript.turns] == [
            ("assistant", "first\nsecond"),
            ("user", "more"),
        ]
        assert transcript.turns[0].at == STAMP
        assert (transcript.model, transcript.tokens_in, transcript.tokens_out) == ("gpt", 22, 14)
        assert (transcript.context, transcript.window) == (11, 258400)
        assert KIND.read_transcript(ident, "/w", store.stores, 0).turns == []
        assert KIND.read_transcript(str(uuid.uuid4()), "/w", store.stores, 2) is None

    def test_tokens_of_the_cache(self, store) -> None:
        total = {"input_tokens": 22, "cached_input_tokens": 12, "cache_write_input_tokens": 3}
        ident = store.write("/w", event("token_count", info={"total_token_usage": total}))
        transcript = KIND.read_transcript(ident, "/w", store.stores, 0)
        assert (transcript.tokens_in, transcript.tokens_cache_read, transcript.tokens_cache_write) == (
            22,
            12,
            3,
        )

    def test_figures_of_a_wrong_type_are_ignored(self, store) -> None:
        ident = store.write(
            "/w",
            line("turn_context", {"model": 3}),
            event("token_count", info={"total_token_usage": [], "model_context_window": 10**400}),
            event("token_count", info=None),
            event("item_completed", item={"type": "UserMessage", "content": "no list"}),
            event("item_completed", item=None),
        )
        transcript = KIND.read_transcript(ident, "/w", store.stores, 2)
        assert (transcript.turns, transcript.model, transcript.tokens_in, transcript.window) == (
            [],
            None,
            None,
            None,
        )


def totals(total, last=None, **more):
    """Return a line with the totals and the last request, each as (input, cached, output)."""

    def usage(numbers):
        return dict(zip(("input_tokens", "cached_input_tokens", "output_tokens"), numbers, strict=True))

    info = {"total_token_usage": {**usage(total), **more}, "last_token_usage": usage(last or total) | more}
    return event("token_count", info=info)


def turn_of(model, **more):
    return line("turn_context", {"model": model, **more})


class TestTokenCounts:
    def counts(self, store, *entries, raw=b"", **meta):
        ident = store.write("/w", *entries, raw=raw, **meta)
        counts = KIND.read_transcript(ident, "/w", store.stores, 0).token_counts
        if counts is None:
            return None
        names = ("model", "input", "cache_read", "cache_write", "output", "is_one_request")
        return [tuple(getattr(count, name) for name in names) for count in counts]

    def test_each_request_counts_once_by_the_model_of_its_turn(self, store) -> None:
        entries = [
            turn_of("gpt-5"),
            totals((10, 0, 2)),
            totals((10, 0, 2)),
            event("token_count", info=None),
            turn_of("gpt-5-mini", service_tier="default"),
            totals((30, 15, 5), (20, 15, 3)),
        ]
        assert self.counts(store, *entries) == [
            ("gpt-5", 10, 0, 0, 2, True),
            ("gpt-5-mini", 5, 15, 0, 3, True),
        ]

    def test_what_was_written_to_the_cache_is_a_part_of_the_input(self, store) -> None:
        assert self.counts(store, turn_of("m"), totals((10, 4, 2), cache_write_input_tokens=5)) == [
            ("m", 1, 4, 5, 2, True)
        ]

    def test_totals_that_grew_by_more_than_a_request_are_several(self, store) -> None:
        entries = [turn_of("m"), totals((10, 0, 2)), totals((50, 0, 9), (20, 0, 3))]
        assert self.counts(store, *entries)[1] == ("m", 40, 0, 0, 7, False)

    def test_several_requests_of_several_models_are_unknown(self, store) -> None:
        entries = [turn_of("m"), totals((10, 0, 2)), turn_of("n"), totals((50, 0, 9), (20, 0, 3))]
        assert self.counts(store, *entries) is None

    def test_totals_of_before_the_rollout_are_unknown(self, store) -> None:
        entries = [turn_of("m"), totals((1000, 0, 20), (10, 0, 2)), totals((1010, 0, 22), (10, 0, 2))]
        assert self.counts(store, *entries) is None

    @pytest.mark.parametrize("entry", [turn_of("m", service_tier="priority"), turn_of(3), STARTED])
    def test_a_turn_of_another_price_or_without_a_model(self, store, entry) -> None:
        assert self.counts(store, entry, totals((10, 0, 2))) == [(None, 10, 0, 0, 2, True)]

    @pytest.mark.parametrize(
        "entry",
        [
            totals((5, 0, 1)),
            totals((20, 30, 1)),
            totals(("20", 0, 1)),
            totals((-20, 0, 1)),
            event("token_count", info={"total_token_usage": []}),
        ],
    )
    def test_totals_that_contradict_themselves_are_unknown(self, store, entry) -> None:
        assert self.counts(store, turn_of("m"), totals((10, 0, 2)), entry) is None

    def test_a_damaged_line_may_be_that_of_another_model(self, store) -> None:
        entries = [turn_of("m"), totals((10, 0, 2))]
        assert self.counts(store, *entries, raw=b'{"type": "turn_context", "pay\n') is None

    def test_the_end_of_a_large_rollout_is_a_part(self, store, monkeypatch) -> None:
        monkeypatch.setattr(transcript_reader, "_LARGEST", 1000)
        assert self.counts(store, turn_of("m"), totals((10, 0, 2))) is None
