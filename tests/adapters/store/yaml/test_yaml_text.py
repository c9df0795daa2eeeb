"""Reading and writing YAML: any row that JSON can hold survives both."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.store.making import new_row

from mam.adapters.store.yaml import document, yaml_text
from mam.core.errors import RegistryCorrupt
from mam.core.session_row import with_all_fields

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
OURS = set(with_all_fields(new_row()))


def through_the_file(rows, extra):
    """Render rows and keys as a file, and return its parsed content and its text."""
    parts = document.Parts(
        document.render_head("now", {}, extra), [yaml_text.dump_row(row) for row in rows], document.LAST_LINE
    )
    text = document.join(parts)
    content = document.read(text, "f.yaml")
    assert content is not None
    return content, text


@given(fields=some.dictionaries(texts.filter(lambda key: key not in OURS), values, max_size=5))
def test_a_row_with_any_keys_and_values_round_trips(fields):
    row = with_all_fields({**new_row(), **fields})
    content, text = through_the_file([row, new_row(2)], {})
    assert content.rows[0] == row
    assert json.dumps(content.rows[0]) == json.dumps(row), "1 is not true, 1.0 is not 1"
    assert content.parts is not None
    assert document.join(content.parts) == text


@pytest.mark.parametrize("value", NASTY, ids=range(len(NASTY)))
def test_each_nasty_text_as_value_key_and_item(value):
    row = {**with_all_fields(new_row()), "mine": value, "list": [value, {"deep": value}], f"k{value}": value}
    content, _ = through_the_file([row], {f"top{value}": value})
    assert content.rows[0] == row
    assert content.extra == {f"top{value}": value}
    assert content.parts is not None


KNOWN = {"schema_version", "updated_at", "agent_identities", "tmux_sessions"}


@given(extra=some.dictionaries(texts.filter(lambda key: key not in KNOWN), values, max_size=4))
def test_keys_of_the_whole_file_round_trip(extra):
    content, _ = through_the_file([new_row()], extra)
    assert json.dumps(content.extra) == json.dumps(extra)


@given(extra=some.dictionaries(texts.filter(lambda key: key not in KNOWN), values, max_size=3), value=values)
def test_one_key_of_the_file_is_changed_and_no_other(extra, value):
    content, _ = through_the_file([new_row()], {**extra, "mine": 1})
    parts = document.put_key(content.parts, "mine", value)
    if parts is None:
        return
    again = document.read(document.join(parts), "f.yaml")
    assert json.dumps(again.extra, sort_keys=True) == json.dumps({**extra, "mine": value}, sort_keys=True)
    assert again.rows == content.rows


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
        content = document.read(text.encode(), "f.yaml")
    except RegistryCorrupt:
        return
    if content is not None and content.parts is not None and text.endswith("\n"):
        assert document.join(content.parts).decode().count("name: x") == text.count("name: x")


@given(some.lists(some.sampled_from(FRAGMENTS), max_size=40))
def test_what_we_read_is_what_the_library_reads(pieces):
    """If both accept a text, mam's reader and PyYAML find the same keys and lines."""
    text = "".join(pieces).encode()
    try:
        values = yaml_text.parse(text, "f")
    except RegistryCorrupt:
        return
    node = yaml.compose(text, Loader=yaml_text.Loader)
    assert (values is None) == (node is None or node.tag.endswith(":null"))
    if isinstance(values, dict):
        assert list(values) == [key.value for key, _ in node.value]
        assert list(values.lines.values()) == [key.start_mark.line + 1 for key, _ in node.value]


@pytest.mark.parametrize("text", ["a: &x 1\nb: &x 2\n", "a: &x [&x b]\n"], ids=["beside", "inside"])
def test_an_anchor_that_is_there_twice_is_refused_as_the_library_refuses_it(text):
    with pytest.raises(yaml.composer.ComposerError, match="found duplicate anchor"):
        yaml.compose(text, Loader=yaml_text.Loader)
    with pytest.raises(RegistryCorrupt, match=r"line [12]: the anchor &x is here twice"):
        yaml_text.parse(text.encode(), "f")


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
    scalar = yaml_text.parse(f"k: {text}\n".encode(), "f")["k"]
    assert (scalar, type(scalar)) == (value, type(value))


def test_lines_are_counted_from_one():
    mapping = yaml_text.parse(b"# c\na: 1\nb:\n  - x: 1\n    y: 2\n", "f")
    assert mapping.lines == {"a": 2, "b": 3}
    assert mapping["b"][0].line == 4
    assert mapping["b"][0].lines == {"x": 4, "y": 5}


def test_an_alias_is_what_its_anchor_was():
    assert yaml_text.parse(b"a: &x [1, {b: 2}]\nc: *x\n", "f") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}
