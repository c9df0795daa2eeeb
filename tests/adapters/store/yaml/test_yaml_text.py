"""YAML in and out: any row that JSON can hold comes back from the file as it was."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.store.making import new_row

from mam.adapters.store.yaml import document, yaml_text
from mam.core.errors import RegistryCorrupt
from mam.core.session_row import settled

NASTY = [
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "- ",
    "# no comment",
    "a: b",
    "'",
    '"',
    "\\",
    "null",
    "~",
    "true",
    "No",
    "0x1F",
    "0o17",
    "017",
    "1_000",
    "1e3",
    ".inf",
    ".nan",
    "1:30",
    "2026-11-15",
    "2026-11-15T08:00:00Z",
    "&a",
    "*a",
    "!!int 5",
    "%YAML",
    "---",
    "...",
    "---\nscript: x",
    "[",
    "{",
    "|",
    ">",
    "@",
    "`",
    "=",
    "<<",
    "\0",
    "\x07",
    "\x1b[2J",
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ufffe",
    "\U0001f600",
    "e\u0301",
    " lead",
    "trail ",
    "line\n\n\nbreaks\n",
    "# end of sessions\n",
    "\n# end of sessions\n",
    "x" * 5000,
    "word " * 2000,
    "tmux_sessions:\n- a",
    "\u202egnp.exe",
    "\xa0",
    "\u200b",
    "\ud7ff",
    "\ue000",
]
texts = some.text(some.characters(exclude_categories=["Cs"])) | some.sampled_from(NASTY)
scalars = some.none() | some.booleans() | some.integers() | texts
numbers = some.floats(allow_nan=False, allow_infinity=False)
values = some.recursive(
    scalars | numbers,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
OURS = set(settled(new_row()))


def through_the_file(rows, extra):
    """Return rows and keys as a reader finds them in a file that was rendered from them."""
    parts = document.Parts(
        document.render_head("now", {}, extra), [yaml_text.dump_row(row) for row in rows], document.LAST_LINE
    )
    text = document.join(parts)
    found = document.read(text, "f.yaml")
    assert found is not None
    return found, text


@given(fields=some.dictionaries(texts.filter(lambda key: key not in OURS), values, max_size=5))
def test_a_row_with_any_keys_and_values_round_trips(fields):
    row = settled({**new_row(), **fields})
    found, text = through_the_file([row, new_row(2)], {})
    assert found.rows[0] == row
    assert json.dumps(found.rows[0]) == json.dumps(row), "1 is not true, 1.0 is not 1"
    assert found.parts is not None
    assert document.join(found.parts) == text


@pytest.mark.parametrize("value", NASTY, ids=range(len(NASTY)))
def test_each_nasty_text_as_value_key_and_item(value):
    row = {**settled(new_row()), "mine": value, "list": [value, {"deep": value}], f"k{value}": value}
    found, _ = through_the_file([row], {f"top{value}": value})
    assert found.rows[0] == row
    assert found.extra == {f"top{value}": value}
    assert found.parts is not None


KNOWN = {"schema_version", "updated_at", "agent_identities", "tmux_sessions"}


@given(extra=some.dictionaries(texts.filter(lambda key: key not in KNOWN), values, max_size=4))
def test_keys_of_the_whole_file_round_trip(extra):
    found, _ = through_the_file([new_row()], extra)
    assert json.dumps(found.extra) == json.dumps(extra)


@given(extra=some.dictionaries(texts.filter(lambda key: key not in KNOWN), values, max_size=3), value=values)
def test_one_key_of_the_file_is_changed_and_no_other(extra, value):
    found, _ = through_the_file([new_row()], {**extra, "mine": 1})
    parts = document.put_key(found.parts, "mine", value)
    if parts is None:
        return
    again = document.read(document.join(parts), "f.yaml")
    assert json.dumps(again.extra, sort_keys=True) == json.dumps({**extra, "mine": value}, sort_keys=True)
    assert again.rows == found.rows


@given(some.binary(max_size=200))
def test_any_bytes_are_values_or_our_error(data):
    try:
        document.read(data, "f.yaml")
    except RegistryCorrupt as error:
        assert str(error).startswith("f.yaml")


FRAGMENTS = [
    "tmux_sessions",
    ":",
    " ",
    "\n",
    "- ",
    "  ",
    "name: x",
    "status: stopped",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a",
    "*a",
    "!!str",
    "!x",
    "|",
    ">",
    "'",
    '"',
    "#",
    "---",
    "...",
    "? ",
    "\t",
    "<<: *a",
    "\ufeff",
    "\u2028",
    "%TAG",
]


@given(some.lists(some.sampled_from(FRAGMENTS), max_size=40))
def test_any_heap_of_yaml_is_values_or_our_error(pieces):
    text = "".join(pieces)
    try:
        found = document.read(text.encode(), "f.yaml")
    except RegistryCorrupt:
        return
    if found is not None and found.parts is not None and text.endswith("\n"):
        assert document.join(found.parts).decode().count("name: x") == text.count("name: x")


@given(some.lists(some.sampled_from(FRAGMENTS), max_size=40))
def test_what_we_read_is_what_the_library_reads(pieces):
    """Where both accept a text, ours and PyYAML's own constructor agree, times and infinities apart."""
    text = "".join(pieces).encode()
    try:
        ours = yaml_text.parse(text, "f")
    except RegistryCorrupt:
        return
    theirs = yaml.compose(text, Loader=yaml_text.Loader)
    assert (ours is None) == (theirs is None or theirs.tag.endswith(":null"))
    if isinstance(ours, dict):
        assert list(ours) == [key.value for key, _ in theirs.value]
        assert list(ours.lines.values()) == [key.start_mark.line + 1 for key, _ in theirs.value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("null", None),
        ("", None),
        ("0b101", 5),
        ("0x1f", 31),
        ("017", 15),
        ("-0x1F", -31),
        ("1_000", 1000),
        ("0o17", "0o17"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        ("1e3", "1e3"),
        ("1.0e+3", 1000.0),
        ("1.0e+999", "1.0e+999"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2026-11-15", "2026-11-15"),
        ("2026-11-15 08:00:00", "2026-11-15 08:00:00"),
        ("9" * 5000, "9" * 5000),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("&a x", "x"),
    ],
)
def test_scalars(text, value):
    found = yaml_text.parse(f"k: {text}\n".encode(), "f")["k"]
    assert (found, type(found)) == (value, type(value))


def test_lines_are_counted_from_one():
    found = yaml_text.parse(b"# c\na: 1\nb:\n  - x: 1\n    y: 2\n", "f")
    assert found.lines == {"a": 2, "b": 3}
    assert found["b"][0].line == 4
    assert found["b"][0].lines == {"x": 4, "y": 5}


def test_an_alias_is_what_its_anchor_was():
    assert yaml_text.parse(b"a: &x [1, {b: 2}]\nc: *x\n", "f") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}
