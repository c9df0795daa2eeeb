"""Reading lines of JSON: damaged or absurd values are ignored and raise no error."""

import pytest

from mam.adapters.agents.jsonl import count, epoch, is_uuid, lines_since, parse, recorded, seconds, tail


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000, "1" + "0" * 5000, None, 7, b'{"a": 1} x']
)
def test_a_line_that_is_no_object_is_empty(line) -> None:
    assert parse(line) == {}


@pytest.mark.parametrize("line", [b'{"a": 1}', '{"a": 1}', b'  {"a": 1}\r'])
def test_a_line_with_an_object(line) -> None:
    assert parse(line) == {"a": 1}


def test_complete_lines_beyond_a_position(tmp_path, monkeypatch) -> None:
    path = tmp_path / "record"
    path.write_bytes(b"one\ntwo\nthree\nhalf")
    assert list(lines_since(str(path), 4)) == [b"two\n", b"three\n"]
    assert list(lines_since(str(path), 100)) == []
    monkeypatch.setattr("mam.adapters.agents.jsonl.LONGEST_LINE", 5)
    assert list(lines_since(str(path), 0)) == [b"one\n", b"two\n"]
    with pytest.raises(OSError, match="record"):
        list(lines_since(f"{path}.none", 0))


def test_complete_lines_at_the_end(tmp_path) -> None:
    path = tmp_path / "record"
    path.write_bytes(b"one\ntwo\nthree\nhalf")
    assert tail(str(path), 100) == ([b"one", b"two", b"three"], True)
    assert tail(str(path), 12) == ([b"three"], False)
    with pytest.raises(OSError, match="record"):
        tail(f"{path}.none", 100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-15T12:00:00Z", 1_794_744_000.0),
        ("2026-11-15T12:00:00.500+00:00", 1_794_744_000.5),
        ("never", None),
        (None, None),
        (20261115, None),
    ],
)
def test_time_stamps(text, expected) -> None:
    assert epoch(text) == expected


@pytest.mark.parametrize("value", [0, -1, 10**400, float("inf"), float("nan"), "1", None, []])
def test_absurd_times_are_none(value) -> None:
    assert seconds(value) is None
    assert seconds(1_763_208_000_500) == 1_763_208_000.5


@pytest.mark.parametrize("value", [-1, 10**400, 1.5, True, "1", None])
def test_absurd_numbers_are_none(value) -> None:
    assert count(value) is None
    assert (count(0), count(200_000)) == (0, 200_000)


@pytest.mark.parametrize("value", [-1, 10**400, 1.5, True, "1", [], {}])
def test_a_recorded_number_that_is_none_is_an_error_and_not_zero(value) -> None:
    with pytest.raises(ValueError, match="tokens is no number"):
        recorded({"tokens": value}, "tokens")
    assert (recorded({"tokens": 5}, "tokens"), recorded({"tokens": None}, "tokens"), recorded({}, "x")) == (
        5,
        0,
        0,
    )


def test_an_id_with_more_text_is_no_id() -> None:
    ident = "01234567-89ab-cdef-0123-456789abcdef"
    assert is_uuid(ident)
    assert not is_uuid(f"{ident}\n")
    assert not is_uuid(f"{ident}/../x")
    assert not is_uuid(ident.upper())
    assert not is_uuid(f"{ident[:8]}--9ab{ident[13:]}")
    assert not is_uuid(f"{ident[:-1]}/")
    assert not is_uuid(f"{ident[:20]}.{ident[21:]}")
