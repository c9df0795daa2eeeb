"""Safe text: no character passes that a terminal or a paste would act on."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from mam.core import safe_text


@given(st.text())
def test_one_line_is_one_printable_line(value: str) -> None:
    cleaned = safe_text.one_line(value)
    assert "\n" not in cleaned
    assert not any(unicodedata.category(char) == "Cc" for char in cleaned)
    assert len(cleaned) <= 2000


@given(st.text())
def test_a_paste_cannot_leave_its_brackets(value: str) -> None:
    cleaned = safe_text.for_paste(value + "\x1b[201~\r\nrm -rf x\x9b201~")
    assert not any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in cleaned)


def test_a_paste_keeps_words_and_breaks() -> None:
    assert safe_text.for_paste("a\tb\r\nc\rd\ne 🙂 \u202e") == "a\tb\nc\nd\ne 🙂 \u202e"


@given(st.text())
def test_a_screen_keeps_lines_and_nothing_else(value: str) -> None:
    assert not any(
        unicodedata.category(char) == "Cc" and char != "\n" for char in safe_text.for_screen(value)
    )


def test_the_note_is_the_end_of_the_screen() -> None:
    screen = "\n".join(f"line {number}" for number in range(1000)) + "\n\n\n"
    lines = safe_text.note(screen)
    assert lines is not None
    assert lines.endswith("line 999")
    assert len(lines.encode()) <= 2048
    assert safe_text.note("  \n \n") is None


def test_s000_26_the_note_spends_its_bytes_on_words() -> None:
    """In a pane of 200 columns two rules of an input box have 1,200 bytes."""
    said = [f"line {number} of what the agent said last" for number in range(40)]
    box = ["─" * 200, "❯ ", "─" * 200, "  ? for help" + " " * 150 + "11 % of the context"]
    note = safe_text.note("\n".join([*said, *box]))
    assert note is not None
    assert note.splitlines() == [*said, "───", "❯", "───", "  ? for help    11 % of the context"]


def test_s000_26_borders_of_a_box_keep_their_words() -> None:
    screen = "\n".join(
        [
            "╭─ Claude Code v2.1 " + "─" * 60 + "╮",
            "│ Welcome back!" + " " * 60 + "│",
            "│" + " " * 74 + "│",
            "╰" + "─" * 74 + "╯",
            "=" * 80,
            "a == b --force __init__ ... 1 - 2",
            "    indented     by hand",
        ]
    )
    assert (safe_text.note(screen) or "").splitlines() == [
        "╭─ Claude Code v2.1 ───╮",
        "│ Welcome back!    │",
        "│    │",
        "╰───╯",
        "===",
        "a == b --force __init__ ... 1 - 2",
        "    indented    by hand",
    ]


@given(st.text())
def test_the_note_is_never_longer_than_its_limit(screen: str) -> None:
    note = safe_text.note(screen, 100)
    assert note is None or len(note.encode()) <= 100
