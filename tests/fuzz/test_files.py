"""Files and answers of programs that mam reads, with any content: a value or one of our errors."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from tests.adapters.tmux.test_parse import NONCE, row
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.bad_input import (
    DEPTH,
    TEXTS,
    as_json,
    damaged,
    examples,
    json_lines,
    json_texts,
    strange_documents,
    texts,
    values,
)
from tests.fuzz.command import run

import mam
from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Attachment, Launch, Request
from mam.adapters.git import head as git_head
from mam.adapters.git import parse as git_parse
from mam.adapters.mqtt.connection import Connection
from mam.adapters.store.files import exec_files, team_presets
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.store.yaml import yaml_text
from mam.adapters.system import mounts, process, program_lookup
from mam.adapters.tmux import launcher, parse, window
from mam.adapters.tmux.parse import Listing
from mam.app.brokers import config as brokers
from mam.app.context.context import Context
from mam.app.context.settings import load_settings
from mam.app.monitor import backup_removal
from mam.app.observation import prices
from mam.app.sessions import worktree
from mam.core import (
    command_end,
    command_template,
    job_file_format,
    job_rules,
    monitor_card_comments,
    task_format,
    times,
)
from mam.core.broker_address import Broker
from mam.core.errors import MamError
from mam.core.prices import cost
from mam.core.settings import USER_ONLY, Settings
from mam.core.team_plan import TeamPlan
from mam.core.token_count import TokenCount

JOB = "1f00ab42"


class Root:
    """A root with a registry, and its context."""

    def __init__(self, place: Path) -> None:
        self.folder = place
        self.fleet = mam.open(str(place))
        self.fleet.init()
        self.context = self.fleet._access.context


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Iterator[Root]:
    with pytest.MonkeyPatch.context() as patch:
        settle_in(tmp_path_factory.mktemp("home"), patch)
        made = Root(tmp_path_factory.mktemp("root"))
        yield made
        made.fleet.close()


SETTINGS: dict[str, Any] = {
    "tmux_server": "work",
    "permissions": "ask",
    "job_permissions": "skip",
    "ready_timeout": 60.5,
    "validation_timeout": 600,
    "known_versions": ["claude 2.1.300"],
    "resident": "auto",
    "notify_desktop": False,
    "notify_command": ["notify-send", "mam"],
    "codex": {"bypass_hook_trust": True},
    "messages": ["reviewer -> developer", "* -> lead"],
    "answers": "parent",
    "broker": {"url": "mqtts://me@host:8883", "keepalive": 15, "prefix": "a/b", "protocol": "5"},
    "mcp": {"message": "descendants", "stop": "descendants", "allow": ["kill"]},
    "keep_jobs": "90d",
    "keep_log": "forever",
    "safe_roots": ["/abs/demo"],
}


def as_toml(document: Any) -> bytes:
    """Return a document as TOML, as far as its values exist there."""
    if not isinstance(document, dict):
        return str(document).encode("utf-8", "replace")
    lines = [f"{json.dumps(str(key))} = {_toml_value(value)}" for key, value in document.items()]
    return "\n".join(lines).encode("utf-8", "replace")


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key))} = {_toml_value(inner)}" for key, inner in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value) if value is not None else '""'


TOML = some.one_of(strange_documents([SETTINGS]).map(as_toml), damaged([as_toml(SETTINGS)]))


PRICES: dict[str, Any] = {
    "date": "2026-11-20",
    "models": {
        "gpt-5": {"input": 1.25, "output": 10, "cache_read": 0.125, "cache_write": 1.25},
        "m": {"input": 1, "output": 2, "long": {"over": 200_000, "input": 2, "output": 3.5}},
    },
}
COUNTS = [TokenCount(name, input=5, output=7, cache_read=300_000) for name in ("gpt-5", "m", "claude-opus-5")]


@examples(60)
@given(content=some.one_of(strange_documents([PRICES]).map(as_toml), damaged([as_toml(PRICES)])))
@example(content=as_toml(PRICES))
@example(content=b"models = " + b"[" * DEPTH)
@example(content=b"[models.m]\ninput = 0x" + b"f" * 5000)
def test_a_price_table_is_valid_or_a_warning(root, content):
    user = Path(os.environ["HOME"]) / ".config" / "mam" / "prices.toml"
    user.write_bytes(content)
    warnings: list[str] = []
    try:
        with oracle.unchanged(user):
            found = oracle.read(prices.load_prices, root.context.replace(warn=warnings.append))
    finally:
        user.unlink()
    assert bool(warnings) == (found is None)
    assert all(oracle.is_plain(text) for text in warnings)
    for count in COUNTS:
        usd = cost([count], found) if found else None
        assert usd is None or 0 <= usd < 10**9


@examples(60)
@given(content=TOML, of_root=some.booleans())
@example(content=as_toml(SETTINGS), of_root=True)
@example(content=as_toml(SETTINGS), of_root=False)
@example(content=b"a = " + b"[" * DEPTH, of_root=True)
@example(content=b"a" * DEPTH + b".b = 1", of_root=True)
@example(content=b".".join([b"a"] * DEPTH) + b" = 1", of_root=True)
@example(content=b"\xef\xbb\xbfresident = 'off'", of_root=False)
@example(content=b"ready_timeout = " + b"9" * 5000, of_root=False)
def test_a_settings_file_is_valid_or_refused(root, content, of_root):
    user = Path(os.environ["HOME"]) / ".config" / "mam" / "config.toml"
    path = root.folder / "mam.toml" if of_root else user
    before = user.read_bytes()
    path.write_bytes(content)
    warnings: list[str] = []
    try:
        with oracle.unchanged(path):
            found = oracle.read(load_settings, str(root.folder), os.environ, warnings.append)
    finally:
        (root.folder / "mam.toml").unlink(missing_ok=True)
        user.write_bytes(before)
    if isinstance(found, MamError):
        assert found.code == "invalid_settings"
        return
    assert all(oracle.is_plain(text) for text in warnings)
    for name in ("ready_timeout", "validation_timeout"):
        assert 0 < getattr(found, name) < 10**6
    usual = Settings()
    if of_root:
        for name in USER_ONLY:
            assert getattr(found, name) == getattr(usual, name), f"a repository sets {name}"
        assert found.permissions in ("default", "ask")
        for name in ("keep_jobs", "keep_log", "keep_messages"):
            assert getattr(found, name) is None or getattr(found, name) >= getattr(usual, name)


def test_the_settings_that_are_damaged_here_are_valid():
    """A repository's file has no effect on what only the user sets."""
    document = {key: value for key, value in SETTINGS.items() if key != "permissions"}
    assert Settings().apply(document, "f") == []
    settings = Settings()
    ignored = settings.apply(document, "f", of_root=True)
    assert {*USER_ONLY} & document.keys() <= set(ignored)


DOTENV = b"# broker\nexport MAM_BROKER='mqtt://me@127.0.0.1:1'\nMAM_BROKER_PASSWORD=\"x\"\nA=b=c\n"
VARIABLES = (
    "MAM_BROKER",
    "MAM_BROKER_PASSWORD",
    "MAM_BROKER_PASSWORD_FILE",
    "MAM_BROKER_CA_FILE",
    "MAM_BROKER_PREFIX",
    "MAM_BROKER_PROTOCOL",
)


@examples(80)
@given(
    content=damaged([DOTENV]),
    given_variables=some.dictionaries(
        some.sampled_from(VARIABLES),
        texts.filter(lambda text: "\0" not in text) | some.just("mqtt://me@127.0.0.1:1"),
    ),
)
def test_a_broker_of_a_dotenv_file_and_of_variables_is_valid_or_refused(root, content, given_variables):
    (root.folder / ".env").write_bytes(content)
    with mam.open(str(root.folder), environ={**os.environ, **given_variables}) as fleet:
        check_broker(fleet._access.context)
    (root.folder / ".env").unlink()


def check_broker(context: Context) -> None:
    found = oracle.read(brokers.find, context)
    if isinstance(found, Broker):
        password = oracle.read(brokers.password, context, found)
        assert password is None or isinstance(password, str | MamError)
        assert oracle.is_plain(found.address) and oracle.is_plain(found.prefix)
        assert isinstance(oracle.read(Connection, found, None), Connection | MamError)
    named = Broker("mqtt://me@127.0.0.1:1", password_dotenv="MAM_BROKER_PASSWORD")
    assert isinstance(oracle.read(brokers.password, context, named), str | MamError)


RECORD: dict[str, Any] = {
    "schema_version": 1,
    "job_id": JOB,
    "status": "running",
    "created_at": "2026-11-15T08:00:00Z",
    "prompt": "do it",
    "agent": "claude",
    "workdir": "/abs/demo",
    "broker": None,
    "timeout_sec": 3600,
    "expected_artifacts": ["report.md"],
    "attempt": 1,
    "last_seq": 2,
    "auth_token": "0" * 64,
    "round": 1,
}
LOG = [
    {
        "event": "started",
        "seq": 1,
        "data": {"attempt": 1},
        "detail": "x",
        "timestamp": "2026-11-15T08:00:00Z",
    },
    {"event": "progress", "seq": 2, "data": {}, "number": 2},
]


@examples(12)
@given(content=json_texts([RECORD]), log=json_lines(LOG), reports=some.booleans())
def test_the_record_of_a_job_of_the_original_system_is_listed_or_left_out(root, content, log, reports):
    folder = root.folder / "records"
    folder.mkdir(exist_ok=True)
    (folder / f"{JOB}.json").write_bytes(content)
    (folder / f"{JOB}.events.log").write_bytes(log)
    before = ["--workspace", str(root.folder), "job"]
    place = ["--registry-dir", str(folder)]
    with oracle.unchanged(folder):
        for line in (
            [*before, "list", *place],
            [*before, "status", JOB, *place],
            [*before, "logs", JOB, *place],
        ):
            for more in ([], ["--json"]):
                code, out, err = run([*line, *more])
                assert code in (0, 1), (line, out, err)
                assert oracle.is_printable_screen(out + err)
                assert not more or json.loads(out) is not None
    found = job_file_format.parse_record(_json(content))
    if found is not None:
        assert found["status"] in tuple(job_rules.JobStatus)
        assert oracle.read(job_file_format.parse_facts, found) is not None
    if reports:
        code, out, err = run([*before, "event", "--job", JOB, "--event", "completed", *place, "--json"])
        assert code in (0, 1), (out, err)
        with root.fleet.for_thread() as fleet:
            oracle.read(fleet.jobs.forget, JOB)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


TEAM = {
    "name": "mine",
    "about": "two of them",
    "layout": "main-vertical",
    "roles": [{"role": "dev", "agent": "claude", "prompt": "build", "model": "opus"}, {"role": "qa"}],
}
PRESETS = sorted((Path(mam.__file__).parent / "presets").glob("*.yaml"))


@examples(80)
@given(content=json_texts([TEAM]) | damaged([path.read_bytes() for path in PRESETS]))
def test_a_team_file_is_a_team_or_refused(root, content):
    path = root.folder / "team.yaml"
    path.write_bytes(content)
    found = oracle.read(team_presets.load, str(path), os.environ)
    assert isinstance(found, TeamPlan | MamError)
    if isinstance(found, TeamPlan):
        assert found.roles
        for role in found.roles:
            assert oracle.is_plain(role.role)


def test_every_preset_is_a_team():
    for path in PRESETS:
        assert isinstance(team_presets.load(str(path), os.environ), TeamPlan)


@examples(80)
@given(text=texts)
@example(text="research")
def test_a_preset_of_any_name_is_found_or_refused(text):
    if "\0" not in text:
        found = oracle.read(team_presets.load, text, os.environ)
        assert isinstance(found, TeamPlan if text in {path.stem for path in PRESETS} else MamError)


@examples(80)
@given(note=json_texts([{"registry": "/elsewhere/.hermes/agent-sessions.yaml", "session": "s_00000001"}]))
@example(note=b"[" * DEPTH)
@example(note=b"null")
def test_the_note_of_a_worktree_is_of_another_root_or_not(root, note):
    """git keeps the note beside the worktree, where every program can write."""

    class Worktrees:
        """Stands in for git, and has this note."""

        def signature(self, _path: str) -> str:
            return note.decode("utf-8", "replace")

    is_of_another = oracle.read(worktree._is_of_another_root, root.context, Worktrees(), str(root.folder))
    assert isinstance(is_of_another, bool)


ENDS = [
    {"exit_status": 0},
    {"signal": 15},
    {"failure": "no such program", "reason": "exec", "exit_status": 127},
]


@examples(80)
@given(content=json_texts(ENDS), last=texts)
def test_the_end_of_a_command_is_an_end_or_none(content, last):
    end = oracle.read(command_end.parse, content)
    if end is not None:
        assert oracle.is_plain(end.detail(last))
        json.dumps(end.facts(), allow_nan=False)
    for status in (None, 0, 1, 137, -1, 10**6):
        assert oracle.is_plain(command_end.without_record(status).detail(last))


@examples(40)
@given(
    whole=damaged([b"a line\n" * 100, b"\xff\n\n", b""]),
    parts=some.dictionaries(
        texts.filter(lambda text: 0 < len(text) < 80 and not set(text) & {"/", "\0"}),
        some.binary(max_size=20),
        max_size=3,
    ),
)
def test_the_output_of_a_command_is_read_whatever_lies_beside_it(root, whole, parts):
    folder = root.folder / "output"
    folder.mkdir()
    path = folder / "output.log"
    path.write_bytes(whole[:4096].ljust(exec_files.HEAD, b"x") if parts else whole)
    for name, content in parts.items():
        try:
            (folder / f"output.log.{name}").write_bytes(content)
        except (OSError, UnicodeEncodeError):
            continue
    found = oracle.read(exec_files.read_output, str(path))
    assert isinstance(found, bytes)
    assert isinstance(oracle.read(exec_files.last_line, str(path)), str)
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()


HOLDER = {"pid": 4_000_001, "start": 77, "boot": "x", "version": "0.2.0", "namespace": 1}


@examples(60)
@given(content=json_texts([HOLDER, {**HOLDER, "boot": process.boot_id(), "pid": os.getpid()}]))
def test_the_lock_of_a_resident_has_a_holder_whatever_its_file_says(root, content):
    path = root.folder / "lock"
    path.write_bytes(content)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        holder = oracle.read(ProcessLock(str(path)).holder)
        assert isinstance(holder, dict)
        oracle.read(process.Identity.from_json, holder)
    assert oracle.read(ProcessLock(str(path)).holder) is None


@examples(60)
@given(content=json_texts([[1, 1794744000.0]]))
def test_the_mark_of_the_last_removal_is_a_mark_or_none(root, content):
    path = root.folder / "last"
    path.write_bytes(content)
    found = oracle.read(backup_removal._last, str(path))
    assert found is None or (type(found[0]) is int and math.isfinite(found[1]))


@examples(40)
@given(content=json_texts([{"name": "@anthropic-ai/claude-code", "version": "2.1.300"}]))
def test_the_package_of_a_program_has_a_version_or_none(root, content):
    (root.folder / "package.json").write_bytes(content)
    found = oracle.read(
        program_lookup.package_version, str(root.folder / "cli.js"), ("@anthropic-ai/claude-code",)
    )
    assert found is None or oracle.is_plain(found)


LAUNCH = b"\0".join(
    [b"mam-launch-1", b"/abs", b"022", b"2", b"/bin/sh", b"-c", b"1", b"A=b", b"mam-launch-1"]
)


@examples(80)
@given(content=damaged([LAUNCH]))
def test_a_launch_file_is_a_launch_or_unusable(content):
    with oracle.bounded():
        try:
            launch = launcher.Launch(content)
        except launcher.Unusable:
            return
    assert launch.argv
    assert launch.umask is None or isinstance(launch.umask, int)


@examples(60)
@given(
    text=json_texts(
        [{"hooks": {"Stop": []}, "permissions": {"defaultMode": "plan"}, "mcp": {}, "permission": {}}]
    )
)
def test_settings_in_the_arguments_and_variables_of_an_agent_are_joined_or_refused(root, text):
    """A person gives them to an agent program, and mam adds its own hooks and tools."""
    words = text.decode("utf-8", "replace").replace("\0", "")
    attachment = Attachment("mam", ["mam", "mcp"], {"A": "b"})
    for name, command, environ in (
        ("claude", ["claude", "--settings", words], {}),
        ("claude", ["claude", f"--settings={words}"], {}),
        ("opencode", ["opencode"], {"OPENCODE_CONFIG_CONTENT": words}),
        ("codex", ["codex", "-c", words], {}),
        ("gemini", ["gemini", words], {}),
    ):
        request = Request(
            command=command,
            program=f"/usr/bin/{name}",
            environ={"HOME": str(root.folder), **environ},
            stores={"HOME": str(root.folder)},
            hook="/abs/hook.sh",
            attachment=attachment if kind(name).takes_mcp else None,
            permissions="ask",
        )
        found = oracle.read(kind(name).launch, request)
        assert isinstance(found, Launch | MamError)
        if isinstance(found, Launch):
            assert all(isinstance(word, str) for word in found.argv)


TMUX_TEXTS = [b"name", b"s_00000001", b"2f", b"/dev/pts/1", b"", b"title", b"/abs/demo", b"claude"]
LISTINGS = [
    row(TMUX_TEXTS, full=True),
    row(TMUX_TEXTS[:5]) * 3,
    f"{NONCE}7,3,4,1700000000\nscreen\n{NONCE}9\n".encode(),
]


@examples(100)
@given(answer=damaged(LISTINGS))
def test_an_answer_of_tmux_is_a_listing_or_unconfirmed(answer):
    for full in (True, False):
        listing = oracle.read(parse.listing, answer, NONCE, full)
        assert isinstance(listing, Listing)
        assert listing.confirmed or (listing.panes == [] and listing.error)
        for pane in listing.panes:
            json.dumps([pane.id, pane.mark, pane.session_name])
    assert isinstance(oracle.read(parse.brief_listing, answer, NONCE), Listing)
    for capture in oracle.read(parse.captures, answer, NONCE).values():
        assert min(capture.cursor_x, capture.cursor_y, capture.written_at) >= 0
    oracle.read(parse.look_parts, answer, NONCE)
    text = answer[:2000].decode("utf-8", "replace")
    for read in (parse.version, parse.options):
        oracle.read(read, text)
    oracle.read(parse.decode_root, answer[:2000])


@examples(60)
@given(answer=damaged([b"@1,200,50,0,%1,1,\n@1,200,50,1,%2,0,\n"]))
def test_an_answer_about_a_window_is_read(answer):
    found = oracle.read(window.Window, "@1", answer)
    assert all(isinstance(number, int) for number in (found.width, found.height))


STAT = b"4951 (a) b) S 1 4951 4951 34816 4951 4194304 1 0 0 0 0 0 0 0 20 0 1 0 77 1 1 18446744073709551615\n"
LOCKS = b"1: FLOCK  ADVISORY  WRITE 4951 fe:00:15353553 0 EOF\n1: -> FLOCK ADVISORY WRITE 1 fe:00:1 0 EOF\n"
MOUNTS = b"36 35 98:0 /mnt1 /mnt\\040x rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"


@examples(80)
@given(
    content=damaged(
        [STAT, LOCKS, MOUNTS, b"Name:\tx\nNSpid:\t1\t2\nUid:\t0\t0\t0\t0\n", b"A=b\0MAM_SESSION=s\0"]
    )
)
def test_a_file_of_proc_is_read_or_says_nothing(content):
    """A program chooses its own name, arguments and variables, and a mount its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_read", lambda _path: content)
        facts = oracle.read(process.stat, 4951)
        assert facts is None or isinstance(facts.parent, int)
        assert all(isinstance(pid, int) for pid in oracle.read(process.lockers, 15353553))
        oracle.read(process.command_line, 4951)
        oracle.read(process.environment, 4951)
        oracle.read(process.control_groups, 4951)
    for point, name in oracle.read(mounts.parse_mountinfo, content):
        assert isinstance(point, str) and isinstance(name, str)
    oracle.read(mounts.parse_mount_output, content.decode("utf-8", "replace"))
    oracle.read(mounts.filesystem_of, "/mnt x", oracle.read(mounts.parse_mountinfo, content))


WORKTREES = b"worktree /abs/demo\0HEAD 1f00\0branch refs/heads/main\0\0worktree /abs/x\0bare\0locked why\0\0"
STATUS = b"# branch.oid 1f00\0# branch.head main\0001 .M N... 100644 100644 100644 a b file\0? new\0u x\0"


@examples(60)
@given(answer=damaged([WORKTREES, STATUS, b"160000 1f00 0\tsub\0100644 x 0\ty\0", b"a\nb\n"]))
def test_an_answer_of_git_is_read(answer):
    for end in (b"\0", b"\n"):
        assert all(entry.path is not None for entry in oracle.read(git_parse.entries, answer, end))
    oracle.read(git_parse.status, answer)
    oracle.read(git_parse.submodules, answer)
    oracle.read(git_parse.lines, answer)


@examples(60)
@given(content=damaged([b"ref: refs/heads/main\n", b"1f00" * 10 + b"\n", b"gitdir: /a/.git/worktrees/x\n"]))
@example(content=b"ref: refs/heads/a\nb")
@example(content=b"gitdir: \0")
def test_the_files_of_a_git_folder_are_read(content):
    found = oracle.read(git_head.parse_head, content)
    assert found is None or bool(found.branch) != bool(found.commit)
    named = oracle.read(git_head.parse_git_file, content)
    assert named is None or (named and b"\0" not in named)


@examples(60)
@given(text=texts, value=values)
def test_small_texts_of_people_and_programs_are_read_or_refused(text, value):
    assert oracle.read(times.parse_stamp, value) is None or isinstance(value, str)
    check_small_text(text)


def check_small_text(text: str) -> None:
    for read in (
        task_format.parse,
        task_format.parse_text,
        task_format.parse_role,
        task_format.parse_result,
        times.parse_span,
    ):
        found = oracle.read(read, text) if read is not times.parse_span else _span(text)
        assert found is not None
    oracle.read(program_lookup.parse_version, text)
    oracle.read(yaml_text.parse, text.encode("utf-8", "surrogatepass"), "f")
    assert isinstance(oracle.read(monitor_card_comments.verdict_of, 0, text), str)
    for body in (text, f"@mam {text}", f"stop {text}"):
        oracle.read(monitor_card_comments.says_stop, "somebody", body)
        oracle.read(monitor_card_comments.is_unclear, "somebody", body)
    command = ["run", text, f"{{prompt}}{text}", "{"]
    if oracle.read(command_template.check, command) is None:
        oracle.read(command_template.expand, command, prompt="p", prompt_file="f", workdir="w")


def _span(text: str) -> Any:
    """Read a duration as the command line does."""
    from mam.surfaces.cli.parser import span

    return oracle.read(span, text)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_each_strange_text_as_the_answer_of_a_program(text):
    data = text.encode("utf-8", "surrogatepass")
    check_small_text(text)
    assert not oracle.read(parse.listing, data, NONCE).panes
    assert command_end.parse(data) is None
    assert oracle.read(git_parse.entries, data) == []
    assert as_json(text)
