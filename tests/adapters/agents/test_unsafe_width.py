"""Signs whose width a program and a terminal see differently."""

import pytest

from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.opencode.kind import Opencode
from mam.adapters.agents.unsafe_width import go_astray, without_strays


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
def test_words_that_a_program_would_leave_behind_go_as_a_file(text) -> None:
    assert go_astray(text)
    assert not Claude().keeps(text)
    assert not Opencode().keeps(text)


@pytest.mark.parametrize("text", ["plain", "naïve", "漢字", "🙂", "שלום", "ﬁ ligature", "ＦＵＬＬ"])
def test_words_that_are_as_wide_as_they_look(text) -> None:
    assert not go_astray(text)
    assert without_strays(text) == text
    assert Opencode().keeps(text)


def test_what_can_be_seen_of_them() -> None:
    assert without_strays("\u2067 \u093f\ufe0f") == " "
    assert without_strays("हि") == "ह"
