"""When Enter is pressed again: only below the text that mam itself typed."""

import pytest

from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.kind import Screen
from mam.app.context.liveness import SessionLiveness
from mam.app.messages.enter_text import _is_below_text
from mam.app.observation.pane_look import PaneLook
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
