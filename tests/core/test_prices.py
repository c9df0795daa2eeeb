"""What tokens cost: by the model's own price, or unknown."""

import pytest

from mam.core.errors import InvalidSettings
from mam.core.prices import Price, PriceTable, cost, parse
from mam.core.token_count import TokenCount

MILLION = 1_000_000
FULL = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75, "cache_write_1h": 6.0}
LONG = {**FULL, "long": {"over": 200_000, "input": 6, "output": 22.5}}


def table(**models):
    return parse({"models": models}, "prices.toml")


def one(model="m", **tokens):
    return TokenCount(model, **{"input": 0, "output": 0} | tokens)


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        ({"input": MILLION}, 3.0),
        ({"output": MILLION}, 15.0),
        ({"cache_read": MILLION}, 0.3),
        ({"cache_write": MILLION}, 3.75),
        ({"cache_write_1h": MILLION}, 6.0),
        ({"input": 1000, "output": 100, "cache_read": 10_000}, 0.0075),
        ({"input": 17}, 0.0001),
    ],
)
def test_each_kind_of_tokens_has_its_own_price(tokens, usd) -> None:
    assert cost([one(**tokens)], table(m=FULL)) == usd


def test_the_requests_of_several_models_are_priced_by_their_own() -> None:
    prices = table(m=FULL, other={"input": 1, "output": 2})
    assert cost([one(input=MILLION), one("other", output=MILLION)], prices) == 5.0


@pytest.mark.parametrize(
    "counts",
    [
        None,
        [],
        [one(None, input=1)],
        [one("unheard", input=1)],
        [one(input=1), one("unheard", output=1)],
        [one("bare", input=1, cache_read=1)],
        [one("bare", input=1, cache_write=1)],
        [one("bare", input=1, cache_write_1h=1)],
    ],
)
def test_what_is_not_known_is_unknown_and_no_part(counts) -> None:
    assert cost(counts, table(m=FULL, bare={"input": 1, "output": 2})) is None


def test_an_answer_without_tokens_needs_no_price() -> None:
    assert cost([one("<synthetic>"), one(input=MILLION)], table(m=FULL)) == 3.0


class TestALongRequest:
    def test_it_has_the_long_prices_for_all_its_tokens(self) -> None:
        assert cost([one(input=200_000)], table(m=LONG)) == 0.6
        assert cost([one(input=200_001, output=1000)], table(m=LONG)) == pytest.approx(1.2225)

    def test_what_the_cache_had_counts_for_its_length(self) -> None:
        prices = table(m={**LONG, "long": {**LONG["long"], "cache_read": 0.6}})
        assert cost([one(input=1, cache_read=MILLION)], prices) == 0.6
        assert cost([one(input=1, cache_read=MILLION)], table(m=LONG)) is None

    def test_of_several_requests_nobody_knows_which_were_long(self) -> None:
        assert cost([one(input=300_000, is_one_request=False)], table(m=LONG)) is None
        assert cost([one(input=200_000, is_one_request=False)], table(m=LONG)) == 0.6
        assert cost([one(input=300_000, is_one_request=False)], table(m=FULL)) == 0.9


DATED = "d-20250101"
NAMES = PriceTable(
    {name: Price({"input": 1}) for name in ("gpt-5", "claude-sonnet-4-5", "x/y", "d-20250101")}
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpt-5", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("openai/gpt-5", "gpt-5"),
        ("x/y", "x/y"),
        ("x/y-20250929", "x/y"),
        ("d-20250101", "d-20250101"),
        ("gpt-5-mini", None),
        ("gpt-5-codex", None),
        ("gpt-5.1", None),
        ("gpt", None),
        ("gpt-5-", None),
        ("gpt-5-2025", None),
        ("gpt-5-99999999", None),
        ("gpt-5-20251301", None),
        ("gpt-5-20250132", None),
        ("gpt-5-2025-8-7", None),
        ("gpt-5-20٢٥0807", None),
        ("-20250929", None),
        ("d", None),
        ("GPT-5", None),
        ("azure/gpt-5", None),
        ("y", None),
        ("openrouter/anthropic/claude-sonnet-4-5", None),
        ("", None),
        (None, None),
    ],
)
def test_a_model_is_found_by_its_name_with_or_without_a_date(name, found) -> None:
    assert NAMES.find(name) is (NAMES.prices[found] if found else None)


def test_the_users_table_replaces_and_adds_models() -> None:
    shipped = parse({"date": "2026-11-20", "models": {"m": FULL, "n": FULL}}, "shipped")
    both = shipped.overridden_by(table(m={"input": 1, "output": 1}, mine={"input": 2, "output": 2}))
    assert both.date == "2026-11-20"
    assert [cost([one(name, input=MILLION)], both) for name in ("m", "n", "mine")] == [1.0, 3.0, 2.0]
    assert cost([one("m", cache_read=1)], both) is None, "an entry replaces all keys of the model"


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"price": {}}, "'price'"),
        ({"date": 3}, "'date'"),
        ({"models": []}, "'models'"),
        ({"models": {"m": 3}}, "'models.m'"),
        ({"models": {"m": {}}}, "'models.m.input'"),
        ({"models": {"m": {"input": 1}}}, "'models.m.output'"),
        ({"models": {"m": {"input": 1, "output": 2, "cached": 3}}}, "'models.m.cached'"),
        ({"models": {"m": {"input": "1", "output": 2}}}, "'models.m.input'"),
        ({"models": {"m": {"input": True, "output": 2}}}, "'models.m.input'"),
        ({"models": {"m": {"input": 1, "output": -1}}}, "'models.m.output'"),
        ({"models": {"m": {"input": 1, "output": float("nan")}}}, "'models.m.output'"),
        ({"models": {"m": {"input": 1, "output": float("inf")}}}, "'models.m.output'"),
        ({"models": {"m": {"input": 1, "output": 10**400}}}, "'models.m.output'"),
        ({"models": {"m": {**FULL, "over": 3}}}, "'models.m.over'"),
        ({"models": {"m": {**FULL, "long": 3}}}, "'models.m.long.over'"),
        ({"models": {"m": {**FULL, "long": {"over": 2.5, "input": 1}}}}, "'models.m.long.over'"),
        (
            {"models": {"m": {**FULL, "long": {"over": True, "input": 1, "output": 1}}}},
            "'models.m.long.over'",
        ),
        ({"models": {"m": {**FULL, "long": {"over": 2, "output": 1}}}}, "'models.m.long.input'"),
        ({"models": {"m": {**FULL, "long": {"over": 2, **LONG}}}}, "'models.m.long.long'"),
    ],
)
def test_a_mistake_is_named_with_a_way_out(document, key) -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse(document, "/home/me/prices.toml")
    assert caught.value.message == f"/home/me/prices.toml: {key} is not valid"
    assert caught.value.hint


def test_an_empty_table_is_valid() -> None:
    assert parse({}, "prices.toml").prices == {}
