"""The details of a session as text: cost and last words."""

import pytest

from mam.surfaces.cli.render_sessions import details


def shown(**session) -> dict[str, str]:
    lines = details({"name": "one", **session}, lambda text, _style=None: text)
    return {line[2:18].strip(): line[19:] for line in lines[1:]}


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        ({"tokens_in": 5, "cost_usd": 0.0123}, "$0.0123"),
        ({"tokens_in": 5, "cost_usd": 0.0}, "$0.0000"),
        ({"tokens_in": 5, "cost_usd": 12.3456}, "$12.35"),
        ({"tokens_in": 5, "cost_usd": None}, "unknown"),
        ({"tokens_in": None, "cost_usd": None}, None),
        (None, None),
    ],
)
def test_a_cost_is_a_number_or_unknown(usage, text) -> None:
    assert shown(usage=usage).get("cost") == text


def test_the_last_words() -> None:
    assert shown(last_words="Which one?")["last words"] == "Which one?"
    assert shown(last_words="a\x1b[31m")["last words"] == "a[31m"
    assert "last words" not in shown(last_words=None)
    assert "last words" not in shown()
