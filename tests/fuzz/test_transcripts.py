"""Transcripts, state files and databases of the agent programs: half written, damaged, or by another version.

Whatever a file holds, each reader of its kind returns a value, and leaves the file as it is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.agents.hermes.test_kind import BY_MODEL, CACHE, SCHEMA
from tests.adapters.agents.opencode.test_conversation_database import TABLES as OPENCODE_SCHEMA
from tests.fuzz import agent_records as records
from tests.fuzz import oracle
from tests.fuzz.agent_records import HERMES, OPENCODE, UUID, WORKSPACE
from tests.fuzz.bad_input import TEXTS, as_json, damaged, examples, json_lines, json_texts, texts, values

from mam.adapters.agents import practice
from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.claude import files as claude_files
from mam.adapters.agents.claude import process_state, transcript
from mam.adapters.agents.codex import files as codex_files
from mam.adapters.agents.gemini import files as gemini_files
from mam.adapters.agents.gemini import record as gemini_record
from mam.adapters.agents.kind import Screen, Transcript
from mam.app.observation.prices import shipped_prices
from mam.core.activity import IDLE, UNKNOWN, WAITING, WORKING
from mam.core.prices import cost

HERMES_SCHEMA = SCHEMA + CACHE + BY_MODEL
PRICES = shipped_prices()
PID = records.CLAUDE_STATE["pid"]


class Place:
    """Where one file of an agent program lies, and all that reads it."""

    def __init__(self, path: str, name: str, known: some.SearchStrategy[bytes], **more: Any) -> None:
        self.path = path
        self.kind = kind(name)
        self.contents = known
        self.variable = more.get("variable", "HOME")
        self.beside: dict[str, bytes] = more.get("beside", {})
        self.more: Callable[[Path, dict[str, str]], None] = more.get("more", lambda _path, _stores: None)

    def check(self, home: Path, content: bytes, conversation: str = UUID) -> None:
        stores = {self.variable: str(home)}
        for name, beside in self.beside.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(beside)
        path = home / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        with oracle.unchanged(home):
            check_kind(self.kind, conversation, stores)
            oracle.read(self.more, path, stores)


def check_kind(agent: Any, conversation: str, stores: dict[str, str]) -> None:
    """Call everything of a kind that reads what its program wrote, and check what is shown of it."""
    place = (conversation, WORKSPACE, stores)
    assert oracle.read(agent.on_disk, *place) in (True, False, None)
    for evidence in oracle.read(agent.read_transcript_evidence, *place):
        assert evidence.state in (IDLE, WORKING, WAITING, UNKNOWN)
        assert isinstance(evidence.detail, str)
        json.dumps([evidence.at, evidence.detail, evidence.waiting_for], allow_nan=False)
    for turns in (0, 1, 50):
        check_transcript(oracle.read(agent.read_transcript, *place, turns), turns)
    found = oracle.read(agent.conversations, WORKSPACE, stores)
    assert all(isinstance(name, str) for name in found)
    assert isinstance(oracle.read(agent.transcript_size, conversation, stores), int)
    for text in ("do it", ""):
        assert oracle.read(agent.has_submitted, text, conversation, stores, 0) in (True, False, None)
        number = oracle.read(agent.count_submitted, text, conversation, stores, 0)
        assert number is None or number >= 0
    for _store, below in oracle.read(agent.purge_paths, *place) + oracle.read(
        agent.leftovers, WORKSPACE, stores
    ):
        assert ".." not in Path(below).parts and not Path(below).is_absolute(), "a purge stays in the store"
    for command in agent.identity_commands("one", "blue"):
        oracle.read(agent.identity_took_effect, command, conversation, stores, Screen(""))
    if agent.name not in ("codex", "gemini", "agy"):
        # Those look at every process of the machine.
        for pid, start in oracle.read(agent.holders, conversation, stores):
            assert (type(pid), type(start)) == (int, int)


def check_transcript(read: Transcript | None, turns: int) -> None:
    if read is None:
        return
    assert len(read.turns) <= turns
    for turn in read.turns:
        assert isinstance(turn.text, str) and isinstance(turn.role, str) and isinstance(turn.at, str | None)
    for number in (
        *(read.tokens_in, read.tokens_out, read.context, read.window),
        *(read.tokens_cache_read, read.tokens_cache_write),
    ):
        assert number is None or (type(number) is int and number >= 0)
    assert read.model is None or isinstance(read.model, str)
    for count in read.token_counts or ():
        assert count.model is None or isinstance(count.model, str)
    assert cost(read.token_counts, PRICES) is None or 0 <= cost(read.token_counts, PRICES) < 10**12


def _of_claude(path: Path, stores: dict[str, str]) -> None:
    for queued in (True, False):
        assert all(isinstance(prompt, str) for prompt in transcript.prompts(str(path), 3, queued=queued))
    claude_files.paths_of(UUID, WORKSPACE, stores)


def _of_claude_state(_path: Path, stores: dict[str, str]) -> None:
    found = process_state.read_state(PID, 77, stores)
    assert found is None or (
        found[0].state in (IDLE, WORKING, WAITING) and isinstance(found[0].at, float | int)
    )


def _of_codex(path: Path, stores: dict[str, str]) -> None:
    for opened in (None, 0.0, 1e12):
        codex_files.read_turn(str(path), opened)
    codex_files.forks_of(UUID, stores)
    codex_files.has_notify(stores)


def _of_gemini(path: Path, stores: dict[str, str]) -> None:
    folder = gemini_files.project_folder(WORKSPACE, stores)
    if folder is None:
        return
    for prompt in gemini_record.log(folder):
        gemini_record.conversation_of(prompt, folder)
    gemini_record.last_prompt(UUID, folder)


_TMP = ".gemini/tmp/demo"
_CHAT = f"{_TMP}/chats/session-2026-11-15T12-00-{UUID[:8]}.jsonl"
_CHAT_LINES = b"\n".join(as_json(line) for line in records.GEMINI_LINES) + b"\n"
_PROJECTS = as_json({"projects": {WORKSPACE: "demo"}})
_LOG = as_json(records.GEMINI_LOG)
_ROLLOUT = f".codex/sessions/2026/11/15/rollout-2026-11-15T12-00-00-{UUID}.jsonl"
_CODEX_DAY = codex_files._days_of(UUID)[0]
PLACES = {
    "claude transcript": Place(
        f".claude/projects/{claude_files.project_key(WORKSPACE)}/{UUID}.jsonl",
        "claude",
        json_lines(records.CLAUDE_LINES),
        more=_of_claude,
    ),
    "claude state": Place(
        f".claude/sessions/{PID}.json", "claude", json_texts([records.CLAUDE_STATE]), more=_of_claude_state
    ),
    "codex rollout": Place(
        _ROLLOUT.replace("2026/11/15", _CODEX_DAY), "codex", json_lines(records.CODEX_LINES), more=_of_codex
    ),
    "codex config": Place(
        ".codex/config.toml", "codex", damaged([b'notify = ["x"]\n', b"[a]\nb = 1\n"]), more=_of_codex
    ),
    "gemini chat": Place(
        _CHAT,
        "gemini",
        json_lines(records.GEMINI_LINES),
        beside={".gemini/projects.json": _PROJECTS, f"{_TMP}/logs.json": _LOG},
        more=_of_gemini,
    ),
    "gemini log": Place(
        f"{_TMP}/logs.json",
        "gemini",
        json_texts([records.GEMINI_LOG]),
        beside={".gemini/projects.json": _PROJECTS, _CHAT: _CHAT_LINES},
        more=_of_gemini,
    ),
    "gemini projects": Place(
        ".gemini/projects.json",
        "gemini",
        json_texts([{"projects": {WORKSPACE: "demo"}}]),
        beside={_CHAT: _CHAT_LINES, f"{_TMP}/.project_root": WORKSPACE.encode()},
        more=_of_gemini,
    ),
    "gemini root": Place(
        f"{_TMP}/.project_root", "gemini", damaged([WORKSPACE.encode()]), beside={_CHAT: _CHAT_LINES}
    ),
    "practice transcript": Place(
        f"{practice._FOLDER}/{UUID}.jsonl",
        "practice",
        json_lines(records.PRACTICE_LINES),
        variable=practice.STORE,
    ),
    "agy map": Place(
        ".gemini/antigravity-cli/cache/last_conversations.json", "agy", json_texts([{WORKSPACE: UUID}])
    ),
    "hermes profile": Place(".hermes/active_profile", "hermes", damaged([b"coder\n", b"default"])),
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory) -> Iterator[Callable[[str], Path]]:
    made: dict[str, Path] = {}
    yield lambda name: made.setdefault(name, tmp_path_factory.mktemp("home"))


@pytest.mark.promise("P46")
@pytest.mark.parametrize("name", PLACES)
def test_a_file_of_an_agent_with_any_content_is_read_or_shows_nothing(homes, name):
    place = PLACES[name]

    @examples(40)
    @given(content=place.contents)
    def check(content):
        place.check(homes(name), content)

    check()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("claude transcript", records.CLAUDE_LINES),
        ("codex rollout", records.CODEX_LINES),
        ("gemini chat", records.GEMINI_LINES),
        ("practice transcript", records.PRACTICE_LINES),
    ],
)
def test_a_transcript_is_read_while_its_program_writes_it(homes, name, lines):
    """A reader sees any prefix of what the program is going to write."""
    whole = b"".join(as_json(line) + b"\n" for line in lines)
    # The cuts of one line stand for those of the others: a reader sees whole lines and the rest of one.
    last = len(whole) - len(as_json(lines[-1])) - 1
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 0x0A]
    for length in (0, *ends, *range(last, len(whole), 7)):
        PLACES[name].check(homes(name), whole[:length])


CELLS = values.filter(lambda value: isinstance(value, str | int | float | None)).map(
    lambda value: max(min(value, 2**63 - 1), -(2**63)) if type(value) is int else value
)


def fill(path: Path, schema: str, rows: list[tuple[str, dict[str, Any]]]) -> None:
    """Make a database anew with rows whose values may be anything that SQLite takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript("pragma synchronous=off;" + schema.replace(" not null", ""))
    for table, row in rows:
        marks = ",".join("?" * len(row))
        stored = [
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for value in row.values()
        ]
        connection.execute(f"insert or ignore into {table} ({','.join(row)}) values ({marks})", stored)
    connection.commit()
    connection.close()


@some.composite
def strange_rows(
    draw: some.DrawFn, rows: list[tuple[str, dict[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    """Draw rows of which one to four values are not what they should be."""
    drawn = [(table, dict(row)) for table, row in rows]
    for _ in range(draw(some.integers(1, 4))):
        _, row = draw(some.sampled_from(drawn))
        row[draw(some.sampled_from(list(row)))] = draw(CELLS)
    return drawn


def _opencode_rows(data: bytes, part: bytes) -> list[tuple[str, dict[str, Any]]]:
    text = data.decode("utf-8", "replace")
    tokens = {"tokens_input": 11, "tokens_output": 7, "tokens_cache_read": 5, "tokens_cache_write": 2}
    return [
        (
            "session",
            {
                "id": OPENCODE,
                "parent_id": None,
                "directory": WORKSPACE,
                "title": "t",
                "time_updated": 1,
                **tokens,
            },
        ),
        ("message", {"id": "m1", "session_id": OPENCODE, "time_created": 1000, "data": text}),
        (
            "part",
            {"id": "p1", "message_id": "m1", "session_id": OPENCODE, "data": part.decode("utf-8", "replace")},
        ),
    ]


OPENCODE_ROWS = some.builds(
    _opencode_rows, json_texts([records.OPENCODE_MESSAGE]), json_texts([records.OPENCODE_PART])
).flatmap(lambda rows: some.one_of(some.just(rows), strange_rows(rows)))


@examples(80)
@given(rows=OPENCODE_ROWS)
def test_a_database_of_opencode_with_any_values(homes, rows):
    home = homes("opencode")
    fill(home / "opencode" / "opencode.db", OPENCODE_SCHEMA, rows)
    with oracle.unchanged(home):
        check_kind(kind("opencode"), OPENCODE, {"XDG_DATA_HOME": str(home)})


def _hermes_rows(content: bytes) -> list[tuple[str, dict[str, Any]]]:
    text = content.decode("utf-8", "replace")
    session = {
        "id": HERMES,
        "source": "mam-1",
        "model": "m",
        "started_at": 1.0,
        "ended_at": None,
        "end_reason": None,
    }
    return [
        ("sessions", {**session, "cwd": WORKSPACE, "input_tokens": 3, "output_tokens": 4}),
        (
            "session_model_usage",
            {"session_id": HERMES, "model": "gpt-5", "task": "", "input_tokens": 3, "output_tokens": 4},
        ),
        (
            "sessions",
            {**session, "id": HERMES + "1", "end_reason": "new_session", "started_at": 0.5, "ended_at": 0.9},
        ),
        (
            "messages",
            {
                "session_id": HERMES,
                "role": "user",
                "content": text,
                "tool_calls": None,
                "timestamp": 1.5,
                "finish_reason": None,
            },
        ),
        (
            "messages",
            {
                "session_id": HERMES,
                "role": "assistant",
                "content": "x",
                "tool_calls": None,
                "timestamp": 2.5,
                "finish_reason": "stop",
            },
        ),
    ]


HERMES_ROWS = some.builds(_hermes_rows, json_texts([records.HERMES_PARTS])).flatmap(
    lambda rows: some.one_of(some.just(rows), strange_rows(rows))
)


@examples(80)
@given(rows=HERMES_ROWS)
def test_a_database_of_hermes_with_any_values(homes, rows):
    home = homes("hermes")
    fill(home / "state.db", HERMES_SCHEMA, rows)
    with oracle.unchanged(home):
        check_kind(kind("hermes"), HERMES, {"HERMES_HOME": str(home), "HERMES_SESSION_SOURCE": "mam-1"})


@pytest.mark.parametrize("name", ["opencode", "hermes"])
def test_a_database_with_damaged_bytes(homes, name):
    path, schema, rows, stores, conversation = {
        "opencode": (
            "opencode/opencode.db",
            OPENCODE_SCHEMA,
            _opencode_rows(as_json(records.OPENCODE_MESSAGE), as_json(records.OPENCODE_PART)),
            "XDG_DATA_HOME",
            OPENCODE,
        ),
        "hermes": ("state.db", HERMES_SCHEMA, _hermes_rows(b"do it"), "HERMES_HOME", HERMES),
    }[name]
    home = homes(f"damaged {name}")
    fill(home / path, schema, rows)
    whole = (home / path).read_bytes()

    @examples(40)
    @given(content=damaged([whole]))
    def check(content):
        (home / path).write_bytes(content)
        with oracle.unchanged(home):
            check_kind(kind(name), conversation, {stores: str(home), "HERMES_SESSION_SOURCE": "mam-1"})

    check()


@examples(60)
@given(conversation=texts | some.sampled_from(TEXTS), name=some.sampled_from(sorted(records.HOOKS)))
def test_a_conversation_of_any_name_is_not_looked_for_elsewhere(homes, conversation, name):
    """The name of a conversation comes from a hook, a file or a person, and becomes part of a path."""
    home = homes("names")
    variables = ("HOME", "XDG_DATA_HOME", "HERMES_HOME", practice.STORE)
    check_kind(kind(name), conversation, dict.fromkeys(variables, str(home)))
