"""The documents run: their Python is executed, and what they name exists."""

import inspect
import re
from pathlib import Path

import pytest

import mam
from mam.core.settings import OF_THE_USER, Settings

ROOT = Path(__file__).parents[1]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("code", blocks("docs/api.md", "python"), ids=lambda code: code.splitlines()[0])
def test_the_examples_of_the_api_run(home, tmux_server, workspace, monkeypatch, code) -> None:
    monkeypatch.chdir(workspace)
    exec(compile(code, "docs/api.md", "exec"), {})


def test_every_method_of_a_fleet_is_documented() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    public = [name for name, _ in inspect.getmembers(mam.Fleet) if not name.startswith("_")]
    assert [name for name in public if not re.search(rf"`[^`]*\b{name}\b", text)] == []


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `\[?(\w+)\]?`", text, re.MULTILINE))
    assert shown == set(Settings.__slots__)
    own = set(re.findall(r"^\| `\[?(\w+)\]?` .*\*\*own\*\*", text, re.MULTILINE))
    assert own == set(OF_THE_USER)


def test_the_public_names_are_the_ones_that_are_there() -> None:
    for name in mam.__all__:
        assert getattr(mam, name) is not None
    with pytest.raises(AttributeError):
        mam.nothing  # noqa: B018
