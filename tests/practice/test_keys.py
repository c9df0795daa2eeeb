"""Bytes become the same keys however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import count_calls

from mam.practice.keys import ESCAPE_WAIT, SEQUENCE_WAIT, Decoder


def decode(*pieces: bytes) -> list[tuple[str, str]]:
    decoder = Decoder()
    return merged([key for piece in pieces for key in decoder.feed(piece)])


def merged(keys):
    """Join neighbouring texts: where a text is cut depends on the reads, its meaning does not."""
    joined = []
    for name, text in keys:
        if name == "text" and joined and joined[-1][0] == "text":
            joined[-1] = ("text", joined[-1][1] + text)
        else:
            joined.append((name, text))
    return joined


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"abc", [("text", "abc")]),
        ("aé漢👍".encode(), [("text", "aé漢👍")]),
        (b"hello\r", [("text", "hello"), ("enter", "")]),
        (b"a\nb", [("text", "a"), ("newline", ""), ("text", "b")]),
        (b"a\tb", [("text", "a\tb")]),
        (b"\x1b\r", [("newline", "")]),
        (b"\x1b[A\x1bOB\x1b[1;5C\x1b[D", [("up", ""), ("down", ""), ("right", ""), ("left", "")]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[3~", [(n, "") for n in ("home", "end", "home", "end", "delete")]),
        (b"\x01\x05\x15\x0b\x17", [(n, "") for n in ("home", "end", "kill-left", "kill-right", "kill-word")]),
        (b"\x7f\x08\x03\x04", [(n, "") for n in ("backspace", "backspace", "ctrl-c", "ctrl-d")]),
        (b"\x1b[200~one\rtwo\r\nthree\nfour\x1b[201~", [("paste", "one\ntwo\nthree\nfour")]),
        (b"\x1b[200~\x1b[201~", [("paste", "")]),
        (b"\x1b[200~a\x1b[31mb\x03\x1b[201~\r", [("paste", "a\x1b[31mb\x03"), ("enter", "")]),
        (b"\x1b\x1b[200~x\x1b[201~", [("escape", ""), ("paste", "x")]),
        (b"\x1b\x15", [("escape", ""), ("kill-left", "")]),
        (b"\x1b[99;99Zx", [("text", "x")]),
        (b"\x1b[1\x03", [("ctrl-c", "")]),
        (b"\xff\xfeok", [("text", "\ufffd\ufffdok")]),
        (b"\xe6\xbc\rx", [("text", "\ufffd"), ("enter", ""), ("text", "x")]),
        (b"\x00\x1cx", [("text", "x")]),
    ],
)
def test_meaning_of_bytes(data, keys):
    assert decode(data) == keys


PIECES = st.sampled_from(
    [
        b"abc",
        "é漢👍🏽".encode(),
        b"\r",
        b"\n",
        b"\x1b[A",
        b"\x1bOM",
        b"\x1b\r",
        b"\x03",
        b"\x7f",
        b"\xff",
        b"\x1b[200~one\r\ntwo \xe6\xbc\xa2\x1b[3mx\x1b[201~",
        b"\x1b[200~\x1b[201~",
        b"\x1b[1;5D",
        b"\x1b[3~",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12), st.data())
def test_cutting_the_stream_anywhere_changes_nothing(pieces, data):
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = decode(stream)
    assert decode(*parts) == whole
    assert decode(*(bytes([byte]) for byte in stream)) == whole


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_break_it(data, cut):
    assert decode(data[:cut], data[cut:]) == decode(data)
    decoder = Decoder()
    decoder.feed(data)
    decoder.expire()
    assert decoder.wait() is None


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_a_paste_arrives_exactly(text):
    stream = b"\x1b[200~" + text.encode() + b"\x1b[201~"
    if "\x1b[201~" not in text:
        assert decode(stream) == [("paste", text)]


def test_a_lone_escape_is_a_key_after_a_silence():
    decoder = Decoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.wait() == ESCAPE_WAIT
    assert decoder.expire() == [("escape", "")]
    assert decoder.wait() is None
    assert decoder.feed(b"x") == [("text", "x")]


def test_the_rest_of_a_sequence_may_take_longer():
    decoder = Decoder()
    decoder.feed(b"\x1b[20")
    assert decoder.wait() == SEQUENCE_WAIT > ESCAPE_WAIT
    assert decoder.feed(b"0~a\x1b[201~") == [("paste", "a")]


def test_a_paste_without_an_end_is_given_up():
    decoder = Decoder()
    assert decoder.feed(b"\x1b[200~lost end") == []
    assert decoder.wait() is not None
    assert decoder.expire() == [("paste", "lost end")]
    assert decoder.feed(b"x") == [("text", "x")]


def test_each_piece_of_a_megabyte_is_looked_at_once():
    stream = b"\x1b[200~" + b"0123456789abcde\n" * 65536 + b"\x1b[201~"
    decoder = Decoder()
    pieces = [stream[at : at + 1024] for at in range(0, len(stream), 1024)]
    keys, calls = count_calls(lambda: [key for piece in pieces for key in decoder.feed(piece)])
    assert calls < 12 * len(pieces), calls
    assert [(name, len(text)) for name, text in keys] == [("paste", 1 << 20)]
