"""What the tokens of a conversation cost, by a table of list prices: exactly, or unknown."""

from __future__ import annotations

from mam.core.errors import InvalidSettings
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.core.token_count import TokenCount

_NEEDED = ("input", "output")
_CACHE = ("cache_read", "cache_write", "cache_write_1h")
_KEYS = (*_NEEDED, *_CACHE)
_LONG, _OVER = "long", "over"
_PER = 1_000_000
# No model costs so much per million tokens. What is more is a mistake in the unit.
_MOST = 100_000
_LARGEST_REQUEST = 1_000_000_000
# Programs put the provider before the name of a model. These three bill their own models at the list price.
_PROVIDERS = ("anthropic", "openai", "google")
# Claude Code puts this behind a model with a large context window.
_LARGE_WINDOW = "[1m]"
_DIGITS = "0123456789"


class Price:
    """The price of one model in USD per million tokens; None for kinds of tokens without a known price.

    A request with more than `over` tokens of input has the prices in `long`, all its tokens included.
    """

    __slots__ = ("long", "over", "per_million")

    def __init__(
        self, per_million: Mapping[str, float], over: int | None = None, long: Price | None = None
    ) -> None:
        self.per_million = {key: per_million.get(key) for key in _KEYS}
        self.over = over
        self.long = long

    def of(self, count: TokenCount) -> float | None:
        """Return what the tokens cost in USD; None if that cannot be known."""
        if self.over is not None and self.long is not None and count.all_input > self.over:
            # Of several requests nobody knows which were long.
            return self.long.of(count) if count.is_one_request else None
        cost = 0.0
        for key, price in self.per_million.items():
            tokens: int = getattr(count, key)
            if tokens and price is None:
                return None
            cost += tokens * (price or 0.0) / _PER
        return cost


class PriceTable:
    """The prices of models by name, and the date of the table if it has one."""

    __slots__ = ("date", "prices")

    def __init__(self, prices: Mapping[str, Price], date: str | None = None) -> None:
        self.prices = dict(prices)
        self.date = date

    def overridden_by(self, other: PriceTable) -> PriceTable:
        """Return this table with the models of another one, which replace those of the same name."""
        return PriceTable({**self.prices, **other.prices}, other.date or self.date)

    def find(self, model: str | None) -> Price | None:
        """Return the price of a model by its name, or by its name without a date; never of another model."""
        if not model:
            return None
        own = _without_provider(model)
        for name in (model, own, _without_date(model), _without_date(own)):
            if name in self.prices:
                return self.prices[name]
        return None


def cost(counts: Sequence[TokenCount] | None, table: PriceTable) -> float | None:
    """Return what all requests of a conversation cost in USD; None if one of them is unknown."""
    if not counts:
        return None
    total = 0.0
    found: dict[str | None, Price | None] = {}
    for count in counts:
        if not count.all_input and not count.output:
            # Programs record answers of their own under names that are no model.
            continue
        if count.model not in found:
            found[count.model] = table.find(count.model)
        price = found[count.model]
        part = price.of(count) if price else None
        if part is None:
            return None
        total += part
    return round(total, 4)


def _without_provider(model: str) -> str:
    provider, slash, name = model.partition("/")
    own = name if slash and provider in _PROVIDERS else model
    return own.removesuffix(_LARGE_WINDOW)


def _without_date(model: str) -> str:
    """Return a name without `-20250929` or `-2025-09-29` at its end."""
    for form in ("-dddddddd", "-dddd-dd-dd"):
        end = model[-len(form) :]
        if len(model) > len(form) and all(
            sign in _DIGITS if place == "d" else sign == place for sign, place in zip(end, form, strict=True)
        ):
            digits = end.replace("-", "")
            if digits[:2] == "20" and "01" <= digits[4:6] <= "12" and "01" <= digits[6:] <= "31":
                return model[: -len(form)]
    return model


def parse(document: Mapping[str, Any], path: str) -> PriceTable:
    """Return the table of a parsed price file; raise InvalidSettings, which names the key and a way out."""
    if unknown := sorted(document.keys() - {"date", "models"}):
        raise _refusal(path, unknown[0], "a price table has only `date` and tables such as [models.NAME]")
    date = document.get("date")
    if date is not None and type(date) is not str:
        raise _refusal(path, "date", 'write it as a text: date = "2026-11-20"')
    models = document.get("models", {})
    if not isinstance(models, dict):
        raise _refusal(path, "models", 'write a table for each model: [models."NAME"]')
    return PriceTable(
        {name: _price(entry, path, f"models.{name}") for name, entry in models.items()}, date or None
    )


def _price(entry: object, path: str, key: str, *, is_long: bool = False) -> Price:
    extra = _OVER if is_long else _LONG
    if not isinstance(entry, dict):
        raise _refusal(path, key, f"write a table with {', '.join(_KEYS)}")
    if unknown := sorted(entry.keys() - {*_KEYS, extra}):
        raise _refusal(path, f"{key}.{unknown[0]}", f"the keys are {', '.join((*_KEYS, extra))}")
    if missing := [name for name in _NEEDED if name not in entry]:
        raise _refusal(path, f"{key}.{missing[0]}", "the price is missing: add it in USD per million tokens")
    per_million = {
        name: _number(value, path, f"{key}.{name}") for name, value in entry.items() if name in _KEYS
    }
    if is_long or _LONG not in entry:
        return Price(per_million)
    long, place = entry[_LONG], f"{key}.{_LONG}"
    over = long.get(_OVER) if isinstance(long, dict) else None
    if type(over) is not int or not 0 < over <= _LARGEST_REQUEST:
        raise _refusal(path, f"{place}.{_OVER}", "name the tokens of input above which a request is long")
    return Price(per_million, over, _price(long, path, place, is_long=True))


def _number(value: object, path: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise _refusal(path, key, f"write a number of USD per million tokens, at most {_MOST}")
    return float(value)


def _refusal(path: str, key: str, hint: str) -> InvalidSettings:
    return InvalidSettings(f"{path}: '{one_line(key, 120)}' is not valid", hint=hint)
