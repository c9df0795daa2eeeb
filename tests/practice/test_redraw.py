"""Whatever is painted, the screen ends as conversation above and live region below."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.practice.terminal_model import TerminalModel

from mam.practice.redraw import Screen

ROW = st.sampled_from(["", "● said", "  ⎿ ok", "❯ 漢字 👍", "─" * 20, "✻ busy", "  ? for help", " ❯ 1. Yes"])
ABOVE = st.lists(ROW, max_size=4)
LIVE = st.lists(ROW, min_size=1, max_size=8).filter(lambda rows: rows[-1] != "─" * 20)


@settings(deadline=None)
@given(
    st.lists(st.tuples(ABOVE, LIVE, st.integers(0, 7), st.booleans()), min_size=1, max_size=12), st.booleans()
)
def test_the_screen_is_what_was_painted(paints, colours):
    screen, terminal = Screen(colours=colours), TerminalModel(20, 10)
    said: list[str] = []
    for above, live, at, hidden in paints:
        cursor = None if hidden else (at % len(live), 5)
        terminal.feed(screen.paint(above, live, cursor, 20))
        said += above
        rows = terminal.scrollback + terminal.rows
        assert rows[: len(said)] == said
        assert rows[len(said) : len(said) + len(live)] == live
        assert not any(rows[len(said) + len(live) :])
        assert terminal.modes["7"] is True
        assert terminal.modes["25"] is not hidden
        if cursor:
            assert (len(terminal.scrollback) + terminal.row, terminal.column) == (len(said) + cursor[0], 5)
    terminal.feed(screen.leave(["last words"], 20))
    assert [row for row in terminal.everything() if row] == [row for row in [*said, "last words"] if row]


def test_nothing_is_sent_when_nothing_changed():
    screen = Screen()
    assert screen.paint([], ["a", "b"], (0, 1), 20)
    assert screen.paint([], ["a", "b"], (0, 1), 20) == ""


def test_only_the_changed_row_is_sent():
    screen = Screen(colours=False)
    screen.paint([], ["spinner 1", "rule", "❯ draft"], (2, 2), 20)
    sent = screen.paint([], ["spinner 2", "rule", "❯ draft"], (2, 2), 20)
    assert "spinner 2" in sent
    assert "rule" not in sent
    assert "draft" not in sent


def test_a_new_edge_colour_repaints():
    screen = Screen()
    screen.paint([], ["──", "a"], (1, 0), 20)
    screen.edge = "red"
    assert "\x1b[31m──" in screen.paint([], ["──", "a"], (1, 0), 20)


def test_s003_28_a_terminal_that_was_resized_gets_all_rows_again():
    screen = Screen(colours=False)
    screen.paint([], ["rule", "❯ draft", "footer"], (1, 2), 20)
    screen.invalidate()
    sent = screen.paint([], ["rule", "❯ draft", "footer"], (1, 2), 20)
    assert all(row in sent for row in ("rule", "❯ draft", "footer"))
    assert screen.paint([], ["rule", "❯ draft", "footer"], (1, 2), 20) == ""


def test_rows_that_a_narrower_terminal_broke_are_counted():
    screen = Screen(colours=False)
    screen.paint([], ["─" * 80, "❯ ", "─" * 80, "footer"], (1, 2), 80)
    sent = screen.paint([], ["─" * 40, "❯ ", "─" * 40, "footer"], (1, 2), 40)
    assert sent.startswith("\x1b[?25l\x1b[?7l\x1b[2A\r")
