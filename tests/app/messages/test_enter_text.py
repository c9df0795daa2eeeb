"""When Enter is pressed, and pressed again: only with the text in the box that mam itself typed."""

import pytest

from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.kind import Screen
from mam.adapters.agents.practice import Practice
from mam.app.context.liveness import SessionLiveness
from mam.app.messages import enter_text
from mam.app.messages.enter_text import _is_below_text
from mam.app.observation.pane_look import PaneLook
from mam.core.errors import DeliveryUnconfirmed
from mam.core.liveness_values import Liveness


def look_at(*draft: str, cursor: tuple[int, int]) -> PaneLook:
    """Return a look at a Gemini with these lines in its input box, which begins in row 4."""
    lines = ["Gemini CLI", "", "─" * 80, " Shift+Tab to accept edits", "", *draft, "", " workspace"]
    look = PaneLook(SessionLiveness(Liveness.ALIVE))
    look.cursor = cursor
    look.screen = Screen("\n".join(lines), *cursor)
    look.screen_state = Gemini().read_screen(look.screen)
    return look


@pytest.mark.parametrize(
    ("draft", "cursor", "expected"),
    [
        ((" > our words", ""), (3, 6), True),
        ((" > our words",), (12, 5), False),
        ((" > a person's", ""), (3, 6), False),
        ((" > our words and a person's", ""), (3, 6), False),
        ((" > our words", "   a person's", ""), (3, 7), False),
    ],
)
def test_only_a_new_line_below_our_own_text_counts(draft, cursor, expected) -> None:
    before = look_at(" > our words", cursor=(12, 5))
    look = look_at(*draft, cursor=cursor)
    assert look.screen_state.box == "draft"
    assert _is_below_text(look, before) is expected


class Pane:
    """Stands for tmux: it only remembers the keys that were pressed."""

    def __init__(self) -> None:
        self.pressed: list[list[str]] = []

    def keys(self, pane_id, keys, *, mark, at) -> None:
        self.pressed.append(keys)


class Desk:
    """Stands for the context of a delivery to a practice agent whose input box shows these rows."""

    def __init__(self, monkeypatch, *draft: str) -> None:
        edge = "─" * 40
        self.pane, rows = Pane(), [f"❯ {draft[0]}", *(f"  {row}" for row in draft[1:])]
        text = "\n".join(["● done", edge, *rows, edge, "  ? for help"])
        look = PaneLook(SessionLiveness(Liveness.ALIVE))
        look.cursor = 2 + len(draft[-1]), 1 + len(draft)
        look.screen = Screen(text, *look.cursor)
        look.screen_state = Practice().read_screen(look.screen)
        monkeypatch.setattr(PaneLook, "absence", None)
        monkeypatch.setattr(enter_text, "look_at_pane", lambda context, row: look)
        monkeypatch.setattr(enter_text, "_reports_dialog", lambda *facts: False)
        monkeypatch.setattr(enter_text, "_TEXT_SECONDS", 0.01)

    def kind(self, name):
        return Practice()

    def tmux(self, server):
        return self.pane

    def enter(self, text: str) -> None:
        row = {"name": "worker", "agent": "practice", "id": "s_1", "pane": {"id": "%1"}, "tmux_server": "t"}
        enter_text._enter(self, row, text, 0.0, 0.0)


def test_enter_is_pressed_once_the_box_shows_the_text(monkeypatch) -> None:
    desk = Desk(monkeypatch, "our words are so long that they", "are wrapped")
    desk.enter("our words are so long that they are wrapped")
    assert desk.pane.pressed == [["Enter"]]


@pytest.mark.parametrize("draft", ["our words and a person's", "a person's our words", "another text"])
def test_nothing_is_submitted_where_the_box_shows_other_text(monkeypatch, draft) -> None:
    desk = Desk(monkeypatch, draft)
    with pytest.raises(DeliveryUnconfirmed, match="Enter was not pressed: the input box shows other text"):
        desk.enter("our words")
    assert desk.pane.pressed == []


def test_a_folded_paste_counts_with_its_own_number_of_lines(monkeypatch) -> None:
    text = "\n".join(["line"] * 13)
    desk = Desk(monkeypatch, "[Pasted text #4 +12 lines]")
    desk.enter(text)
    assert desk.pane.pressed == [["Enter"]]
    desk = Desk(monkeypatch, "[Pasted text #4 +11 lines]")
    with pytest.raises(DeliveryUnconfirmed):
        desk.enter(text)
    assert desk.pane.pressed == []
