"""What programs write into a pane, through a real tmux and back: no exception, and no control leaves mam."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.conformance.recorded_screens import captured
from tests.fuzz import oracle, terminal_bytes
from tests.fuzz.bad_input import damaged, examples
from tests.fuzz.screens import paths_and_grids
from tests.fuzz.test_screens import KINDS, read_screen

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Screen
from mam.adapters.tmux.client import Tmux
from mam.core import safe_text
from mam.core.activity import IDLE, UNKNOWN, WAITING, WORKING
from mam.core.errors import NoDialog
from mam.core.terminal_cells import columns, parse_cells, plain_text, written_anew

# The only sequence that leaves mam.
_OWN = re.compile(r"\x1b\[[0-9;]*m")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def check_capture(capture: str, cursor: tuple[int, int] = (0, 0)) -> None:
    """Read a captured screen in every way, and check what would leave mam of it."""
    for coloured in (True, False):
        written = oracle.read(written_anew, capture, coloured=coloured)
        plain = _OWN.sub("", written)
        assert oracle.is_printable_screen(plain) and not _BIDI.search(plain)
        assert coloured or plain == written
    rows = oracle.read(parse_cells, capture)
    for row in rows:
        assert all(after.column >= before.column for before, after in itertools.pairwise(row))
    plain = oracle.read(plain_text, capture)
    assert "\x1b" not in plain
    assert oracle.is_printable_screen(oracle.read(safe_text.for_screen, plain))
    noted = oracle.read(safe_text.note, plain)
    assert noted is None or (oracle.is_printable_screen(noted) and len(noted.encode()) <= 2048)
    assert oracle.is_plain(oracle.read(safe_text.one_line, capture))
    for name in (*KINDS, "practice", "agy", "human", "unknown-program"):
        read_screen(name, Screen(capture, *cursor))


RECORDED = some.sampled_from(KINDS).flatmap(
    lambda name: some.sampled_from([path for path, _ in paths_and_grids(name)])
)
CAPTURES = RECORDED.flatmap(lambda path: damaged([captured(path).encode(), *terminal_bytes.corpus()[::7]]))


@examples(40)
@given(capture=CAPTURES, x=some.integers(0, 200), y=some.integers(0, 60))
def test_a_capture_of_any_bytes_is_read(capture, x, y):
    """tmux passes on fewer sequences than this; another version may pass on more."""
    text = capture[:20_000].decode("utf-8", "replace")
    check_capture(text, (x, y))
    assert oracle.read(columns, text.partition("\n")[0]) >= 0


def test_each_sequence_as_a_capture():
    for text in terminal_bytes.corpus():
        capture = text.decode("utf-8", "replace")
        written = _OWN.sub("", oracle.read(written_anew, capture))
        assert oracle.is_printable_screen(written), text
        oracle.read(parse_cells, capture)
    check_capture("\n".join(text.decode("utf-8", "replace") for text in terminal_bytes.corpus()))


# Copies what is written into the FIFO to its terminal; what begins with SPLIT byte by byte.
_COPIER = """#!{python}
import os, sys, tty
tty.setraw(0)
while True:
    with open({fifo!r}, "rb") as source:
        data = source.read()
    if data.startswith(b"SPLIT"):
        for at in range(5, len(data)):
            os.write(1, data[at:at + 1])
    else:
        while data:
            data = data[os.write(1, data):]
"""
# Ends whatever string or mode the bytes before began; the second part also empties the screen.
_END, _ANEW = b"\x18\x1b\\", b"\x1b[?1049l\x1bc"
_PARTS = 8


@pytest.fixture
def printer(fleet, tmp_path, monkeypatch, until):
    """A session whose program prints the bytes that it is given, and a function that gives it some."""
    fifo, program = tmp_path / "fifo", tmp_path / "programs" / "printer"
    os.mkfifo(fifo)
    program.parent.mkdir()
    program.write_text(_COPIER.format(python=sys.executable, fifo=str(fifo)), encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    session = fleet.sessions.create("printer")
    tmux, pane = Tmux(session.row["tmux_server"]), session.row["pane"]["id"]
    numbers = itertools.count(1)

    def show(data: bytes) -> None:
        # A mark of its own at the end, in a place that no mode of the terminal moves.
        mark = f"END-{next(numbers)}-"
        fifo.write_bytes(
            data + _END + b"\x1b[r\x1b[?6l\x1b[4l\x1b[?7h\x1b[0m\x1b(B\x0f\x1b[1;1H" + mark.encode()
        )
        until(lambda: mark in (tmux.capture([pane])[pane] or ""))

    return session, tmux, pane, show


def check_what_leaves(fleet, session) -> None:
    """Check what every verb that shows a pane answers."""
    name = session.name
    for scrollback in (False, True):
        assert not _BIDI.search(fleet.sessions.read(name, scrollback=scrollback))
    for read in (
        fleet.sessions.read(name),
        fleet.sessions.read(name, scrollback=True),
        json.dumps(fleet.sessions.ls(), ensure_ascii=False),
        json.dumps(fleet.sessions.explain(name), ensure_ascii=False),
        json.dumps(fleet.agents.get(name), ensure_ascii=False),
        json.dumps(fleet.agents.panes(), ensure_ascii=False),
    ):
        assert oracle.is_printable_screen(read)
        read.encode()


@pytest.mark.promise("P47")
@pytest.mark.slow
@pytest.mark.parametrize("is_split", [False, True], ids=["at once", "byte by byte"])
def test_what_a_program_prints_reaches_nobody_as_a_sequence(fleet, printer, is_split):
    session, tmux, pane, show = printer
    texts = terminal_bytes.corpus()
    for part in range(_PARTS):
        # Each text ends with what ends a string, so that the next one begins anew.
        data = b"\r\n".join(text + _END for text in texts[part::_PARTS])
        show((b"SPLIT" if is_split else b"") + _ANEW + data)
        capture = tmux.screens([pane], styled=True)[pane]
        check_capture(capture.captured, (capture.cursor_x, capture.cursor_y))
        assert oracle.read(tmux.look, pane).pane.id == pane
        assert tmux.panes(full=True).confirmed
        check_what_leaves(fleet, session)
    # What stays on the screen, each text alone.
    for text in terminal_bytes.screens():
        show(_ANEW + text)
        check_what_leaves(fleet, session)
    assert not Path("hit").exists() and not list(Path(session.row["workspace"]).glob("hit"))
    with pytest.raises(NoDialog):
        fleet.messages.dialog(session.name)
    fleet.sessions.stop(session.name)
    assert oracle.is_printable_screen(fleet.sessions.read(session.name))


TITLES = (
    b"evil|%99",
    b"%0,$1,@2,4000001,0,,,0,99",
    b"a\tb",
    b"#(touch hit)",
    b"#{pane_id}",
    "\u202etitle\u2066 漢字 e\u0301".encode(),
    b"x" * 2000,
    b"\xff\xfe\xc3",
    b"\\033[31m\\n\\$x\\",
    b"\xc2\x9b31m\xc2\x85",
    b"",
)


@pytest.mark.slow
def test_a_forged_title_is_one_text_of_one_pane(fleet, printer):
    session, tmux, pane, show = printer
    for title in TITLES:
        for start in (b"\x1b]0;", b"\x1b]2;", b"\x1bk"):
            show(_ANEW + start + title + b"\x1b\\")
            listing = tmux.panes(full=True)
            assert listing.confirmed
            assert [found.id for found in listing.panes] == [pane]
            assert (listing.panes[0].mark, listing.panes[0].pid) == (session.id, session.row["pane"]["pid"])
            check_what_leaves(fleet, session)
            for name in KINDS:
                assert oracle.read(kind(name).read_title, listing.panes[0].title) in (
                    IDLE,
                    WORKING,
                    WAITING,
                    UNKNOWN,
                )
    assert not list(Path(session.row["workspace"]).glob("hit"))
