"""Reading a captured screen into cells, and writing cells anew."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.record_hermes import SCREENS as HERMES_SCREENS
from tests.conformance.recorded_screens import captured
from tests.conformance.stage import SCREENS

from mam.core.terminal_cells import (
    NORMAL,
    Style,
    StyledScreen,
    columns,
    parse_cells,
    plain_text,
    sign_width,
    written_anew,
)

STYLED = sorted([*SCREENS.glob("*/*.ansi"), *HERMES_SCREENS.glob("*.ansi")])
# Pieces of which tmux makes a capture, and others that it never makes.
PIECES = st.sampled_from(
    [
        *(
            "\x1b[0m",
            "\x1b[m",
            "\x1b[1m",
            "\x1b[0;2m",
            "\x1b[7m",
            "\x1b[38;5;8m",
            "\x1b[48;2;1;2;3m",
            "\x1b[39m",
        ),
        *(
            "\x1b[38:2::9:8:7m",
            "\x1b[4:3m",
            "\x1b[58;5;3m",
            "\x1b[38;5m",
            "\x1b[999999m",
            "\x1b[;;m",
            "\x1b[",
        ),
        *(
            "\x1b]8;;https://x.test/a\x1b\\",
            "\x1b]8;;\x1b\\",
            "\x1b]0;title\x07",
            "\x1b]52;c;",
            "\x1bP",
            "\x1b",
        ),
        *(
            "\x0e",
            "\x0f",
            "\x1b(0",
            "\x1b(B",
            "\n",
            " ",
            "a",
            "漢",
            "e\u0301",
            "👩\u200d💻",
            "\t",
            "\x07",
            "\x9b1m",
        ),
    ]
)
CAPTURES = st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join)
ESCAPE = re.compile("\x1b\\[0(?:;[0-9;]+)?m")


def styles_of(text):
    return {cell.text: cell.style for row in parse_cells(text) for cell in row if not cell.is_blank}


def test_a_style_holds_until_the_next_sequence_also_across_lines() -> None:
    styles = styles_of("a\x1b[2mb\nc\x1b[0;1md\n\ne\x1b[0mf")
    assert [sign for sign, style in styles.items() if style.is_dim] == ["b", "c"]
    assert [sign for sign, style in styles.items() if style.is_bold] == ["d", "e"]
    assert styles["a"] == styles["f"] == NORMAL


@pytest.mark.parametrize(
    ("sequence", "style"),
    [
        ("31", Style(foreground=1)),
        ("91", Style(foreground=9)),
        ("42", Style(background=2)),
        ("102", Style(background=10)),
        ("38;5;208", Style(foreground=208)),
        ("48;2;1;2;255", Style(background="#0102ff")),
        ("38:5:208", Style(foreground=208)),
        ("38:2::1:2:255", Style(foreground="#0102ff")),
        ("38:2:1:2:255", Style(foreground="#0102ff")),
        ("58;5;3;2", Style(frozenset({"dim"}))),
        ("4:3", Style(frozenset({"underline"}))),
        ("4;4:0", NORMAL),
        ("1;2;22", NORMAL),
        ("7;27", NORMAL),
        ("31;39;41;49", NORMAL),
        ("1;31;0", NORMAL),
        ("1;", NORMAL),
        # What mam does not know, or cannot be, changes nothing.
        ("53", NORMAL),
        ("38;5;999", NORMAL),
        ("38;5", NORMAL),
        ("38;2;1;2", NORMAL),
        ("12345678901234567890", NORMAL),
    ],
)
def test_a_sequence(sequence, style) -> None:
    assert styles_of(f"\x1b[{sequence}mx")["x"] == style


def test_links_and_charsets_are_dropped() -> None:
    text = "\x1b]8;;https://x.test/a\x1b\\link\x1b]8;;\x1b\\ \x0eqqq\x0f \x1b(0x\x1b(B \x1b]52;c;QQ==\x07end"
    assert plain_text(text) == "link qqq x end"


def test_a_wide_sign_takes_two_columns_and_a_mark_none() -> None:
    (row,) = parse_cells("a漢e\u0301👩\u200d💻z")
    assert [(cell.text, cell.column, cell.width) for cell in row] == [
        ("a", 0, 1),
        ("漢", 1, 2),
        ("e\u0301", 3, 1),
        ("👩\u200d💻", 4, 2),
        ("z", 6, 1),
    ]
    assert columns("a漢") == 3
    assert sign_width("\u200b") == 0


def test_a_tab_ends_at_its_stop() -> None:
    (row,) = parse_cells("ab\tc")
    assert row[-1].column == 8


@given(CAPTURES)
def test_any_text_can_be_read(text) -> None:
    rows = parse_cells(text)
    lines = plain_text(text).split("\n")
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert "".join(cell.text for cell in row).rstrip(" ") == line.rstrip(" ")
        ends = 0
        for cell in row:
            assert cell.column == ends
            ends += cell.width
        assert all(cell.width >= 0 for cell in row)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data) -> None:
    parse_cells(data.decode("utf-8", "replace"))


@given(CAPTURES, st.integers(-1, 31))
def test_one_row_is_read_as_it_is_among_all(text, number) -> None:
    rows = parse_cells(text)
    expected = rows[number] if 0 <= number < len(rows) else []
    row = StyledScreen(text).row(number)
    assert [(cell.text, cell.style) for cell in row] == [(cell.text, cell.style) for cell in expected]


@given(CAPTURES, st.booleans())
def test_what_is_written_anew_has_no_sequence_of_the_program(text, coloured) -> None:
    written = written_anew(text, coloured=coloured)
    left = ESCAPE.sub("", written) if coloured else written
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", left)
    assert written.count("\n") == text.count("\n")
    for line in written.split("\n") if coloured else []:
        assert not (found := ESCAPE.findall(line)) or found[-1] == "\x1b[0m"


def test_what_is_written_anew_looks_the_same() -> None:
    text = "a\x1b[2mb\x1b[0;1;38;5;8mc\x1b[48;2;1;2;3md\ne\x1b[0mf"
    again = parse_cells(written_anew(text))
    assert [[(cell.text, cell.style) for cell in row] for row in again] == [
        [(cell.text, cell.style) for cell in row] for row in parse_cells(text)
    ]


def test_a_link_does_not_leave() -> None:
    text = "\x1b]8;;https://x.test/a\x1b\\link\x1b]8;;\x1b\\\x1b]52;c;QQ==\x07\x1b[5;8mblink"
    assert written_anew(text).replace("\x1b[0m", "") == "linkblink"


@pytest.mark.parametrize("path", STYLED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_plain_text_of_a_recording_is_what_tmux_gives_without_styles(path) -> None:
    text = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert plain_text(captured(path)).rstrip("\n") == text.rstrip("\n")
