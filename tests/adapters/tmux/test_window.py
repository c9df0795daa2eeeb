"""Windows of several panes, on a real server."""

from __future__ import annotations

import pytest

from mam.adapters.tmux import window
from mam.adapters.tmux.error_translation import from_stderr
from mam.core.errors import PaneGone, TerminalsDown, Usage

MARK, SECOND, THIRD = "s_00000001", "s_00000002", "s_00000003"


@pytest.fixture
def first(private):
    return private.start(name="one")


def split(private, tmux, first, mark=SECOND):
    return window.split(
        tmux,
        first.window_id,
        ["sleep", "1000"],
        cwd=str(private.directory),
        session_id=mark,
        root="/r",
    )


@pytest.mark.parametrize("number", ["", ":00", "-1", "9" * 5000, "²"])
def test_a_damaged_line_of_a_listing_is_left_out(number):
    answer = f"@1,{number},50,0,%1,1,\n@1,200,50,0,%2,0,\n@1,200,{number},0,%3,0,\n".encode()
    shown = window.Window("@1", answer)
    assert (shown.panes, shown.width, shown.height) == (["%2"], 200, 50)


def test_a_new_pane_is_marked_last_and_takes_no_keyboard(private, tmux, first):
    second = split(private, tmux, first)
    third = split(private, tmux, first, THIRD)
    assert (second.mark, second.root, second.window_id) == (SECOND, "/r", first.window_id)
    shown_window = window.show(tmux, first.window_id)
    assert shown_window.panes == [first.id, second.id, third.id]
    assert shown_window.active == first.id
    shown = private.raw("show-options", "-p", "-t", second.id)
    assert "remain-on-exit on" in shown and "allow-rename off" in shown


def test_the_new_pane_is_found_beside_those_of_a_hook(private, tmux, first):
    private.raw("set-hook", "-g", "after-split-window", "if -F '#{@done}' '' 'set -g @done 1 ; split-window'")
    second = split(private, tmux, first)
    (marked,) = [pane for pane in tmux.panes().panes if pane.mark == SECOND]
    assert marked.id == second.id
    assert "1000" in private.raw("display-message", "-p", "-t", second.id, "#{pane_start_command}")


@pytest.mark.parametrize("name", ["ours", "alone"])
def test_names_that_stand_in_our_answers(private, tmux, name):
    first = private.start(name=name)
    assert split(private, tmux, first).session_name == first.session_name == name


def test_a_window_that_is_gone(private, tmux, first):
    private.start(name="other", mark=THIRD)
    with pytest.raises(PaneGone):
        split(private, tmux, type("Gone", (), {"window_id": "@99"}))
    assert window.show(tmux, "@99") is None
    with pytest.raises(PaneGone):
        window.arrange(tmux, "@99", layout="main-vertical", main=None)


def test_a_window_without_room(private, tmux, first):
    private.raw("resize-window", "-t", first.window_id, "-x", "3", "-y", "3")
    for _ in range(2):
        try:
            split(private, tmux, first)
        except TerminalsDown:
            break
    else:
        pytest.fail("there was room")
    assert all(pane.mark in (MARK, SECOND) for pane in tmux.panes().panes)


def geometry(private, window_id):
    lines = private.raw(
        "list-panes", "-t", window_id, "-F", "#{pane_id} #{pane_left} #{pane_top} #{pane_width}"
    ).splitlines()
    return {pane: (int(x), int(y), int(width)) for pane, x, y, width in (line.split() for line in lines)}


def test_the_main_pane_stands_left(private, tmux, first):
    panes = [split(private, tmux, first, f"s_0000001{number}") for number in range(3)]
    main = panes[1].id
    shown_window = window.arrange(tmux, first.window_id, layout="main-vertical", main=main)
    places = geometry(private, first.window_id)
    assert shown_window.panes[0] == main
    assert places[main] == (0, 0, 100), "half of the window"
    assert [places[pane_id][0] > 0 for pane_id in shown_window.panes[1:]] == [True, True, True]
    shown_window = window.arrange(tmux, first.window_id, layout="main-horizontal", main=first.id)
    assert shown_window.panes[0] == first.id
    assert geometry(private, first.window_id)[first.id][2] == 200, "it stands on top"
    assert shown_window.active == first.id, "swapping moves no keyboard"
    with pytest.raises(Usage):
        window.arrange(tmux, first.window_id, layout="tiled", main=None)


def test_a_person_who_zoomed_stays_zoomed(private, tmux, first):
    split(private, tmux, first)
    private.raw("resize-pane", "-Z", "-t", first.id)
    assert window.arrange(tmux, first.window_id, layout="main-vertical", main=first.id).is_zoomed


def test_label_and_colour_are_drawn(private, tmux, first):
    second = split(private, tmux, first)
    window.label_pane(tmux, second.id, first.window_id, label="dev", colour="#4a6e38")
    window.arrange(tmux, first.window_id, layout="main-vertical", main=first.id)
    # An outer tmux session is the terminal of a person who looks at the window.
    attach = ["env", "-u", "TMUX", *tmux.attach_argv(first.session_id)]
    private.raw("new-session", "-d", "-s", "outer", "-x", "200", "-y", "50", *attach)
    label = f"dev-{second.id}"

    def drawn():
        shown = private.raw("capture-pane", "-e", "-p", "-t", "=outer:")
        return shown if label in shown else None

    line = next(line for line in private.until(drawn).splitlines() if label in line)
    before = line[: line.index(label)]
    assert "\x1b[38;" in before.rpartition("m")[0][-20:], "in a colour of its own"


def test_what_a_window_has_of_its_own_stays(private, tmux, first):
    private.raw("set-option", "-w", "-t", first.window_id, "pane-border-status", "bottom")
    window.label_pane(tmux, first.id, first.window_id, label="dev", colour="#4a6e38")
    shown = private.raw("show-options", "-w", "-t", first.window_id)
    assert "pane-border-status bottom" in shown and "pane-border-style" in shown
    window.remove_labels(tmux, first.window_id, [first.id])
    assert private.raw("show-options", "-w", "-t", first.window_id) == "pane-border-status bottom\n"
    assert "mam_label" not in private.raw("show-options", "-p", "-t", first.id)


def test_a_server_that_ends_with_its_last_pane_has_nothing_left(tmux, first, monkeypatch):
    def ended(*_arguments, **_more):
        raise from_stderr("server exited unexpectedly", "show-options", "x")

    monkeypatch.setattr(type(tmux), "_call", ended)
    window.remove_labels(tmux, first.window_id, [first.id])


@pytest.mark.parametrize(
    ("label", "colour"), [("a b", "#000000"), ("#(touch x)", "#000000"), ("a", "red"), ("a", "#{x}00")]
)
def test_only_plain_labels(tmux, first, label, colour):
    with pytest.raises(Usage):
        window.label_pane(tmux, first.id, first.window_id, label=label, colour=colour)
