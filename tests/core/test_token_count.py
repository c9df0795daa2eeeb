"""The tokens of requests: what counts as input."""

import pytest

from mam.core.token_count import TokenCount


def test_all_input_has_what_the_cache_had_and_got() -> None:
    count = TokenCount("m", input=1, output=2, cache_read=30, cache_write=400, cache_write_1h=5000)
    assert count.all_input == 5431


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write", "cache_write_1h"])
def test_a_negative_number_is_refused(name) -> None:
    with pytest.raises(ValueError, match="negative"):
        TokenCount("m", **{"input": 0, "output": 0, name: -1})
