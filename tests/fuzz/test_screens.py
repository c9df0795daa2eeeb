"""Recorded screens with one thing changed: no draft is overlooked, and no dialog is typed into."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from tests.conformance.recorded_screens import screen_of
from tests.fuzz import oracle
from tests.fuzz.bad_input import examples
from tests.fuzz.screens import DIALOGS, DRAFTS, Grid, changed, paths_and_grids, recorded

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Screen, ScreenState
from mam.core import message_rules
from mam.core.activity import IDLE, UNKNOWN, WAITING, WORKING

KINDS = ("claude", "codex", "gemini", "hermes", "opencode")
_OWN_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def read(grid: Grid) -> ScreenState:
    return read_screen(grid.name.partition("/")[0], grid.screen())


def read_screen(name: str, screen: Screen) -> ScreenState:
    """Read a screen in all ways of its kind, and check what comes out."""
    agent = kind(name)
    state = oracle.read(agent.read_screen, screen)
    assert isinstance(state, ScreenState)
    assert state.state in (IDLE, WORKING, WAITING, UNKNOWN)
    assert state.box in (None, "empty", "draft")
    assert (state.box == "draft") or not state.draft
    assert state.dialog is None or re.fullmatch("[a-z-]+", state.dialog)
    assert state.dialog is None or state.box is None, "a dialog has the keyboard, or the input box has it"
    choices = oracle.read(agent.choices, screen)
    if choices is not None:
        assert choices.labels and (choices.at is None or 0 <= choices.at < len(choices.labels))
        for answer in ("allow", "deny", "1", choices.labels[0], "9" * 5000, "²"):
            option = oracle.read(choices.find_option, answer)
            assert option is None or 0 <= option < len(choices.labels)
        for option in (choices.consent(), choices.refusal(), choices.free_text()):
            assert option is None or 0 <= option < len(choices.labels)
    for answer in ("trust", "allow", "deny", ""):
        keys = oracle.read(agent.answer_keys, state, answer)
        assert keys is None or all(isinstance(key, str) and oracle.is_plain(key) for key in keys)
    for text in ("half a thought", ""):
        for shows in (agent.box_shows, agent.box_surely_shows, agent.box_shows_part, agent.box_may_show):
            assert oracle.read(shows, state, text) in (True, False)
    return state


def is_typable(grid: Grid, state: ScreenState) -> bool:
    """Tell whether mam would type a message into this screen."""
    reason = message_rules.reason_to_hold(
        state=state.state,
        dialog=state.dialog,
        box=state.box,
        queues=grid.kind.queues,
        when=message_rules.READY,
        detail=state.detail,
    )
    return reason is None


@cache
def dialogs(name: str) -> dict[str, Grid]:
    return {grid.name: grid for grid in recorded(name) if grid.state in DIALOGS[name]}


@cache
def drafts(name: str) -> dict[str, Grid]:
    return {grid.name: grid for grid in recorded(name) if grid.state in DRAFTS[name]}


@pytest.mark.parametrize("name", KINDS)
def test_a_grid_reads_as_its_recording(name):
    """The changes are made on grids: a grid without a change is the recording."""
    assert {grid.state for grid in recorded(name) if read(grid).dialog} == DIALOGS[name]
    assert {grid.state for grid in recorded(name) if read(grid).box == "draft"} == DRAFTS[name]
    for path, grid in paths_and_grids(name):
        first, second = read(grid), kind(name).read_screen(screen_of(path))
        facts = ("state", "dialog", "box", "draft", "has_suggestion", "shows_end_only", "detail")
        assert [getattr(first, fact) for fact in facts] == [getattr(second, fact) for fact in facts], (
            grid.name
        )


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_screen_is_read(name):
    @examples(30)
    @given(grid=changed(recorded(name), most=4))
    def check(grid):
        read(grid)

    check()


def has_draft(grid: Grid, recording: Grid) -> bool:
    """Tell whether the draft of a recording is still on the screen."""
    lines = [line.strip() for line in read(recording).draft.split("\n") if line.strip()]
    words = grid.all_words()
    if all(len(line) > 5 for line in lines):
        return all(line in words for line in lines)
    # Other rows have a short draft such as `/` as well: then all of them have to be as they were.
    return all(row in grid.words() for row in recording.words() for line in lines if line in row)


@pytest.mark.promise("P31")
@pytest.mark.parametrize("name", KINDS)
def test_a_draft_that_is_still_there_is_never_taken_for_an_empty_box(name):
    @examples(50)
    @given(grid=changed(list(drafts(name).values())))
    def check(grid):
        if has_draft(grid, drafts(name)[grid.name]):
            assert not is_typable(grid, read(grid)), f"{grid.name}: a draft is overlooked"

    check()


@pytest.mark.promise("P29")
@pytest.mark.parametrize("name", KINDS)
def test_a_dialog_whose_words_are_still_there_is_never_typed_into(name):
    @examples(60)
    @given(grid=changed(list(dialogs(name).values()), most=2))
    def check(grid):
        if all(line in grid.all_words() for line in dialogs(name)[grid.name].words()):
            assert not is_typable(grid, read(grid)), f"{grid.name}: mam would type into a dialog"

    check()
