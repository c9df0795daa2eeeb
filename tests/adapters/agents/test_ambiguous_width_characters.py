"""Signs to which a program and a terminal give different widths."""

import pytest

from mam.adapters.agents.ambiguous_width_characters import (
    has_unsafe_width,
    reliably_shown,
    without_joining_signs,
)
from mam.adapters.agents.catalogue import BUILT_IN, kind
from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.opencode.kind import Opencode


@pytest.mark.parametrize(
    "text",
    [
        "हिन्दी",
        "สวัสดี",
        "e\u0301",
        "a\u202eb",
        "\u2067isolated\u2069",
        "\ufeffbom",
        "1️⃣",
        "👍🏽",
        "🇩🇪",
        "👩\u200d👩",
        "two\u2028lines",
    ],
)
def test_a_text_with_unsafe_signs_does_not_arrive_unchanged(text) -> None:
    assert has_unsafe_width(text)
    assert not Claude().keeps_unchanged(text)
    assert not Opencode().keeps_unchanged(text)


@pytest.mark.parametrize("text", ["plain", "naïve", "漢字", "🙂", "שלום", "ﬁ ligature", "ＦＵＬＬ"])
def test_a_text_of_safe_width_arrives_unchanged(text) -> None:
    assert not has_unsafe_width(text)
    assert without_joining_signs(text) == text
    assert Opencode().keeps_unchanged(text)


def test_joining_signs_are_removed() -> None:
    assert without_joining_signs("\u2067 \u093f\ufe0f") == " "
    assert without_joining_signs("हि") == "ह"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_text_with_a_joiner_is_not_typed_into_any_program(name) -> None:
    """tmux 3.3a leaves out what follows the third joiner of a cell: no look would find the whole text."""
    assert not kind(name).keeps_unchanged("👩\u200d👩\u200d👧\u200d👦 family")


def test_a_line_separator_does_not_count_where_a_box_is_compared() -> None:
    """tmux 3.3a shows U+FFFD in its place."""
    assert reliably_shown("a\u2028b") == reliably_shown("a\ufffdb") == "ab"
