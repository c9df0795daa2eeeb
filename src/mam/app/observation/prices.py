"""The price table in force: the one that comes with mam, and the user's own over it."""

from __future__ import annotations

import os

from mam.app.context.settings import parse_toml, read_file, user_file
from mam.core import prices
from mam.core.errors import InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.app.context.context import Context

NAME = "prices.toml"


def load_prices(context: Context) -> prices.PriceTable | None:
    """Return the price table; None, with a warning, while the user's own one is not valid.

    A table of the user's that is half taken in would show costs that the user has corrected.
    """
    try:
        own = read_prices(user_file(context.settings_environ, NAME), context.settings_environ)
    except InvalidSettings as error:
        way_out = f" ({error.hint})" if error.hint else ""
        context.warn_once(f"{error.message}{way_out}; until that is corrected mam shows no costs")
        return None
    shipped = shipped_prices()
    return shipped.overridden_by(own) if own else shipped


def read_prices(path: str, environ: Mapping[str, str]) -> prices.PriceTable | None:
    """Return the table of one file; None if there is none. Raises InvalidSettings."""
    text = read_file(path, environ)
    return None if text is None else prices.parse(parse_toml(text, path), path)


def shipped_prices() -> prices.PriceTable:
    """Return the table that comes with mam."""
    package = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    path = os.path.join(package, "presets", NAME)
    with open(path, "rb") as file:
        return prices.parse(parse_toml(file.read(), path), path)
