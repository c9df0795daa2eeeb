"""Whether a screen shows messages of a conversation."""

import pytest

from mam.core.shown_history import shows_any

LONG = (
    "Please rename the function `read_all` to `read_everything`, and run all of the tests again after that."
)
SCREEN = """\
╭─ practice ──────────────╮
❯ ok
● Please rename the function read_all to
  read_everything, and run all of the tests again
  after that.
● a token of thanks
"""


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([LONG], True),
        (["something else that is long enough", LONG], True),
        (["ok"], True),
        (["An answer that begins far above the screen. " + LONG], True),
        (["token"], False),
        (["thanks"], False),
        (["something else that is long enough"], False),
        (["…"], False),
        ([""], False),
        ([], False),
    ],
)
def test_a_screen_shows_one_of_the_messages(texts, expected) -> None:
    assert shows_any(SCREEN, texts) is expected
