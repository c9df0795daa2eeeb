"""Parsing answers of tmux: the values are those that tmux printed, and no text can forge one."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.tmux import parse

NONCE = "0011223344556677"
TEXT = st.binary(max_size=40).filter(lambda text: NONCE.encode() not in text and b"\0" not in text)


def vis(text: bytes) -> bytes:
    """Write text as tmux 3.4 and 3.5 do: controls and bytes that are not UTF-8 as escapes."""
    letters = {7: b"\\a", 8: b"\\b", 11: b"\\v", 12: b"\\f", 13: b"\\r"}
    out = b""
    for letter in text.decode("utf-8", "surrogateescape"):
        raw = letter.encode("utf-8", "surrogateescape")
        if len(raw) > 1 or raw in b"\t\n" or 32 <= raw[0] < 127:
            out += raw
        else:
            out += letters.get(raw[0], b"\\%03o" % raw[0])
    return out


def row(texts: list[bytes], *, shown: list[bytes] | None = None, full: bool = False) -> bytes:
    numbers = [b"%7", b"$3", b"@4", b"123", b"1", b"5", b"", b"1", b"99"]
    numbers += [b"200", b"50", b"3", b"4"] if full else []
    lengths = [b"%d" % len(text) for text in texts]
    key = NONCE.encode()
    return key + b",".join(numbers + lengths) + key + key.join(shown or texts) + key + b"\n"


@given(st.lists(TEXT, min_size=8, max_size=8))
def test_any_bytes_come_through(texts):
    (pane,) = parse.rows(row(texts, full=True), NONCE, True)
    assert (pane.id, pane.session_id, pane.window_id, pane.pid) == ("%7", "$3", "@4", 123)
    assert (pane.dead, pane.dead_status, pane.dead_signal, pane.in_mode) == (True, 5, None, True)
    assert pane.server_pid == 99
    assert (pane.width, pane.height, pane.cursor_x, pane.cursor_y) == (200, 50, 3, 4)
    names = [pane.session_name, pane.mark, pane.title, pane.command]
    assert names == [texts[place].decode("utf-8", "replace") for place in (0, 1, 5, 7)]
    assert os.fsencode(pane.path) == texts[6] and os.fsencode(pane.tty) == texts[3]


@given(st.lists(TEXT.filter(lambda text: b"\\" not in text), min_size=8, max_size=8))
def test_the_escapes_of_tmux_3_4_are_taken_back(texts):
    (pane,) = parse.rows(row(texts, shown=[vis(text) for text in texts], full=True), NONCE, True)
    assert os.fsencode(pane.path) == texts[6]
    assert pane.title == texts[5].decode("utf-8", "replace")


def test_text_that_only_looks_like_an_escape_is_kept():
    for text in (b"a\\n", b"\\033", b"C:\\temp\\b", b"\\", b"\\$x"):
        (pane,) = parse.rows(row([text] * 5), NONCE)
        assert pane.session_name == text.decode()


@given(st.binary(max_size=200))
def test_noise_is_no_listing_or_an_unconfirmed_one(noise):
    listing = parse.listing(NONCE.encode() + noise, NONCE)
    assert not listing.confirmed and listing.panes == [] and listing.error


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_cut_answer_is_unconfirmed(cut):
    complete = row([b"name", b"s_00000001", b"2f", b"/dev/pts/1", b""])
    listing = parse.listing(complete + complete.replace(b"%7", b"%8")[: len(complete) - 1 - cut], NONCE)
    assert not listing.confirmed and listing.panes == []


def test_a_window_in_two_sessions_is_one_pane():
    listing = parse.listing(
        row([b"a", b"", b"", b"", b"/dev/pts/1,client-9"]) + row([b"b", b"", b"", b"", b"/dev/pts/2"]), NONCE
    )
    assert [(pane.session_name, pane.attached) for pane in listing.panes] == [("a", 2)]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_a_root_survives_its_encoding(root):
    encoded = parse.encode_root(root)
    assert not encoded.strip("0123456789abcdef")
    assert parse.decode_root(encoded.encode()) == root


def test_a_root_that_mam_did_not_write_equals_no_directory_of_ours():
    assert parse.decode_root(b"/tmp/x") == "/tmp/x"
    assert parse.decode_root(b"zz\xff") == "zz\ufffd"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("tmux 3.3a\n", (3, 3)),
        ("tmux next-3.6", (3, 6)),
        ("tmux 3.5-rc", (3, 5)),
        ("tmux 3.10", (3, 10)),
        ("tmux openbsd-7.5", (7, 5)),
        ("tmux master", None),
        ("", None),
        ("tmux 3.", None),
        (f"tmux {'9' * 5000}.1", None),
    ],
)
def test_versions(output, expected):
    assert parse.version(output) == expected


def test_captures_split_at_their_own_lines_only():
    answer = f"one\n\n{NONCE}7\ntwo\n{NONCE[:-1]}x9\n{NONCE}12\n".encode()
    found = {ident: capture.captured for ident, capture in parse.captures(answer, NONCE).items()}
    assert found == {"%7": "one\n\n", "%12": f"two\n{NONCE[:-1]}x9\n"}
    assert parse.captures(b"", NONCE) == {}


def test_a_capture_has_the_facts_of_its_line():
    capture = parse.captures(f"one\n{NONCE}7,3,4,1700000000\n".encode(), NONCE)["%7"]
    assert (capture.cursor_x, capture.cursor_y, capture.written_at) == (3, 4, 1_700_000_000)
    assert parse.captures(f"{NONCE}7,3,4,\n".encode(), NONCE)["%7"].written_at == 0
    assert parse.captures(f"{NONCE}7,{'9' * 5000},²\n".encode(), NONCE)["%7"].cursor_x == 0
