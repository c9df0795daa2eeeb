"""The lines of control mode, in any pieces and with anything in them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.tmux.control_lines import LONGEST, Block, ControlLines, Notice

STREAM = (
    b"%begin 17 1 0\n%end 17 1 0\n%sessions-changed\n%window-close @3\n"
    b"%begin 17 2 1\none\n%end 17 9 1\n%exit\n\n%end 17 2 1\n"
    b"%output %5 hello\\015\\012\n%extended-output %6 12 : data\n"
    b"%begin 17 3 1\ncan't find pane: %9\n%error 17 3 1\n%pause %6\nnoise\n%exit\n"
)
EXPECTED = [
    (True, b""),
    Notice("sessions-changed"),
    Notice("window-close", "@3"),
    (True, b"one\n%end 17 9 1\n%exit\n\n"),
    Notice("output", "%5"),
    Notice("output", "%6"),
    (False, b"can't find pane: %9\n"),
    Notice("pause", "%6"),
    Notice("exit"),
]


def feed(lines: ControlLines, pieces: list[bytes]):
    found = [one for piece in pieces for one in lines.feed(piece)]
    return [(one.ok, one.body) if isinstance(one, Block) else one for one in found]


def test_a_whole_stream():
    assert feed(ControlLines(), [STREAM]) == EXPECTED


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_in_any_pieces(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(edges)]
    assert feed(ControlLines(), pieces) == EXPECTED


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_noise_breaks_nothing(pieces):
    lines = ControlLines()
    feed(lines, pieces)
    if not lines._guard:
        assert feed(lines, [b"\n%sessions-changed\n"])[-1:] == [Notice("sessions-changed")]


def test_a_line_of_output_is_not_kept():
    lines = ControlLines()
    assert feed(lines, [b"%output %1 " + b"x" * LONGEST]) == [Notice("output", "%1")]
    for _ in range(100):
        assert feed(lines, [b"y" * 65536]) == []
        assert lines.kept() == 0
    assert feed(lines, [b"z\n%window-close @1\n"]) == [Notice("window-close", "@1")]


def test_a_long_line_inside_an_answer_is_kept_whole():
    lines = ControlLines()
    long = b"x" * (3 * LONGEST)
    stream = b"%begin 1 1 1\n" + long + b"\n%end 1 1 1\n"
    assert feed(lines, [stream[:700], stream[700:]]) == [(True, long + b"\n")]


def test_a_notice_is_a_value():
    assert Notice("a", "b") == Notice("a", "b") != Notice("a", "c")
    assert len({Notice("a", "b"), Notice("a", "b")}) == 1
    assert Notice("a") != "a" and repr(Notice("a", "b")) == "Notice('a', 'b')"
