"""JSON without the package json reads the same values, and fails with the same errors."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from mam.adapters.system import json_text

_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=10,
)


def outcome(read, text):
    try:
        return repr(read(text))
    except (ValueError, RecursionError, TypeError) as error:
        return type(error), str(error)


@given(_VALUES)
def test_a_value_comes_back(value) -> None:
    text = json.dumps(value)
    assert outcome(json_text.loads, text) == outcome(json.loads, text)
    assert outcome(json_text.loads, text.encode()) == outcome(json.loads, text.encode())
    assert json_text.dumps(value) == text


@given(some.text(alphabet='{}[]",:0123456789.eE+-\\/ntrufalsN Infiy\n\t\ufeff\x00', max_size=12))
@example("")
@example(" ")
@example("[1] x")
@example('{"a": 1} \n')
@example(" [1]")
@example("\ufeff[1]")
@example("-Infinity")
@example('{"a": 1, "a": 2}')
@example("[" * 100_000)
def test_any_text_is_read_as_json_reads_it(text) -> None:
    assert outcome(json_text.loads, text) == outcome(json.loads, text)
    assert outcome(json_text.loads, text.encode()) == outcome(json.loads, text.encode())


@pytest.mark.parametrize(
    "text", [b"\xef\xbb\xbf[1]", b"\xff", b'"\xed\xa0\x80"', '"\u00e9"'.encode("utf-16"), None, 3]
)
def test_what_is_no_text_is_read_as_json_reads_it(text) -> None:
    assert outcome(json_text.loads, text) == outcome(json.loads, text)
