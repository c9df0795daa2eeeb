"""What a transcript says about a session: usage, cost and last words. Nothing is started."""

from __future__ import annotations

import json
import uuid

import pytest

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Transcript, Turn, add_turn
from mam.app.context.context import open_context
from mam.app.observation import conversations
from mam.app.observation.status import add_details
from mam.app.observation.transcript import usage_and_last_words
from mam.core.token_count import TokenCount

MILLION = 1_000_000


@pytest.fixture
def context(home, tmp_path):
    opened = open_context(workspace=str(tmp_path))
    warnings: list[str] = []
    yield opened.replace(warn=warnings.append)
    opened.close()


@pytest.fixture
def facts(context, monkeypatch):
    """Return what is shown of a transcript."""

    def of(*records):
        left = list(records)
        monkeypatch.setattr(conversations, "open_conversation", lambda _context, _row: "c")
        monkeypatch.setattr(type(kind("claude")), "read_transcript", lambda *_: left.pop(0))
        row = {"agent": "claude", "workspace": "/w", "stores": {"HOME": "/none"}}
        return usage_and_last_words(context, [row] * len(records))

    return of


def transcript(*turns, **figures):
    return Transcript([Turn(*turn) for turn in turns], **figures)


def test_the_usage_has_the_cost_and_the_tokens_of_the_cache(facts) -> None:
    counts = [TokenCount("claude-sonnet-4-6", input=100, output=10, cache_read=900, cache_write=MILLION)]
    record = transcript(
        model="claude-sonnet-4-6",
        tokens_in=MILLION + 1000,
        tokens_out=10,
        tokens_cache_read=900,
        tokens_cache_write=MILLION,
        context=50_000,
        window=200_000,
        token_counts=counts,
    )
    (shown,) = facts(record)
    assert shown["usage"] == {
        "model": "claude-sonnet-4-6",
        "tokens_in": MILLION + 1000,
        "tokens_out": 10,
        "tokens_cache_read": 900,
        "tokens_cache_write": MILLION,
        "context": 50_000,
        "window": 200_000,
        "context_percent": 25.0,
        "cost_usd": 3.7507,
    }
    json.dumps(shown, allow_nan=False)


def test_a_part_of_a_conversation_and_an_unknown_model_have_no_cost(facts) -> None:
    part = transcript(model="claude-sonnet-4-6", tokens_in=5, tokens_out=5)
    unheard = transcript(model="m", tokens_in=5, token_counts=[TokenCount("m", input=5, output=0)])
    assert [shown["usage"]["cost_usd"] for shown in facts(part, unheard)] == [None, None]


def test_without_a_transcript_nothing_is_known(facts) -> None:
    assert facts(None) == [{"usage": None, "last_words": None}]


def test_many_rows_read_the_price_table_once(facts, monkeypatch) -> None:
    from mam.app.observation import transcript as module

    loads = []
    monkeypatch.setattr(module, "load_prices", loads.append)
    assert len(facts(transcript(), transcript(), None)) == 3
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([], None),
        ([("user", "hello")], None),
        ([("user", "hello"), ("assistant", "Done.")], "Done."),
        ([("assistant", "Done."), ("user", "more"), ("user", "and more")], "Done."),
        ([("assistant", " Two\n\nlines\twith\x1b[31m colour\u202e ")], "Two lines with[31m colour"),
        ([("assistant", "\x1b \n")], None),
        ([("assistant", "x" * 200)], "x" * 200),
        ([("assistant", "x" * 201)], "x" * 199 + "…"),
        ([("assistant", "one\n\n" * 100)], ("one " * 50)[:199] + "…"),
        ([("assistant", "\ud800 half")], "? half"),
    ],
)
def test_the_last_words_are_one_short_line(facts, turns, words) -> None:
    (shown,) = facts(transcript(*turns))
    assert shown["last_words"] == words


def test_the_last_words_follow_the_last_tool_call(facts) -> None:
    turns: list[Turn] = []
    for role, text in (("user", "do it"), ("assistant", "Let me see."), ("assistant", "All tests pass.")):
        add_turn(turns, role, text, None)
    (shown,) = facts(Transcript(turns))
    assert shown["last_words"] == "All tests pass."


def test_a_status_has_them_from_the_files_of_the_agent(context, home, monkeypatch) -> None:
    ident = str(uuid.uuid4())
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    message = {
        "id": "msg_1",
        "model": "claude-haiku-4-5-20251001",
        "content": [{"type": "text", "text": "Which one?"}],
        "usage": {"input_tokens": 1000, "output_tokens": 1000},
    }
    entries = [
        {"type": "user", "message": {"content": "go"}},
        {"type": "assistant", "message": message},
        {"type": "user", "message": {"content": "wait"}},
    ]
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / f"{ident}.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.setattr(conversations, "open_conversation", lambda _context, _row: ident)
    row = {"name": "one", "agent": "claude", "workspace": "/w", "stores": {"HOME": str(home)}, "pane": {}}
    shown = add_details(context, row)
    assert shown["last_words"] == "Which one?"
    assert shown["usage"]["cost_usd"] == 0.006
