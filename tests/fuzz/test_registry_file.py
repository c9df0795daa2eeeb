"""The registry file with any content: an edit that mam takes in whole, or a refusal that changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.store.making import Store, check_invariants, new_row
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.bad_input import DEPTH, TEXTS, damaged, examples, strange_documents
from tests.fuzz.command import run

import mam
from mam.adapters.store.yaml import document, yaml_text
from mam.core.errors import Damaged, MamError, RegistryCorrupt

MIB = 1024 * 1024
ROWS = [
    new_row(1, role="developer"),
    new_row(2, status="stopped", claude_session_id_own="c-2", note="mine"),
    new_row(3, status="terminated", termination_mode="auto-detected", zz=[1, "two", {"three": None}]),
]


class Template:
    """A root with three sessions, of which each example gets a copy."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.numbers = iter(range(10**9))
        store = Store(place / "template")
        store.add(*ROWS)
        store.registry.close()
        self.text = store.yaml.read_bytes()

    def copy(self) -> Store:
        """Return a root as the last change left it."""
        root = self.place / f"root-{next(self.numbers)}"
        shutil.copytree(self.place / "template", root)
        return Store(root)

    def empty(self) -> Store:
        """Return a root in which there is nothing yet."""
        root = self.place / f"root-{next(self.numbers)}"
        root.mkdir()
        return Store(root)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Iterator[Template]:
    memory = Path("/dev/shm")
    place = tmp_path_factory.mktemp("roots")
    if memory.is_dir():
        place = memory / f"mam-t-{place.parent.name}-{place.name}-{id(place)}"
        place.mkdir()
    yield Template(place)
    shutil.rmtree(place, ignore_errors=True)


def check_edit(store: Store, content: bytes) -> MamError | None:
    """Give a root this file: all of it becomes the registry, or mam refuses and touches nothing."""
    rows = store.rows()
    store.write(content)
    view = oracle.read(store.registry.view)
    assert store.yaml.read_bytes() == content, "a reader writes nothing"
    assert store.rows() == rows
    outcome = oracle.read(store.touch)
    if isinstance(outcome, MamError):
        assert isinstance(outcome, Damaged)
        assert isinstance(view, MamError) or outcome.code == "edit_refused", "who reads would believe it"
        assert str(store.yaml) in outcome.message
        assert store.yaml.read_bytes() == content, "a refused file is kept as it is"
        assert store.rows() == rows, "nothing is written from a refused file"
    else:
        running = {name for name, row in rows.items() if row["status"] == "running"}
        assert running <= store.rows().keys(), "a live session left the registry"
        for session_id, row in store.rows().items():
            for key in ("pane", "tmux_server", "workspace", "status", "created_at_epoch"):
                assert row[key] == rows[session_id][key], f"{key} is not for people to change"
        check_invariants(store)
    store.registry.close()
    shutil.rmtree(store.root)
    return outcome


def check_import(store: Store, content: bytes) -> MamError | None:
    """Give an empty root this file, as the original system or a repository leaves one."""
    store.yaml.parent.mkdir()
    store.yaml.write_bytes(content)
    outcome = oracle.read(store.touch)
    if isinstance(outcome, MamError):
        assert isinstance(outcome, Damaged)
        assert store.yaml.read_bytes() == content
        assert oracle.read(store.registry.view) is not None
        assert not store.db.exists() or store.rows() == {}
    else:
        check_invariants(store)
    store.registry.close()
    shutil.rmtree(store.root)
    return outcome


def as_yaml(value: Any) -> bytes:
    """Return a document as another program writes it."""
    try:
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"tmux_sessions: " + b"[" * DEPTH


def documents() -> some.SearchStrategy[bytes]:
    whole = {"schema_version": 2, "updated_at": "x", "agent_identities": {}, "tmux_sessions": ROWS}
    marks = some.sampled_from([b"", document.FIRST_LINE.encode(), document.LAST_LINE.encode()])
    return some.tuples(marks, strange_documents([whole]).map(as_yaml), marks).map(b"".join)


@pytest.mark.promise("P46")
@pytest.mark.promise("P4")
def test_a_file_of_any_content_is_an_edit_or_is_refused(template):
    outcomes: set[bool] = set()

    @examples(40)
    @given(content=damaged([template.text]) | documents())
    def check(content):
        outcomes.add(check_edit(template.copy(), content) is None)

    check()
    assert outcomes == {True, False}, "the examples are neither all valid nor all refused"


def test_a_first_file_of_any_content_is_imported_or_is_refused(template):
    outcomes: set[bool] = set()

    @examples(40)
    @given(content=damaged([template.text]) | documents())
    def check(content):
        outcomes.add(check_import(template.empty(), content) is None)

    check()
    assert outcomes == {True, False}


def _flipped(text: bytes, at: int, bit: int) -> bytes:
    return text[:at] + bytes([text[at] ^ (1 << bit)]) + text[at + 1 :]


def test_every_byte_changed_is_read_or_refused(template):
    """One bit of each byte of a file with one session."""
    store = template.empty()
    store.add(ROWS[1])
    text = store.yaml.read_bytes()
    store.registry.close()
    for at in range(len(text)):
        found = oracle.read(document.read, _flipped(text, at, at % 8), "f.yaml")
        assert isinstance(found, document.Document | RegistryCorrupt | None)


def test_a_changed_byte_is_an_edit_or_is_refused(template):
    for at in range(0, len(template.text), 61):
        check_edit(template.copy(), _flipped(template.text, at, at % 8))


@pytest.mark.long
def test_each_bit_of_each_byte_changed_is_an_edit_or_is_refused(template):
    for at in range(len(template.text)):
        for bit in range(8):
            check_edit(template.copy(), _flipped(template.text, at, bit))


def _named(text: bytes, name: bytes) -> bytes:
    return text.replace(b"note: mine", b"note: " + name)


REFUSED: dict[str, Callable[[bytes], bytes]] = {
    "a bomb of aliases": lambda text: (
        text
        + b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12))
    ),
    "a bomb of merges": lambda text: (
        text
        + b"a0: &a0 {k: v}\n"
        + b"".join(b"a%d: &a%d {<<: [*a%d, *a%d]}\n" % (n, n, n - 1, n - 1) for n in range(1, 30))
    ),
    "an anchor within itself": lambda text: text + b"a: &a [*a]\n",
    "an anchor twice": lambda text: text + b"a: &a 1\nb: &a 2\n",
    "an alias before its anchor": lambda text: text + b"a: *b\nb: &b 1\n",
    "a Python object": lambda text: _named(text, b"!!python/object/apply:os.system ['touch hit']"),
    "a Python name": lambda text: _named(text, b"!!python/name:os.system"),
    "a tag of its own": lambda text: _named(text, b"!run 'touch hit'"),
    "a binary value": lambda text: _named(text, b"!!binary aGVsbG8="),
    "a set": lambda text: _named(text, b"!!set {a, b}"),
    "a key twice in a session": lambda text: _named(text, b"mine\n  note: yours"),
    "a key twice": lambda text: text + b"a: 1\na: 2\n",
    "the sessions twice": lambda text: text + b"tmux_sessions: []\n",
    "a session twice": lambda text: text.replace(b"s_00000003", b"s_00000002"),
    "a name twice": lambda text: text.replace(b"demo-app-3-", b"demo-app-2-"),
    "a key that is a list": lambda text: text + b"? [a]\n: b\n",
    "deep brackets": lambda text: _named(text, b"[" * DEPTH + b"]" * DEPTH),
    "deep braces": lambda text: _named(text, b"{a: " * DEPTH + b"}" * DEPTH),
    "deep and open": lambda text: _named(text, b"[" * DEPTH),
    "deep dashes": lambda text: text + b"a:\n" + b"- " * DEPTH + b"x\n",
    "deep indents": lambda text: text + b"".join(b" " * n + b"a:\n" for n in range(1000)),
    "two documents": lambda text: text + b"---\na: 1\n",
    "another version of YAML": lambda text: b"%YAML 3.0\n---\n" + text,
    "a NUL": lambda text: _named(text, b"a\0b"),
    "NUL alone": lambda _text: b"\0" * 4096,
    "an escape sequence": lambda text: _named(text, b"a\x1b[2Jb"),
    "no UTF-8": lambda text: _named(text, b"\xff\xfe"),
    "half a surrogate pair": lambda text: _named(text, b"\xed\xa0\x80"),
    "half a sign": lambda text: text + b"a: \xe2\x82",
    "tabs as indents": lambda text: text.replace(b"\n  ", b"\n\t"),
    "a schema of the future": lambda text: text.replace(b"schema_version: 2", b"schema_version: 3"),
    "a list": lambda _text: b"- a\n",
    "a text": lambda _text: b"hello\n",
    "sessions that are a text": lambda _text: b"tmux_sessions: hello\n",
    "a session that is a text": lambda _text: b"tmux_sessions: [hello]\n",
    "a row of its own": lambda text: text.replace(b"s_00000003", b"s_00000009"),
    "100 MB": lambda text: text + b"# " + b"x" * 100 * MIB + b"\n",
}
TAKEN_IN: dict[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "Windows line ends": lambda text: text.replace(b"\n", b"\r\n"),
    "a comment in each line": lambda text: text.replace(b": running\n", b": running  # or not\n"),
    "a long text": lambda text: _named(text, b"'" + b"x" * MIB + b"'"),
    "a long number": lambda text: _named(text, b"9" * 5000),
    "infinity": lambda text: _named(text, b"-.inf"),
    "an absurd exponent": lambda text: _named(text, b"1e99999"),
    "many keys": lambda text: text + b"".join(b"k%d: %d\n" % (n, n) for n in range(2000)),
    "a hundred lists in one another": lambda text: _named(text, b"[" * 90 + b"]" * 90),
    "the list in one line": lambda text: as_yaml(yaml.safe_load(text)),
    "nothing": lambda _text: b"",
    "a comment alone": lambda _text: b"# gone\n",
    "an alias": lambda text: text + b"a: &a [1]\nb: *a\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_nothing_is_written(template, name):
    content = REFUSED[name](template.text)
    assert content != template.text
    error = check_edit(template.copy(), content)
    assert isinstance(error, Damaged), name


@pytest.mark.parametrize("name", TAKEN_IN)
def test_it_is_taken_in(template, name):
    content = TAKEN_IN[name](template.text)
    assert check_edit(template.copy(), content) is None


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_breaks_parsers_as_a_value_and_as_a_key(template, text):
    for content in (
        b'mine: "%s"\n' % text.encode("utf-8", "surrogatepass"),
        b"mine: %s\n" % text.encode("utf-8", "surrogatepass"),
        b"%s: 1\n" % text.encode("utf-8", "surrogatepass"),
    ):
        found = oracle.read(yaml_text.parse, content, "f.yaml")
        assert found is None or isinstance(found, dict | str | RegistryCorrupt | list)


def test_a_file_of_100_mb_is_not_read_whole(template):
    """The hole in the file takes no place on the disk."""
    store = template.copy()
    with store.yaml.open("ab") as file:
        file.truncate(100 * MIB)
    with oracle.bounded(more_bytes=200 * MIB), pytest.raises(RegistryCorrupt, match="larger than 64 MB"):
        store.touch()
    store.registry.close()


CHANGES = (
    *("create --agent practice --session new", "resume one", "resume --all", "restart one", "fork one"),
    *("stop two", "stop two --force", "stop --all", "send one hello", "broadcast hello", "keys one Enter"),
    *("answer one allow", "interrupt one", "archive one", "forget one", "rename one other", "drill --run"),
    *("adopt x --agent claude", "team up --role dev=practice", "team down", "spawn --role dev", "close one"),
    *("register one --role dev", "report done", "task add text --role dev", "job submit --agent practice do"),
    *("stop one --purge-conversation --yes", "monitor --once", "board create title", "backup", "init"),
)
LOOKS = ("ls", "ls --all", "status one", "explain one", "read one", "log", "inbox one", "drill", "doctor")
LISTS = ("job list", "task list", "team list", "board list", "backup --list", "monitor --once --dry-run")


@pytest.fixture
def rooted(tmp_path, monkeypatch):
    """A root with the sessions of these tests, for the command line; no tmux and no agent is found."""
    settle_in(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    root = tmp_path / "root"
    root.mkdir()
    with mam.open(str(root)) as fleet:
        fleet.init()
        store = Store(root)
        store.add(*({**row, "name": name} for row, name in zip(ROWS, ("two", "one", "three"), strict=True)))
        yield store
        store.registry.close()


def check_verbs(store: Store, lengths: list[int], verbs: tuple[str, ...]) -> None:
    text, rows = store.yaml.read_bytes(), store.rows()
    for length in lengths:
        store.write(text[:length])
        for words in verbs:
            verb, *more = words.split()
            code, out, err = run([verb, "--workspace", str(store.root), *more])
            assert code in (0, 1, 2, 3, 64, 65), (length, words, code, out, err)
            assert "Traceback" not in out + err
            assert store.yaml.read_bytes() == text[:length], (
                f"{words} writes the file that is cut at {length}"
            )
            assert store.rows() == rows, f"{words} writes from a file that is cut at {length}"


def cuts_in_the_list(store: Store) -> range:
    """Return the lengths at which the file is cut within its sessions: no verb takes that for an edit."""
    text = store.yaml.read_bytes()
    return range(text.index(b"tmux_sessions:") + 20, text.index(b"\n# end of sessions"))


@pytest.mark.promise("P3")
def test_no_verb_writes_anything_from_a_cut_file(rooted):
    check_verbs(rooted, list(cuts_in_the_list(rooted))[7::700], (*CHANGES, *LOOKS, *LISTS))


@pytest.mark.long
def test_no_verb_writes_anything_from_a_file_cut_anywhere(rooted):
    check_verbs(rooted, list(cuts_in_the_list(rooted))[::13], (*CHANGES, *LOOKS, *LISTS))


# One row of each size: the smallest that are refused, and what is just within the bounds.
@pytest.mark.parametrize("depth", [1, 50, 95, 99, 100, 101, 1000, DEPTH, 200_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_depth_is_bounded(depth, brackets):
    inner = "a: " if brackets == "{}" else ""
    text = ("mine: " + (brackets[0] + inner) * depth + brackets[1] * depth).encode()
    found = oracle.read(yaml_text.parse, text, "f.yaml")
    assert isinstance(found, RegistryCorrupt) == (depth > 100 - (brackets == "{}"))
