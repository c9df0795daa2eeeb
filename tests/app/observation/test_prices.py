"""The price table in force: what comes with mam, the user's own, and what a broken one changes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import mam
from mam.app.context.context import open_context
from mam.app.observation.prices import load_prices, shipped_prices
from mam.core.prices import cost
from mam.core.token_count import TokenCount

SHIPPED = Path(mam.__file__).parent / "presets" / "prices.toml"
OWN = '[models.mine]\ninput = 2\noutput = 3\n[models."gpt-5"]\ninput = 7\noutput = 8\n'


@pytest.fixture
def context(home, tmp_path):
    opened = open_context(workspace=str(tmp_path))
    warnings: list[str] = []
    yield opened.replace(warn=warnings.append), warnings
    opened.close()


def own_table(home, text, *, folder=".config/mam"):
    path = home / folder / "prices.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def million(table, model):
    return cost([TokenCount(model, input=1_000_000, output=0)], table)


def test_the_table_that_comes_with_mam() -> None:
    table = shipped_prices()
    assert table.date == "2026-11-20"
    assert million(table, "claude-sonnet-4-6") == 3.0
    assert million(table, "gpt-5-codex") == 1.25
    assert million(table, "gemini-2.5-pro") == 2.5, "a request of this length"


def test_every_shipped_price_is_plausible() -> None:
    models = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["models"]
    for name, price in models.items():
        assert price["cache_read"] < price["input"] <= price["cache_write"] < price["output"], name
        assert ("cache_write_1h" in price) is name.startswith("claude-"), name
        long = price.get("long")
        if long:
            assert all(price[key] < long[key] for key in price if key != "long"), name
            assert price.keys() - {"long"} == long.keys() - {"over"}, name


def test_the_users_own_table_comes_first(context, home) -> None:
    own_table(home, OWN)
    table = load_prices(context[0])
    assert (million(table, "mine"), million(table, "gpt-5"), million(table, "gpt-5.2")) == (2.0, 7.0, 1.75)
    assert context[1] == []


def test_the_folder_of_xdg_counts(context, home, monkeypatch) -> None:
    own_table(home, OWN, folder="elsewhere/mam")
    moved = context[0].replace(
        settings_environ={"HOME": str(home), "XDG_CONFIG_HOME": str(home / "elsewhere")}
    )
    assert million(load_prices(moved), "mine") == 2.0


def test_a_table_of_the_root_does_not_count(context, home, tmp_path) -> None:
    for folder in (tmp_path, tmp_path / ".mam"):
        folder.mkdir(exist_ok=True)
        (folder / "prices.toml").write_text(OWN, encoding="utf-8")
    assert million(load_prices(context[0]), "mine") is None


@pytest.mark.parametrize(
    ("text", "place"),
    [("[models\nx = 1\n", "line 1"), ("[models.m]\ninput = 1\n", "'models.m.output'"), ("x = 1\n", "'x'")],
)
def test_a_broken_table_is_a_warning_and_no_costs(context, home, text, place) -> None:
    path = own_table(home, text)
    for _ in range(2):
        assert load_prices(context[0]) is None
    (warning,) = context[1]
    assert str(path) in warning
    assert place in warning
    assert "until that is corrected mam shows no costs" in warning


def test_a_table_that_everybody_may_write_does_not_count(context, home) -> None:
    path = own_table(home, OWN)
    path.chmod(0o666)
    assert load_prices(context[0]) is None
    (warning,) = context[1]
    assert f"chmod go-w {path}" in warning


def test_something_else_in_its_place(context, home) -> None:
    own_table(home, "").unlink()
    (home / ".config" / "mam" / "prices.toml").mkdir()
    assert load_prices(context[0]) is None
    assert "is not a regular file" in context[1][0]
